use super::*;

fn check(from: &str, package: &str, is_dev: bool) -> Option<String> {
    let row = ROWS.iter().find(|row| row.folder == from).unwrap();
    check_dependency(row, package, is_dev)
}

#[test]
fn the_real_workspace_passes() {
    run(None).unwrap();
}

#[test]
fn edges_that_the_table_allows_pass() {
    for (from, package, is_dev) in [
        ("orchestration", "switchboard-domain", false),
        ("app", "switchboard-mcp-client", false),
        ("domain", "switchboard-testkit", true),
        ("domain", "switchboard-domain", true),
        ("orchestration", "switchboard-providers-offline", true),
        ("testkit", "switchboard-providers-gemini", true),
        ("mcp-client", "rmcp", false),
        ("mcp-client", "reqwest", false),
        ("app", "reqwest", true),
        ("app", "anyhow", false),
        ("domain", "tokio", true),
        ("orchestration", "tokio", false),
    ] {
        assert_eq!(check(from, package, is_dev), None);
    }
}

#[test]
fn edges_that_the_table_does_not_allow_fail() {
    for (from, package, is_dev, way_out) in [
        ("app", "switchboard-testkit", false, "[dev-dependencies]"),
        ("app", "reqwest", false, "ports"),
        ("domain", "tokio", false, "a port (a trait)"),
        ("domain", "rmcp", false, "a port (a trait)"),
        ("domain", "switchboard-orchestration", false, "`app`"),
        ("mcp-client", "switchboard-orchestration", false, "`app`"),
        ("mcp-client", "switchboard-providers-common", false, "`app`"),
        ("mcp-client", "sqlx", true, "ports"),
        ("orchestration", "switchboard-mcp-client", false, "`app`"),
        ("orchestration", "switchboard-app", true, "`app`"),
        ("orchestration", "anyhow", true, "ports"),
        ("testkit", "switchboard-providers-gemini", false, "`app`"),
        ("xtask", "switchboard-domain", false, "`app`"),
    ] {
        let violation = check(from, package, is_dev).unwrap();
        assert!(violation.contains(way_out), "{violation}");
    }
}

#[test]
fn the_table_names_only_crates_that_have_a_row() {
    let has_row = |folder: &str| ROWS.iter().any(|row| row.folder == folder);
    for row in ROWS {
        for folder in row.may_use {
            assert!(has_row(folder), "{} may use {folder}", row.folder);
        }
    }
    let plain = |folder: &&&str| !folder.ends_with('*');
    for rule in CONFINED {
        for folder in rule.to.iter().chain(rule.to_tests_of).filter(plain) {
            assert!(has_row(folder), "{folder}");
        }
    }
    assert!(BANNED.iter().all(|rule| has_row(rule.folder)));
}

#[test]
fn the_table_has_no_cycle() {
    // Each round removes the crates that depend only on removed crates.
    let mut left: Vec<_> = ROWS.iter().collect();
    while !left.is_empty() {
        let names: Vec<_> = left.iter().map(|row| row.folder).collect();
        let before = left.len();
        left.retain(|row| row.may_use.iter().any(|folder| names.contains(folder)));
        assert!(left.len() < before, "a cycle among {names:?}");
    }
}
