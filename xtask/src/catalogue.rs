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

/// How many lines of a difference are shown.
const MAX_SHOWN_LINES: usize = 20;

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
            // A checkout may have turned the ends of lines.
            let committed = fs::read_to_string(&path).unwrap_or_default();
            let differences = differences(&committed.replace("\r\n", "\n"), text);
            if !differences.is_empty() {
                bail!(
                    "{name} differs from litellm {} with {OVERLAY}: run `cargo xtask catalogue` and \
                     commit its output\n{}",
                    source::VERSION,
                    differences.join("\n")
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

/// The lines that one of two texts has and the other has not, the first few of them.
fn differences(committed: &str, made: &str) -> Vec<String> {
    if committed == made {
        return Vec::new();
    }
    let only_in = |one: &str, other: &str, mark: char| -> Vec<String> {
        let other: std::collections::HashSet<&str> = other.lines().collect();
        one.lines()
            .filter(|line| !other.contains(line))
            .map(|line| format!("{mark} {line}"))
            .collect()
    };
    let mut lines = only_in(committed, made, '-');
    lines.extend(only_in(made, committed, '+'));
    if lines.is_empty() {
        lines.push("the same lines in another order".to_owned());
    }
    if lines.len() > MAX_SHOWN_LINES {
        let more = lines.len() - MAX_SHOWN_LINES;
        lines.truncate(MAX_SHOWN_LINES);
        lines.push(format!("… and {more} lines more"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_the_lines() {
        assert!(differences("a\nb\n", "a\nb\n").is_empty());
        assert_eq!(differences("a\nb\n", "b\nc\n"), ["- a", "+ c"]);
        assert_eq!(differences("a\nb\n", "b\na\n").len(), 1);
        let many = "line\n".repeat(100);
        let shown = differences(&many, "");
        assert_eq!(shown.len(), MAX_SHOWN_LINES + 1);
        assert!(
            shown[MAX_SHOWN_LINES].contains("80 lines more"),
            "{shown:?}"
        );
    }

    #[test]
    fn what_is_committed_is_there() {
        for name in [DATA, OVERLAY, LICENCE] {
            assert!(folder().join(name).is_file(), "{name}");
        }
        let licence = fs::read_to_string(folder().join(LICENCE)).unwrap();
        assert!(licence.contains("MIT License"), "{licence}");
    }
}
