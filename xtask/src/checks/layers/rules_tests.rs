use super::rules::{Crate, Dependency, Graph, Kind, check};
use super::table::{BANNED, CONFINED, ROWS};

const FOLDERS: [&str; 6] = [
    "app",
    "domain",
    "mcp-client",
    "orchestration",
    "testkit",
    "xtask",
];

/// A workspace of some crates without any edge, and the edges asked for.
fn graph(edges: &[(&str, &str, Kind)]) -> Graph {
    let package = |folder: &str| match folder {
        "xtask" => folder.to_owned(),
        folder => format!("switchboard-{folder}"),
    };
    let crates = FOLDERS.iter().map(|folder| Crate {
        folder: (*folder).to_owned(),
        package: package(folder),
        dependencies: edges
            .iter()
            .filter(|(from, ..)| from == folder)
            .map(|(_, to, kind)| Dependency {
                package: (*to).to_owned(),
                kind: *kind,
            })
            .collect(),
    });
    Graph {
        crates: crates.collect(),
    }
}

fn edges_of_violations(edges: &[(&str, &str, Kind)]) -> Vec<String> {
    check(&graph(edges))
        .into_iter()
        .map(|one| one.edge)
        .collect()
}

#[test]
fn the_real_workspace_passes() {
    let graph = super::read(None).unwrap();
    let folders: Vec<_> = graph.crates.iter().map(|one| one.folder.as_str()).collect();
    assert!(
        folders.contains(&"domain") && folders.contains(&"xtask"),
        "{folders:?}"
    );
    let violations: Vec<_> = check(&graph).iter().map(ToString::to_string).collect();
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

#[test]
fn the_real_workspace_with_a_forbidden_edge_fails() {
    let mut graph = super::read(None).unwrap();
    let domain = graph
        .crates
        .iter_mut()
        .find(|one| one.folder == "domain")
        .unwrap();
    domain.dependencies.push(Dependency {
        package: "switchboard-orchestration".to_owned(),
        kind: Kind::Normal,
    });
    let violations = check(&graph);
    assert_eq!(violations.len(), 1, "{violations:?}");
    assert_eq!(violations[0].edge, "domain -> orchestration (dependency)");
    assert!(violations[0].rule.contains("depends on no crate of ours"));
    assert!(violations[0].way_out.contains("`app`"));
}

#[test]
fn edges_that_the_table_allows_pass() {
    let allowed = [
        ("orchestration", "switchboard-domain", Kind::Normal),
        ("app", "switchboard-mcp-client", Kind::Normal),
        ("domain", "switchboard-testkit", Kind::Dev),
        ("domain", "switchboard-domain", Kind::Dev),
        ("orchestration", "switchboard-providers-offline", Kind::Dev),
        ("testkit", "switchboard-providers-gemini", Kind::Dev),
        ("mcp-client", "rmcp", Kind::Normal),
        ("mcp-client", "reqwest", Kind::Normal),
        ("app", "reqwest", Kind::Dev),
        ("app", "anyhow", Kind::Normal),
        ("domain", "tokio", Kind::Dev),
        ("orchestration", "tokio", Kind::Normal),
    ];
    assert_eq!(edges_of_violations(&allowed), [""; 0]);
}

#[test]
fn edges_that_the_table_does_not_allow_fail() {
    let forbidden = [
        ("app", "switchboard-testkit", Kind::Normal),
        ("app", "reqwest", Kind::Normal),
        ("domain", "tokio", Kind::Normal),
        ("domain", "rmcp", Kind::Normal),
        ("mcp-client", "switchboard-orchestration", Kind::Normal),
        ("mcp-client", "switchboard-providers-common", Kind::Normal),
        ("mcp-client", "sqlx", Kind::Dev),
        ("orchestration", "switchboard-mcp-client", Kind::Normal),
        ("orchestration", "switchboard-app", Kind::Dev),
        ("orchestration", "anyhow", Kind::Dev),
        ("testkit", "switchboard-providers-gemini", Kind::Normal),
        ("xtask", "switchboard-domain", Kind::Normal),
    ];
    for one in forbidden {
        assert_eq!(edges_of_violations(&[one]).len(), 1, "{one:?}");
    }
    assert_eq!(edges_of_violations(&forbidden).len(), forbidden.len());
}

#[test]
fn the_way_out_for_testkit_is_a_dev_dependency() {
    let violations = check(&graph(&[("app", "switchboard-testkit", Kind::Normal)]));
    assert!(violations[0].way_out.contains("[dev-dependencies]"));
}

#[test]
fn an_unknown_crate_is_a_violation() {
    let mut graph = graph(&[]);
    graph.crates[0].folder = "brand-new".to_owned();
    let violations = check(&graph);
    assert_eq!(violations.len(), 1);
    assert!(violations[0].way_out.starts_with("add it to the table"));
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
    // Takes away, again and again, the crates that only use crates taken away before.
    let mut left: Vec<_> = ROWS.iter().collect();
    while !left.is_empty() {
        let names: Vec<_> = left.iter().map(|row| row.folder).collect();
        let before = left.len();
        left.retain(|row| row.may_use.iter().any(|folder| names.contains(folder)));
        assert!(left.len() < before, "a cycle among {names:?}");
    }
}
