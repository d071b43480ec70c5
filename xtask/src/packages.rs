//! Installs npm and Python packages in the target folder.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::process;

/// File name of the program npm. On Windows, npm is a script and can only be started with its
/// extension.
const NPM: &str = if cfg!(windows) { "npm.cmd" } else { "npm" };

/// Python program that exits with 0 on Python 3.10 and newer, and with 1 on older versions.
const IS_NEW_ENOUGH: &str = "import sys; sys.exit(sys.version_info < (3, 10))";

/// An npm package with its exact version.
pub(crate) type NpmPackage<'a> = (&'a str, &'a str);

/// Returns whether npm starts.
pub(crate) fn npm_works() -> bool {
    process::succeeds(process::command(NPM).arg("--version"))
}

/// Whether npm runs or ignores the installation scripts of packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scripts {
    Run,
    Ignore,
}

/// Installs npm packages into `folder`, unless the same versions are already installed there.
pub(crate) fn install_npm(
    folder: &Path,
    packages: &[NpmPackage<'_>],
    scripts: Scripts,
) -> Result<()> {
    let missing: Vec<String> = packages
        .iter()
        .filter(|(name, version)| npm_version(folder, name).as_deref() != Some(version))
        .map(|(name, version)| format!("{name}@{version}"))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    let mut install = npm("install", scripts)?;
    process::run(install.arg("--prefix").arg(folder).args(missing))
}

/// Installs the packages of the `package-lock.json` in `folder`.
pub(crate) fn install_npm_lock(folder: &Path) -> Result<()> {
    process::run(npm("ci", Scripts::Ignore)?.current_dir(folder))
}

fn npm(action: &str, scripts: Scripts) -> Result<std::process::Command> {
    if !npm_works() {
        bail!("failed to start `npm`: install Node.js 20 or newer, which includes npm");
    }
    let mut npm = process::command(NPM);
    npm.args([action, "--no-fund", "--no-audit", "--loglevel=error"]);
    if scripts == Scripts::Ignore {
        npm.arg("--ignore-scripts");
    }
    Ok(npm)
}

/// Returns the installed version of an npm package.
pub(crate) fn npm_version(folder: &Path, name: &str) -> Option<String> {
    let manifest = folder.join("node_modules").join(name).join("package.json");
    let manifest = fs::read_to_string(manifest).ok()?;
    let manifest: serde_json::Value = serde_json::from_str(&manifest).ok()?;
    Some(manifest.get("version")?.as_str()?.to_owned())
}

/// Creates a virtual environment in `folder` unless it has exactly these packages, and returns its
/// interpreter.
pub(crate) fn install_python(folder: &Path, packages: &[&str]) -> Result<PathBuf> {
    // The path is part of the text, because a virtual environment works only in its original
    // folder.
    let wanted = format!("{}\n{}", folder.display(), packages.join("\n"));
    // This file is written last. If it is missing, the installation was interrupted and is
    // repeated.
    let mark = folder.join("installed.txt");
    let is_installed = fs::read_to_string(&mark).is_ok_and(|text| text == wanted);
    let python = folder.join(if cfg!(windows) {
        "Scripts/python.exe"
    } else {
        "bin/python"
    });
    // An update may have removed the Python version for which the environment was created.
    if is_installed && process::succeeds(process::command(&python).arg("--version")) {
        return Ok(python);
    }
    let mut create = process::command(system_python(IS_NEW_ENOUGH)?);
    create.args(["-m", "venv", "--clear"]).arg(folder);
    process::run(&mut create).context(
        "failed to create the virtual environment; on Debian and Ubuntu the module `venv` is in \
         the package python3-venv",
    )?;
    let mut install = process::command(&python);
    install.args(["-m", "pip", "install"]);
    install.args(["--quiet", "--disable-pip-version-check"]);
    process::run(install.args(packages))?;
    fs::write(mark, wanted)?;
    Ok(python)
}

/// Installs the Python packages that a file in pip's format lists, and returns the interpreter.
pub(crate) fn install_requirements(folder: &Path, list: &Path) -> Result<PathBuf> {
    let text = fs::read_to_string(list);
    let text = text.with_context(|| format!("failed to read {}", list.display()))?;
    install_python(folder, &requirements(&text))
}

/// Returns the requirements in a text in pip's format, which has one requirement per line.
pub(crate) fn requirements(text: &str) -> Vec<&str> {
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect()
}

/// Returns the command `python3` or `python`: the first with which the Python program `program`
/// exits with 0.
pub(crate) fn system_python(program: &str) -> Result<&'static str> {
    ["python3", "python"]
        .into_iter()
        .find(|name| process::succeeds(process::command(name).args(["-c", program])))
        .context("neither `python3` nor `python` is Python 3.10 or newer with pip: install it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_installed_version_is_read_from_the_manifest() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(npm_version(folder.path(), "@a/b"), None);
        let package = folder.path().join("node_modules/@a/b");
        fs::create_dir_all(&package).unwrap();
        fs::write(package.join("package.json"), r#"{"version":"1.2.3"}"#).unwrap();
        let version = npm_version(folder.path(), "@a/b");
        assert_eq!(version.as_deref(), Some("1.2.3"));
    }
}
