//! Checks that the tests that tables of the documentation name exist, so that a renamed test is
//! also renamed in the documentation.

use std::collections::HashSet;

use super::{Problem, numbered_lines, problem};

#[cfg(test)]
#[path = "named_tests_tests.rs"]
mod tests;

/// Title of the last column in a table that names tests.
const TESTS: &str = "test";

/// Names of all functions and Rust files, and the tests that tables in Markdown files name.
#[derive(Debug, Default)]
pub(super) struct NamedTests {
    defined: HashSet<String>,
    /// Tests that tables name: file and line of the table row, and name of the test.
    named: Vec<(String, usize, String)>,
}

impl NamedTests {
    /// Adds the names of the functions in a Rust file. Also adds the name of the file, with which a
    /// table can name all tests of the file.
    pub(super) fn add_defined_names(&mut self, file: &str, text: &str) {
        let module = file.strip_suffix("/main.rs").or(file.strip_suffix(".rs"));
        if let Some(name) = module.and_then(|module| module.rsplit('/').next()) {
            self.defined.insert(name.to_owned());
        }
        for (_, line) in numbered_lines(text) {
            let code = line.trim();
            if code.starts_with("//") {
                continue;
            }
            let rest = code
                .strip_prefix("fn ")
                .or(code.split_once(" fn ").map(|it| it.1));
            let name = rest.and_then(|rest| rest.split(|c: char| !is_name_character(c)).next());
            self.defined.extend(name.map(str::to_owned));
        }
    }

    /// Adds the names of tests in the tables of a Markdown file.
    pub(super) fn add_table_names(&mut self, file: &str, text: &str) {
        let mut in_table = false;
        for (at, line) in numbered_lines(text) {
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
            for name in
                names.filter(|name| name.contains('_') && name.chars().all(is_name_character))
            {
                self.named.push((file.to_owned(), at, name.to_owned()));
            }
        }
    }

    /// Returns a problem for each test that a table names and that does not exist.
    pub(super) fn missing_tests(self) -> Vec<(String, Problem)> {
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

fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
