use super::*;

fn refused(file: &str, text: &str) -> String {
    let read = parse(
        file,
        text,
        ending(Path::new(file)).as_deref() == Some("json"),
    );
    read.unwrap_err().to_string()
}

#[test]
fn errors_in_a_suite_name_their_location() {
    let table = [
        ("a.yaml", "scenarios: [", "a.yaml: "),
        (
            "a.yaml",
            "title: A\nrepetitions: often\nscenarios: []\n",
            "a.yaml: repetitions: ",
        ),
        (
            "a.yaml",
            "title: A\nscenarios:\n  - name: One\n    turns:\n      - {say: x, cals: []}\n",
            "a.yaml: scenarios[0].turns[0].cals: unknown field `cals`",
        ),
        (
            "a.yaml",
            "scenarios:\n  - name: One\n    turns:\n      - say: x\n        answer: {contains: [a]}\n        cals: []\n",
            "a.yaml: scenarios[0].turns[0].cals: unknown field `cals`",
        ),
        (
            "a.yaml",
            "scenarios:\n  - name: One\n    turns: [{say: x}]\n    parameters:\n      max_step: \
             1\n",
            "a.yaml: line 5: scenarios[0].parameters: unknown field `max_step`",
        ),
        (
            "a.yaml",
            "scenarios:\n  - name: One\n    turns:\n      - say: x\n        calls:\n          - \
             tool: t\n            input:\n              id: {$like: 1}\n",
            "a.yaml: line 8: scenarios[0].turns[0].calls[0].input.id: unknown matcher `$like`",
        ),
        (
            "a.json",
            "{\n  // as editors write it\n  \"scenarios\": [\n    {\"name\": \"\", \"turns\": []}\n  ]\n}",
            "a.json: line 4: scenarios[0].name: must not be empty",
        ),
        (
            "a.json",
            "{\n  \"scenario\": []\n}",
            "a.json: unknown field `scenario`",
        ),
    ];
    for (file, text, said) in table {
        let error = refused(file, text);
        assert!(error.contains(said), "{error}");
    }
    // The line of what is no suite is the parser's.
    let error = refused("a.yaml", "title: A\nrepetitions: often\nscenarios: []\n");
    assert!(error.contains("line 2"), "{error}");
    let error = refused("a.json", "{\n  \"scenario\": []\n}");
    assert!(error.contains("line 2"), "{error}");
}

#[test]
fn every_suite_that_ships_is_one() {
    for (name, text) in SHIPPED {
        let (suite, _) = parse(name, text, false).unwrap_or_else(|error| panic!("{error}"));
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
    let said = |name: &str| find(name, &environment).unwrap_err().to_string();
    let near = said("ten-scenario");
    assert!(near.contains("did you mean `ten-scenarios`?"), "{near}");
    let missing = find("missing.yaml", &environment).unwrap_err();
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
    let found = find_bfcl(&["q.json".into()], &answers, &Environment::default());
    let error = found.unwrap_err().to_string();
    assert!(
        error.starts_with("2 files of answers belong to 1 of questions"),
        "{error}"
    );
}
