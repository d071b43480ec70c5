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
const TARGET_DOCS_WORDS: usize = 24_000;

/// The metrics of a crate: key in the file, description, and target.
const METRICS: [(&str, &str, usize); 7] = [
    (COMMENT_IDIOMS, "idioms in 1,000 comment lines", 20),
    (MESSAGE_IDIOMS, "messages with an idiom in 1,000", 20),
    (WIDE_LINES, "wide lines", 0),
    (REPLACED_NAMES, "uses of replaced names", 0),
    (EXTRA_ENTRIES, "entries above the limit of a folder", 0),
    (FILES_IN_CYCLES, "files in import cycles across folders", 0),
    (FOLDERS_IN_CYCLES, "folders in import cycles", 0),
];
const COMMENT_IDIOMS: &str = "comment_idioms";
const MESSAGE_IDIOMS: &str = "message_idioms";
const WIDE_LINES: &str = "wide_lines";
const REPLACED_NAMES: &str = "replaced_names";
const EXTRA_ENTRIES: &str = "extra_entries";
const FILES_IN_CYCLES: &str = "files_in_cycles";
const FOLDERS_IN_CYCLES: &str = "folders_in_cycles";

/// The counts of one crate by the keys of [`METRICS`]. A missing key is 0.
type Counts = BTreeMap<String, usize>;

fn count(counts: &Counts, key: &str) -> usize {
    counts.get(key).copied().unwrap_or_default()
}

fn add(counts: &mut Counts, key: &str, number: usize) {
    if number > 0 {
        *counts.entry(key.to_owned()).or_default() += number;
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
            add(&mut files.counts, WIDE_LINES, 1);
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
        add(&mut files.counts, REPLACED_NAMES, replaced.len());
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
            let idioms = per_thousand(files.idioms, files.comment_lines);
            add(&mut files.counts, COMMENT_IDIOMS, idioms);
            let idioms = per_thousand(files.messages_with_idiom, files.messages);
            add(&mut files.counts, MESSAGE_IDIOMS, idioms);
            for (folder, entries) in crowded(files.paths.iter().map(String::as_str)) {
                add(&mut files.counts, EXTRA_ENTRIES, entries - MAX_ENTRIES);
                let place = format!("{name}/src/{folder}: {entries} entries");
                self.places.push(place);
            }
            for cycle in cycles_across_folders(&files.sources) {
                add(&mut files.counts, FILES_IN_CYCLES, cycle.len());
                let place = format!("{name}: import cycle: {}", cycle.join(", "));
                self.places.push(place);
            }
            for cycle in cycles_of_folders(&files.sources) {
                add(&mut files.counts, FOLDERS_IN_CYCLES, cycle.len());
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
        for (key, what, target) in METRICS {
            let ceiling = ceilings.crates.get(name);
            let ceiling = ceiling.map_or(0, |ceiling| count(ceiling, key));
            compare(
                &format!("{name}: {what}"),
                count(counts, key),
                ceiling,
                target,
            );
        }
    }
    problems
}

/// Returns the lower of the counts and the ceilings. Omits what meets its target.
fn lowered(counts: &Ceilings, ceilings: &Ceilings) -> Ceilings {
    let mut crates = BTreeMap::new();
    for (name, ceiling) in &ceilings.crates {
        let Some(counts) = counts.crates.get(name) else {
            continue;
        };
        let lower =
            |(key, ceiling): (&String, &usize)| (key.clone(), count(counts, key).min(*ceiling));
        let target = |key: &str| {
            METRICS
                .iter()
                .find(|metric| metric.0 == key)
                .map_or(0, |it| it.2)
        };
        let lowered: Counts = ceiling
            .iter()
            .map(lower)
            .filter(|(key, number)| *number > target(key))
            .collect();
        if !lowered.is_empty() {
            crates.insert(name.clone(), lowered);
        }
    }
    Ceilings {
        docs_words: counts.docs_words.min(ceilings.docs_words),
        wide_markdown_lines: counts.wide_markdown_lines.min(ceilings.wide_markdown_lines),
        crates,
    }
}
