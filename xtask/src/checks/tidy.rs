//! Checks the repository's own rules, which neither the compiler nor clippy checks.

use anyhow::{Result, bail};

use crate::files;
use language::IdiomFinder;
use named_tests::NamedTests;
use workspace::Workspace;

mod folders;
mod imports;
mod language;
mod named_tests;
mod source;
#[cfg(test)]
#[path = "tidy_tests.rs"]
mod tests;
mod workspace;

/// Maximum number of lines of a Rust file. Longer files must be split.
const MAX_LINES: usize = 800;

/// Words that mark unfinished code. This and the following constants consist of pieces, so that
/// this file does not break the rules.
const UNFINISHED: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];
const SLEEP: &str = concat!("sle", "ep(");
const MACHINE_PATHS: [&str; 2] = [concat!("/wo", "rk/"), concat!("/ro", "ot/")];
const REGISTRY_HOSTS: [&str; 8] = [
    concat!("index.cra", "tes.io"),
    concat!("static.cra", "tes.io"),
    concat!("registry.npm", "js.org"),
    concat!("registry.yarn", "pkg.com"),
    concat!("py", "pi.org"),
    concat!("files.python", "hosted.org"),
    concat!("deb.deb", "ian.org"),
    concat!("proxy.go", "lang.org"),
];

/// File names without a topic, which attract unrelated code.
const DUMPING_GROUNDS: [&str; 6] = ["util", "utils", "helper", "helpers", "common", "misc"];

/// A violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Problem {
    /// Line number, starting at 1. The number 0 stands for the whole file.
    line: usize,
    message: String,
}

/// Checks every file of the repository. `list` also prints the lines with an idiom.
pub(crate) fn run(list: bool) -> Result<()> {
    let ours = files::list_repository_files()?;
    let mut problems = Vec::new();
    let mut named_tests = NamedTests::default();
    let mut workspace = Workspace::default();
    let idioms = IdiomFinder::new()?;
    for file in &ours {
        let Some(text) = files::read_text(file)? else {
            continue;
        };
        let found = check_file(file, &text);
        problems.extend(found.into_iter().map(|problem| (file.clone(), problem)));
        if files::is_rust(file) {
            named_tests.add_defined_names(file, &text);
            workspace.add_rust(file, &text, &idioms)?;
        } else if files::is_markdown(file) {
            named_tests.add_table_names(file, &text);
            workspace.add_markdown(file, &text);
        } else {
            workspace.add_other(file, &text, &idioms);
        }
    }
    problems.extend(named_tests.missing_tests());
    if list {
        for line in &workspace.idioms {
            println!("{line}");
        }
    }
    problems.extend(workspace.finish());
    for (file, Problem { line, message }) in &problems {
        eprintln!("{file}:{line}: {message}");
    }
    if !problems.is_empty() {
        let problems = problems.len();
        bail!("{problems} violations of the repository's rules (xtask/src/checks/tidy.rs)");
    }
    println!("tidy: {} files, no problems", ours.len());
    Ok(())
}

/// Checks all rules for single files. `file` is the path relative to the repository, with `/`.
fn check_file(file: &str, text: &str) -> Vec<Problem> {
    let mut problems = find_machine_specific_text(text);
    if files::is_rust(file) {
        problems.extend(check_file_length(text));
        problems.extend(check_file_name(file));
        problems.extend(find_unfinished_marks(text));
        problems.extend(find_sleeps_in_tests(file, text));
    }
    let place: Vec<&str> = file.split('/').collect();
    match place[..] {
        ["Cargo.toml"] => problems.extend(find_dependencies_without_reason(text)),
        ["crates", _, "Cargo.toml"] | ["xtask", "Cargo.toml"] => {
            problems.extend(check_workspace_lints(text));
        }
        ["crates", _, "src", "lib.rs"] => problems.extend(check_missing_docs_lint(text)),
        _ => {}
    }
    problems
}

fn problem(line: usize, message: impl Into<String>) -> Problem {
    let message = message.into();
    Problem { line, message }
}

/// Returns the lines of a text with their numbers, starting at 1.
fn numbered_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(at, line)| (at + 1, line))
}

fn check_file_length(text: &str) -> Option<Problem> {
    let lines = text.lines().count();
    let message = format!("{lines} lines, more than {MAX_LINES}: split by topic");
    (lines > MAX_LINES).then(|| problem(lines, message))
}

fn check_file_name(file: &str) -> Option<Problem> {
    let stem = file.strip_suffix("/mod.rs").or(file.strip_suffix(".rs"))?;
    let name = stem.rsplit('/').next()?;
    let message = format!("`{name}` has no topic: name the file after its topic");
    DUMPING_GROUNDS.contains(&name).then(|| problem(0, message))
}

fn find_unfinished_marks(text: &str) -> Vec<Problem> {
    let is_part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let marks = numbered_lines(text).filter_map(|(at, line)| {
        let mut words = line.split(|c| !is_part_of_word(c));
        Some((at, words.find(|word| UNFINISHED.contains(word))?))
    });
    marks
        .map(|(at, mark)| problem(at, format!("{mark}: finish it, or open an issue")))
        .collect()
}

/// Finds calls of `sleep` in tests. Tests that wait for real time are slow, and fail on a busy
/// machine.
fn find_sleeps_in_tests(file: &str, text: &str) -> Vec<Problem> {
    let mut in_tests = file.contains("/tests/") || file.ends_with("tests.rs");
    let mut problems = Vec::new();
    let mut before = ["", ""];
    for (at, line) in numbered_lines(text) {
        let code = line.trim();
        // An inline test module is the last item of its file, so all following lines are tests.
        if before[1] == "#[cfg(test)]" && code.starts_with("mod ") && code.ends_with('{') {
            in_tests = true;
        }
        let excused = line.contains("// sleep: ") || before[1].starts_with("// sleep: ");
        if in_tests && !excused && !code.starts_with("//") && calls_sleep(code) {
            problems.push(problem(
                at,
                "a test waits for real time: wait for the event itself, or pause tokio's clock; \
                 if the wait is required, give the reason with `// sleep: reason`",
            ));
        }
        before = [before[1], code];
    }
    problems
}

fn calls_sleep(code: &str) -> bool {
    code.match_indices(SLEEP).any(|(at, _)| {
        let before = &code[..at];
        !before.ends_with(|c: char| c.is_alphanumeric() || c == '_') && !before.ends_with("fn ")
    })
}

/// Finds paths and package registries of the developer's machine, which other machines do not have.
fn find_machine_specific_text(text: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (at, line) in numbered_lines(text) {
        // A match that follows one of these characters is the middle of a longer path and is
        // allowed.
        let inside_a_path = |c: char| c.is_alphanumeric() || "_.-~*}]>".contains(c);
        for path in MACHINE_PATHS {
            let mut found = line.match_indices(path);
            if found.any(|(at, _)| !line[..at].ends_with(inside_a_path)) {
                problems.push(problem(at, format!("`{path}` is a machine-specific path")));
            }
        }
        for host in REGISTRY_HOSTS {
            if line.contains(host) {
                let message = format!("`{host}`: name packages, not registry hosts");
                problems.push(problem(at, message));
            }
        }
    }
    problems
}

fn check_workspace_lints(text: &str) -> Option<Problem> {
    let mut in_lints = false;
    for line in text.lines().map(str::trim) {
        let line: String = line.split_whitespace().collect();
        if line.starts_with('[') {
            in_lints = line == "[lints]";
        }
        if line == "lints.workspace=true" || (in_lints && line == "workspace=true") {
            return None;
        }
    }
    let message = "inherit the workspace lints: `[lints]` with `workspace = true`";
    Some(problem(0, message))
}

fn check_missing_docs_lint(text: &str) -> Option<Problem> {
    let mut lines = text.lines().map(str::trim);
    let is_denied = lines.any(|line| line == "#![deny(missing_docs)]");
    let message = "a library must have `#![deny(missing_docs)]` in its lib.rs";
    (!is_denied).then(|| problem(0, message))
}

/// Finds third-party dependencies without a comment that states their reason. The comment is above
/// the line of the dependency, or above its group of lines. Empty lines separate groups.
fn find_dependencies_without_reason(text: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    let (mut in_section, mut has_reason) = (false, false);
    for (at, line) in numbered_lines(text) {
        let line = line.trim();
        if line.starts_with('[') {
            in_section = line == "[workspace.dependencies]";
            has_reason = false;
        } else if line.is_empty() {
            has_reason = false;
        } else if line.starts_with('#') {
            has_reason = true;
        } else if in_section && !has_reason && !line.starts_with("switchboard-") {
            // A line without `=` continues the list of the line before and is not a dependency.
            if let Some((name, _)) = line.split_once('=') {
                let name = name.trim();
                let message = format!("`{name}` needs a comment above it that states the reason");
                problems.push(problem(at, message));
            }
        }
    }
    problems
}
