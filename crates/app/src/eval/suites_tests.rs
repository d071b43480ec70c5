use super::*;

#[test]
fn every_suite_that_ships_is_one() {
    for (name, text) in SHIPPED {
        let (suite, _) = parse_suite(name, text, false).unwrap_or_else(|error| panic!("{error}"));
        assert!(!suite.title.is_empty(), "{name}");
        assert!(suite.mcp_servers.is_some(), "{name} brings its servers");
        assert!(
            suite.scenarios.iter().all(|it| !it.kind.is_empty()),
            "{name}: every scenario has a kind"
        );
    }
}

#[test]
fn a_name_is_no_file() {
    let environment = Environment::default();
    let said = |name: &str| find_suite(name, &environment).unwrap_err().to_string();
    let near = said("ten-scenario");
    assert!(near.contains("did you mean `ten-scenarios`?"), "{near}");
    let missing = find_suite("missing.yaml", &environment).unwrap_err();
    assert_eq!(
        missing.to_string(),
        "missing.yaml: cannot be read: file not found"
    );
    // Nothing says it once more.
    assert!(missing.source().is_none());
    assert!(said("some/folder").contains("cannot be read"));
}

#[test]
fn answers_belong_to_questions() {
    let answers = ["a.json", "b.json"].map(PathBuf::from);
    let found = read_bfcl_suite(&["q.json".into()], &answers, &Environment::default());
    let error = found.unwrap_err().to_string();
    assert!(
        error.starts_with("2 files of answers belong to 1 of questions"),
        "{error}"
    );
}
