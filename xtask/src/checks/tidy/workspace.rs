//! Checks the rules that apply to several files together: idioms in a crate, entries of folders,
//! import cycles, and words in docs/.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};

use super::folders::{MAX_ENTRIES, find_crowded_folders};
use super::imports::{Sources, find_cycles_across_folders, find_cycles_of_folders};
use super::language::{IdiomFinder, find_replaced_names, find_wide_lines};
use super::source::{Prose, extract_comments, extract_strings, is_test_file};
use super::{Problem, problem};

#[cfg(test)]
#[path = "workspace_tests.rs"]
mod tests;

const MAX_DOCS_WORDS: usize = 24_000;

/// Maximum number of idioms in 1,000 comment lines, and of messages with an idiom in 1,000
/// messages.
const MAX_IDIOMS: usize = 20;

/// Maximum number of lines with an idiom in 1,000 lines of the web page, recipes and manifests.
const MAX_IDIOMS_ELSEWHERE: usize = 5;

/// Extensions of other files than Rust and Markdown that are searched for idioms.
const OTHER_ENDINGS: [&str; 7] = ["css", "html", "js", "sql", "toml", "yaml", "yml"];

/// Parts of the paths of files that are not searched for idioms: third-party files, and
/// conversations in everyday language.
const OTHER_EXCEPTIONS: [&str; 3] = ["/vendor/", "/evals/", "docs/evaluations/"];

/// Crates whose strings are test data: conversations in everyday language.
const STRINGS_ARE_DATA: [&str; 2] = ["fuzz", "testkit"];

/// A problem, and the file or crate that has it.
pub(super) type PlacedProblem = (String, Problem);

/// Counts and problems of the files that were added so far.
#[derive(Default)]
pub(super) struct Workspace {
    docs_words: usize,
    other_lines: usize,
    other_idioms: usize,
    crates: BTreeMap<String, CrateFiles>,
    problems: Vec<PlacedProblem>,
    /// Lines with an idiom, for `--list`.
    pub(super) idioms: Vec<String>,
}

/// The files of one crate, without tests.
#[derive(Default)]
struct CrateFiles {
    comment_lines: usize,
    idioms: usize,
    messages: usize,
    messages_with_idiom: usize,
    paths: Vec<String>,
    sources: Sources,
}

impl Workspace {
    pub(super) fn add_markdown(&mut self, file: &str, text: &str) {
        if file.starts_with("docs/") {
            self.docs_words += text.split_whitespace().count();
        }
        self.add_wide_lines(file, text);
    }

    /// Adds a file with one of the extensions [`OTHER_ENDINGS`]. Skips other files.
    pub(super) fn add_other(&mut self, file: &str, text: &str, idioms: &IdiomFinder) {
        let ending = file.rsplit('.').next().unwrap_or_default();
        let is_exception = OTHER_EXCEPTIONS.iter().any(|it| file.contains(it));
        if !OTHER_ENDINGS.contains(&ending) || is_exception {
            return;
        }
        let prose = |(text, line): (&str, usize)| Prose {
            line,
            text: text.trim().to_owned(),
        };
        let lines: Vec<Prose> = text.lines().zip(1..).map(prose).collect();
        self.other_lines += lines.len();
        for prose in idioms.find_lines(&lines) {
            self.other_idioms += 1;
            self.idioms
                .push(format!("{file}:{}: idiom: {}", prose.line, prose.text));
        }
    }

    fn add_wide_lines(&mut self, file: &str, text: &str) {
        let wide = find_wide_lines(file, text).into_iter();
        let problems = wide.map(|line| problem(line, "the line is wider than 100 columns"));
        self.problems
            .extend(problems.map(|problem| (file.to_owned(), problem)));
    }

    /// Adds a Rust file. Skips tests.
    pub(super) fn add_rust(&mut self, file: &str, text: &str, idioms: &IdiomFinder) -> Result<()> {
        let Some((name, path)) = crate_and_path(file) else {
            return Ok(());
        };
        if is_test_file(file) {
            return Ok(());
        }
        self.add_wide_lines(file, text);
        let parsed = syn::parse_file(text).with_context(|| format!("{file} is not valid Rust"))?;
        let (comments, mut strings) = (extract_comments(text, &parsed), extract_strings(&parsed));
        if STRINGS_ARE_DATA.contains(&name) {
            strings.clear();
        }
        for prose in idioms
            .find_lines(&comments)
            .chain(idioms.find_lines(&strings))
        {
            self.idioms
                .push(format!("{file}:{}: idiom: {}", prose.line, prose.text));
        }
        let tokens = text
            .parse()
            .map_err(|error| anyhow::anyhow!("{file} is not valid Rust: {error}"))?;
        let replaced = find_replaced_names(tokens).into_iter();
        let problems = replaced.map(|name| (file.to_owned(), problem(name.line, name.text)));
        self.problems.extend(problems);
        let files = self.crates.entry(name.to_owned()).or_default();
        files.comment_lines += comments.len();
        files.idioms += idioms.count_in_comments(&comments);
        let (messages, with_idiom) = idioms.count_in_messages(&strings);
        files.messages += messages;
        files.messages_with_idiom += with_idiom;
        if let Some(path) = path {
            files.paths.push(path.to_owned());
            files.sources.insert(path.to_owned(), parsed);
        }
        Ok(())
    }

    /// Returns the problems of all files.
    pub(super) fn finish(mut self) -> Vec<PlacedProblem> {
        if self.docs_words > MAX_DOCS_WORDS {
            let words = self.docs_words;
            let message = format!("{words} words, at most {MAX_DOCS_WORDS} are allowed");
            self.problems
                .push(("docs/".to_owned(), problem(0, message)));
        }
        let (idioms, lines) = (self.other_idioms, self.other_lines);
        if 1000 * idioms > MAX_IDIOMS_ELSEWHERE * lines {
            let message = format!(
                "{idioms} of {lines} lines have an idiom, more than {MAX_IDIOMS_ELSEWHERE} in \
                 1,000 (`--list` prints them)"
            );
            let place = "web page, recipes and manifests".to_owned();
            self.problems.push((place, problem(0, message)));
        }
        for (name, files) in self.crates {
            let messages = files.problems().into_iter();
            self.problems
                .extend(messages.map(|message| (name.clone(), problem(0, message))));
        }
        self.problems
    }
}

impl CrateFiles {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let (idioms, lines) = (self.idioms, self.comment_lines);
        if 1000 * idioms > MAX_IDIOMS * lines {
            problems.push(format!(
                "{idioms} idioms in {lines} comment lines, more than {MAX_IDIOMS} in 1,000 \
                 (`--list` prints them)"
            ));
        }
        let (with_idiom, messages) = (self.messages_with_idiom, self.messages);
        if 1000 * with_idiom > MAX_IDIOMS * messages {
            problems.push(format!(
                "{with_idiom} of {messages} messages have an idiom, more than {MAX_IDIOMS} in \
                 1,000 (`--list` prints them)"
            ));
        }
        for (folder, entries) in find_crowded_folders(self.paths.iter().map(String::as_str)) {
            problems.push(format!(
                "src/{folder} has {entries} entries, at most {MAX_ENTRIES} are allowed"
            ));
        }
        for cycle in find_cycles_across_folders(&self.sources) {
            problems.push(format!(
                "import cycle of files in different folders: {}",
                cycle.join(", ")
            ));
        }
        for cycle in find_cycles_of_folders(&self.sources) {
            problems.push(format!("import cycle of folders: {}", cycle.join(", ")));
        }
        problems
    }
}

/// Returns the crate of a file, and the path of the file relative to `src/`. The path is `None` for
/// a file outside of `src/`.
fn crate_and_path(file: &str) -> Option<(&str, Option<&str>)> {
    let rest = file.strip_prefix("crates/").unwrap_or(file);
    let (name, rest) = rest.split_once('/')?;
    Some((name, rest.strip_prefix("src/")))
}
