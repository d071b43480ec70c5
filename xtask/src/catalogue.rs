//! `cargo xtask catalogue`: generates the data file of `providers-common` with the capabilities and
//! prices of models.
//!
//! The facts come from the price list that litellm ships, in the version that `source` pins. The
//! overlay beside the data is written by hand and takes precedence. The data is committed, so that
//! builds and tests do not need the source.

mod entry;
mod overlay;
mod source;
mod table;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use crate::process;

/// The data, made here and read by the crate.
const DATA: &str = "models.tsv";
/// Ours, written by hand.
const OVERLAY: &str = "overlay.json";
/// Under which the source may be copied.
const LICENCE: &str = "LICENSE-litellm";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Write nothing; fail if the data differs from the source and the overlay
    #[arg(long)]
    check: bool,
}

/// Writes or checks the data. Needs the network only while the source is not in the target folder.
pub(crate) fn run(args: &Args) -> Result<()> {
    let folder = folder();
    let overlay = fs::read_to_string(folder.join(OVERLAY))
        .with_context(|| format!("{OVERLAY} could not be read"))?;
    let source = source::load()?;
    let data = table::make(&source.models, &overlay)?;
    for (name, text) in [(DATA, &data), (LICENCE, &source.licence)] {
        let path = folder.join(name);
        if args.check {
            // A checkout may have converted the line ends.
            let committed = fs::read_to_string(&path).unwrap_or_default();
            if committed.replace("\r\n", "\n") != *text {
                bail!(
                    "{name} differs from litellm {} with {OVERLAY}: run `cargo xtask catalogue` \
                     and commit its output",
                    source::VERSION
                );
            }
        } else {
            fs::write(&path, text)
                .with_context(|| format!("{} could not be written", path.display()))?;
        }
    }
    let models = data.lines().filter(|line| !line.starts_with('#')).count();
    println!("{DATA}: {models} models, {} bytes", data.len());
    Ok(())
}

fn folder() -> PathBuf {
    process::root().join("crates/providers-common/src/catalog")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_committed_is_there() {
        for name in [DATA, OVERLAY, LICENCE] {
            assert!(folder().join(name).is_file(), "{name}");
        }
        let licence = fs::read_to_string(folder().join(LICENCE)).unwrap();
        assert!(licence.contains("MIT License"), "{licence}");
    }
}
