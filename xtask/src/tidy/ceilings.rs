//! Counts per crate that may only fall, against the ceilings in `xtask/ceilings.json`.
//!
//! A crate without an entry there has to meet the targets. `cargo xtask lint --tidy --lower` writes
//! today's counts as the new ceilings where they are lower.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::folders::{MAX_ENTRIES, crowded};
use super::imports::{Sources, cycles_across_folders, cycles_of_folders};
use super::language::{Idioms, replaced_names, wide_lines};
use super::source::{comments, is_test_file, strings};
use crate::process;

#[cfg(test)]
#[path = "ceilings_tests.rs"]
mod tests;

pub(super) const FILE: &str = "xtask/ceilings.json";
const TARGET_IDIOMS: usize = 20;
const TARGET_DOCS_WORDS: usize = 24_000;

/// The counts of one crate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Counts {
    /// Idioms in 1,000 comment lines.
    comment_idioms: usize,
    /// Messages with an idiom, of 1,000 string literals of four words and more.
    message_idioms: usize,
    /// Lines of Rust that are wider than 100 columns.
    wide_lines: usize,
    /// Uses of replaced identifiers.
    replaced_names: usize,
    /// Entries above the limit, over all folders of `src/`.
    extra_entries: usize,
    /// Files in import cycles that span folders.
    files_in_cycles: usize,
    /// Folders directly in `src/` that need each other.
    folders_in_cycles: usize,
}

impl Counts {
    const TARGETS: Self = Self {
        comment_idioms: TARGET_IDIOMS,
        message_idioms: TARGET_IDIOMS,
        wide_lines: 0,
        replaced_names: 0,
        extra_entries: 0,
        files_in_cycles: 0,
        folders_in_cycles: 0,
    };

    fn by_name(self) -> [(&'static str, usize); 7] {
        [
            ("idioms in 1,000 comment lines", self.comment_idioms),
            ("messages with an idiom in 1,000", self.message_idioms),
            ("wide lines", self.wide_lines),
            ("uses of replaced names", self.replaced_names),
            ("entries above the limit of a folder", self.extra_entries),
            (
                "files in import cycles across folders",
                self.files_in_cycles,
            ),
            ("folders in import cycles", self.folders_in_cycles),
        ]
    }

    /// Returns the lower of two values for each count, but not below the targets.
    fn lowered(self, other: Self) -> Self {
        let lower = |one: usize, other: usize, target: usize| one.min(other).max(target);
        let targets = Self::TARGETS;
        Self {
            comment_idioms: lower(
                self.comment_idioms,
                other.comment_idioms,
                targets.comment_idioms,
            ),
            message_idioms: lower(
                self.message_idioms,
                other.message_idioms,
                targets.message_idioms,
            ),
            wide_lines: self.wide_lines.min(other.wide_lines),
            replaced_names: self.replaced_names.min(other.replaced_names),
            extra_entries: self.extra_entries.min(other.extra_entries),
            files_in_cycles: self.files_in_cycles.min(other.files_in_cycles),
            folders_in_cycles: self.folders_in_cycles.min(other.folders_in_cycles),
        }
    }
}

/// The counts of the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ceilings {
    /// Words in all Markdown files below `docs/`.
    docs_words: usize,
    /// Lines of Markdown that are wider than 100 columns, outside tables.
    wide_markdown_lines: usize,
    crates: BTreeMap<String, Counts>,
}

/// Measures the workspace: adds files, then compares with the ceilings.
#[derive(Default)]
pub(super) struct Measurement {
    docs_words: usize,
    wide_markdown_lines: usize,
    crates: BTreeMap<String, CrateFiles>,
    /// Places that count, for `--list`.
    places: Vec<String>,
}

/// The files of one crate, without tests.
#[derive(Default)]
struct CrateFiles {
    counts: Counts,
    comment_lines: usize,
    idioms: usize,
    messages: usize,
    messages_with_idiom: usize,
    paths: Vec<String>,
    sources: Sources,
}

impl Measurement {
    /// Adds a Markdown file.
    pub(super) fn add_markdown(&mut self, file: &str, text: &str) {
        if file.starts_with("docs/") {
            self.docs_words += text.split_whitespace().count();
        }
        for line in wide_lines(file, text) {
            self.wide_markdown_lines += 1;
            self.places.push(format!("{file}:{line}: wide"));
        }
    }

    /// Adds a Rust file. Files of tests are measured by their width only.
    pub(super) fn add_rust(&mut self, file: &str, text: &str, idioms: &Idioms) -> Result<()> {
        let Some((name, path)) = crate_and_path(file) else {
            return Ok(());
        };
        let files = self.crates.entry(name.to_owned()).or_default();
        for line in wide_lines(file, text) {
            files.counts.wide_lines += 1;
            self.places.push(format!("{file}:{line}: wide"));
        }
        if is_test_file(file) {
            return Ok(());
        }
        let parsed = syn::parse_file(text).with_context(|| format!("{file} is not valid Rust"))?;
        let (comments, strings) = (comments(text), strings(&parsed));
        files.comment_lines += comments.len();
        files.idioms += idioms.in_comments(&comments);
        let (messages, with_idiom) = idioms.in_messages(&strings);
        files.messages += messages;
        files.messages_with_idiom += with_idiom;
        for prose in idioms.lines(&comments).chain(idioms.lines(&strings)) {
            self.places
                .push(format!("{file}:{}: idiom: {}", prose.line, prose.text));
        }
        let tokens = text
            .parse()
            .map_err(|error| anyhow::anyhow!("{file} is not valid Rust: {error}"))?;
        let replaced = replaced_names(tokens);
        files.counts.replaced_names += replaced.len();
        for name in replaced {
            self.places
                .push(format!("{file}:{}: {}", name.line, name.text));
        }
        if let Some(path) = path {
            files.paths.push(path.to_owned());
            files.sources.insert(path.to_owned(), parsed);
        }
        Ok(())
    }

    fn finish(mut self) -> (Ceilings, Vec<String>) {
        let mut crates = BTreeMap::new();
        for (name, mut files) in self.crates {
            let per_thousand = |part: usize, all: usize| (1000 * part).div_ceil(all.max(1));
            files.counts.comment_idioms = per_thousand(files.idioms, files.comment_lines);
            files.counts.message_idioms = per_thousand(files.messages_with_idiom, files.messages);
            for (folder, entries) in crowded(files.paths.iter().map(String::as_str)) {
                files.counts.extra_entries += entries - MAX_ENTRIES;
                let place = format!("{name}/src/{folder}: {entries} entries");
                self.places.push(place);
            }
            for cycle in cycles_across_folders(&files.sources) {
                files.counts.files_in_cycles += cycle.len();
                let place = format!("{name}: import cycle: {}", cycle.join(", "));
                self.places.push(place);
            }
            for cycle in cycles_of_folders(&files.sources) {
                files.counts.folders_in_cycles += cycle.len();
                let place = format!("{name}: folders in a cycle: {}", cycle.join(", "));
                self.places.push(place);
            }
            crates.insert(name, files.counts);
        }
        let ceilings = Ceilings {
            docs_words: self.docs_words,
            wide_markdown_lines: self.wide_markdown_lines,
            crates,
        };
        (ceilings, self.places)
    }

    /// Returns the counts above their ceilings. `lower` writes the lower ones to the file first,
    /// and `list` prints every place that counts.
    pub(super) fn check(self, lower: bool, list: bool) -> Result<Vec<String>> {
        let path = process::root().join(FILE);
        let text = fs::read_to_string(&path).with_context(|| format!("{FILE} is missing"))?;
        let ceilings: Ceilings =
            serde_json::from_str(&text).with_context(|| format!("{FILE} is not valid"))?;
        let (counts, places) = self.finish();
        if list {
            for place in places {
                println!("{place}");
            }
        }
        let problems = above(&counts, &ceilings);
        if lower {
            let text = serde_json::to_string_pretty(&lowered(&counts, &ceilings))?;
            fs::write(&path, text + "\n")
                .with_context(|| format!("{FILE} could not be written"))?;
        }
        Ok(problems)
    }
}

/// Returns the crate of a file, and the file's path below `src/` unless it is outside of it.
fn crate_and_path(file: &str) -> Option<(&str, Option<&str>)> {
    let rest = file.strip_prefix("crates/").unwrap_or(file);
    let (name, rest) = rest.split_once('/')?;
    Some((name, rest.strip_prefix("src/")))
}

fn above(counts: &Ceilings, ceilings: &Ceilings) -> Vec<String> {
    let mut problems = Vec::new();
    let mut compare = |what: &str, count: usize, ceiling: usize, target: usize| {
        let ceiling = ceiling.max(target);
        if count > ceiling {
            problems.push(format!("{what}: {count}, at most {ceiling} are allowed"));
        }
    };
    compare(
        "words in docs/",
        counts.docs_words,
        ceilings.docs_words,
        TARGET_DOCS_WORDS,
    );
    compare(
        "wide lines of Markdown",
        counts.wide_markdown_lines,
        ceilings.wide_markdown_lines,
        0,
    );
    for (name, counts) in &counts.crates {
        let ceiling = ceilings.crates.get(name).copied().unwrap_or_default();
        let all = counts.by_name().into_iter().zip(ceiling.by_name());
        for (((what, count), (_, ceiling)), (_, target)) in all.zip(Counts::TARGETS.by_name()) {
            compare(&format!("{name}: {what}"), count, ceiling, target);
        }
    }
    problems
}

fn lowered(counts: &Ceilings, ceilings: &Ceilings) -> Ceilings {
    let crates = counts.crates.iter().map(|(name, counts)| {
        let ceiling = ceilings
            .crates
            .get(name)
            .copied()
            .unwrap_or(Counts::TARGETS);
        (name.clone(), counts.lowered(ceiling))
    });
    Ceilings {
        docs_words: counts.docs_words.min(ceilings.docs_words),
        wide_markdown_lines: counts.wide_markdown_lines.min(ceilings.wide_markdown_lines),
        crates: crates
            .filter(|(_, counts)| *counts != Counts::TARGETS)
            .collect(),
    }
}
