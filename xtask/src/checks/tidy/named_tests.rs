//! Tests that the documentation names are there: a table that says which test shows what is worth
//! nothing once the tests have other names.

use std::collections::HashSet;

use super::{Problem, numbered, problem};

#[cfg(test)]
#[path = "named_tests_tests.rs"]
mod tests;

/// What the last column of such a table is called.
const TESTS: &str = "test";

/// The functions and files that are there, and the tests that are named, in all files.
#[derive(Debug, Default)]
pub(super) struct NamedTests {
    defined: HashSet<String>,
    /// File, line, name.
    named: Vec<(String, usize, String)>,
}

impl NamedTests {
    /// Takes in what a Rust file defines; its own name stands for all of its tests.
    pub(super) fn source(&mut self, file: &str, text: &str) {
        let module = file.strip_suffix("/main.rs").or(file.strip_suffix(".rs"));
        if let Some(name) = module.and_then(|module| module.rsplit('/').next()) {
            self.defined.insert(name.to_owned());
        }
        for (_, line) in numbered(text) {
            let code = line.trim();
            if code.starts_with("//") {
                continue;
            }
            let rest = code
                .strip_prefix("fn ")
                .or(code.split_once(" fn ").map(|it| it.1));
            let name = rest.and_then(|rest| rest.split(|c: char| !is_of_a_name(c)).next());
            self.defined.extend(name.map(str::to_owned));
        }
    }

    /// Takes in what the tables of a Markdown file name as tests.
    pub(super) fn document(&mut self, file: &str, text: &str) {
        let mut in_table = false;
        for (at, line) in numbered(text) {
            let cells = line.trim().strip_prefix('|');
            let last = cells.and_then(|cells| cells.strip_suffix('|')?.rsplit('|').next());
            let Some(last) = last.map(str::trim) else {
                in_table = false;
                continue;
            };
            if !in_table {
                in_table = last == TESTS;
                continue;
            }
            // Every second piece is between backticks. Names of files and crates are ignored.
            let names = last.split('`').skip(1).step_by(2);
            for name in names.filter(|name| name.contains('_') && name.chars().all(is_of_a_name)) {
                self.named.push((file.to_owned(), at, name.to_owned()));
            }
        }
    }

    /// The tests that are named and are nowhere: file and problem.
    pub(super) fn missing(self) -> Vec<(String, Problem)> {
        let Self { defined, named } = self;
        named
            .into_iter()
            .filter(|(_, _, name)| !defined.contains(name))
            .map(|(file, at, name)| {
                let message = format!("no test is named `{name}`: name a test that shows this");
                (file, problem(at, message))
            })
            .collect()
    }
}

fn is_of_a_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
