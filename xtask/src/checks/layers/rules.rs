//! The rules, without any reading or printing.

use std::fmt;

use super::table::{BANNED, CONFINED, ROWS, Row, TESTKIT};

/// The workspace crates and their dependencies.
#[derive(Debug, Clone, Default)]
pub(super) struct Graph {
    pub(super) crates: Vec<Crate>,
}

#[derive(Debug, Clone)]
pub(super) struct Crate {
    /// Its folder in `crates/`; any other place as a path from the root.
    pub(super) folder: String,
    pub(super) package: String,
    pub(super) dependencies: Vec<Dependency>,
}

#[derive(Debug, Clone)]
pub(super) struct Dependency {
    pub(super) package: String,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Includes build dependencies, because dependents of the crate build them too.
    Normal,
    /// For tests, examples and benches.
    Dev,
}

/// A rule that is broken: where, which, and the way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) edge: String,
    pub(super) rule: String,
    pub(super) way_out: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            edge,
            rule,
            way_out,
        } = self;
        write!(f, "{edge}\n  rule: {rule}\n  way out: {way_out}")
    }
}

/// Every rule that the graph breaks, in the order of its crates.
pub(super) fn check(graph: &Graph) -> Vec<Violation> {
    let mut violations = Vec::new();
    for one in &graph.crates {
        let Some(row) = row(&one.folder) else {
            violations.push(unknown_crate(one));
            continue;
        };
        for dependency in &one.dependencies {
            violations.extend(match graph.folder_of(&dependency.package) {
                Some(target) => check_edge(row, target, dependency.kind),
                None => check_third_party(row, dependency),
            });
        }
    }
    violations
}

impl Graph {
    /// The folder of one of our crates. A package that only sounds like ours (from a registry, say)
    /// counts as ours, so that no such edge slips through.
    fn folder_of<'a>(&'a self, package: &'a str) -> Option<&'a str> {
        let ours = self.crates.iter().find(|one| one.package == package);
        ours.map(|one| one.folder.as_str())
            .or_else(|| package.strip_prefix("switchboard-"))
    }
}

fn row(folder: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.folder == folder)
}

fn unknown_crate(one: &Crate) -> Violation {
    Violation {
        edge: format!("{} (package {})", one.folder, one.package),
        rule: "every crate has a row in the layer table".to_owned(),
        way_out:
            "add it to the table: docs/architecture.md and xtask/src/checks/layers/table.rs, with \
                  its allowed dependencies"
                .to_owned(),
    }
}

fn check_edge(from: &Row, to: &str, kind: Kind) -> Option<Violation> {
    let is_for_tests = kind == Kind::Dev && to != "app";
    if is_for_tests || from.may_use.contains(&to) {
        return None;
    }
    let rule = match from.may_use {
        [] => format!(
            "`{}` (layer {}) depends on no crate of ours",
            from.folder, from.layer
        ),
        some => format!(
            "`{}` (layer {}) may only depend on {}",
            from.folder,
            from.layer,
            some.join(", ")
        ),
    };
    let way_out = if to == TESTKIT {
        "testkit is for tests: put it under [dev-dependencies]"
    } else {
        "put the type or port that both need into `domain`, and let `app` join the two; or change \
         the table in docs/architecture.md and xtask/src/checks/layers/table.rs, with the reason"
    };
    Some(Violation {
        edge: edge(from, to, kind),
        rule,
        way_out: way_out.to_owned(),
    })
}

/// At most one violation per edge: the stricter rule comes first.
fn check_third_party(from: &Row, dependency: &Dependency) -> Option<Violation> {
    let package = dependency.package.as_str();
    let banned = BANNED.iter().find(|rule| {
        dependency.kind == Kind::Normal
            && rule.folder == from.folder
            && rule.packages.contains(&package)
    });
    if let Some(rule) = banned {
        return Some(Violation {
            edge: edge(from, package, dependency.kind),
            rule: format!("`{}` never depends on {package}: {}", rule.folder, rule.why),
            way_out:
                "describe the requirement as a port (a trait) in `domain`, and implement it in \
                      an adapter"
                    .to_owned(),
        });
    }
    let confined = CONFINED
        .iter()
        .find(|rule| rule.packages.contains(&package))?;
    let listed = |folders: &[&str]| folders.iter().any(|pattern| matches(pattern, from.folder));
    let allowed =
        listed(confined.to) || (dependency.kind == Kind::Dev && listed(confined.to_tests_of));
    (!allowed).then(|| Violation {
        edge: edge(from, package, dependency.kind),
        rule: format!(
            "{package} stays inside {}: {}",
            confined.to.join(", "),
            confined.why
        ),
        way_out: "use the domain's types and ports here; or move the code that needs it into one \
                  of those crates"
            .to_owned(),
    })
}

fn edge(from: &Row, to: &str, kind: Kind) -> String {
    let kind = match kind {
        Kind::Normal => "dependency",
        Kind::Dev => "dev-dependency",
    };
    format!("{} -> {to} ({kind})", from.folder)
}

fn matches(pattern: &str, folder: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => folder.starts_with(start),
        None => folder == pattern,
    }
}
