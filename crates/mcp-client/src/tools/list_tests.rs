use serde_json::json;
use switchboard_domain::MAX_JSON_DEPTH;

use super::*;

fn tools(names: &[&str]) -> Vec<Listed> {
    names
        .iter()
        .map(|name| {
            let listed = json!({"name": name, "inputSchema": {"type": "object"}});
            convert::tool_from_json("s", &listed).unwrap()
        })
        .collect()
}

fn names(tools: &Tools) -> Vec<&str> {
    tools.definitions.iter().map(|t| own_name(t)).collect()
}

#[test]
fn only_what_is_allowed_and_not_excluded_is_offered() {
    let mut config = ServerConfig::http("s", "http://h/");
    config.allowed_tools = Some(vec!["read".into(), "write".into()]);
    config.exclude_tools = vec!["write".into()];
    let offered = offered(&config, tools(&["read", "write", "delete"]), Vec::new());
    assert_eq!(names(&offered), ["read"]);
    assert!(offered.problems.is_empty());
}

#[test]
fn a_name_that_matches_no_tool_is_pointed_out() {
    let mut config = ServerConfig::http("s", "http://h/");
    config.exclude_tools = vec!["delete_flie".into(), "zzz".into()];
    let offered = offered(&config, tools(&["delete_file"]), Vec::new());
    assert_eq!(
        offered.problems,
        [
            "`exclude_tools` names `delete_flie`, a tool that it does not have (did you mean \
             `delete_file`?)",
            "`exclude_tools` names `zzz`, a tool that it does not have",
        ]
    );
}

#[test]
fn a_tool_whose_schema_is_nested_too_deeply_is_left_out() {
    let nested = |levels: usize| {
        (1..levels).fold(
            json!({"type": "string"}),
            |inner, _| json!({"items": inner}),
        )
    };
    let listed = |name: &str, schema: &str, levels| {
        let mut listed = json!({"name": name, "inputSchema": {"type": "object"}});
        listed[schema] = nested(levels);
        convert::tool_from_json("s", &listed).unwrap()
    };
    let found = vec![
        listed("good", "inputSchema", MAX_JSON_DEPTH),
        listed("input", "inputSchema", MAX_JSON_DEPTH + 1),
        listed("output", "outputSchema", MAX_JSON_DEPTH + 1),
    ];
    let offered = offered(&ServerConfig::http("s", "http://h/"), found, Vec::new());
    assert_eq!(names(&offered), ["good"]);
    let problem = |name| {
        format!(
            "a schema of tool `{name}` is nested more than 64 levels deep, so the tool is left out"
        )
    };
    assert_eq!(offered.problems, [problem("input"), problem("output")]);
}

#[test]
fn of_two_tools_of_one_name_the_first_counts() {
    let config = ServerConfig::http("s", "http://h/");
    let offered = offered(&config, tools(&["a", "b", "a"]), Vec::new());
    assert_eq!(names(&offered), ["a", "b"]);
    assert_eq!(
        offered.problems,
        ["it lists `a` twice; the first one counts"]
    );
}

#[test]
fn a_page_with_bad_tools_keeps_the_good_ones() {
    let page = json!({
        "tools": [
            {"name": "good", "inputSchema": {"type": "object"}},
            {"name": "bad", "inputSchema": null},
            {"name": "fine", "inputSchema": {"type": "object"}, "annotations": 5},
        ],
        "nextCursor": "2",
    });
    let Ok(page) = page_from_json("s", &page) else {
        panic!("a page with good tools");
    };
    assert_eq!(page.next.as_deref(), Some("2"));
    let names: Vec<_> = page
        .tools
        .iter()
        .map(|t| t.as_ref().map(|listed| own_name(&listed.tool)))
        .collect();
    assert_eq!(
        names,
        [
            Ok("good"),
            Err(&"tool `bad` has no JSON object as its inputSchema, so it is left out".to_owned()),
            Ok("fine")
        ]
    );
    assert!(matches!(
        page_from_json("s", &json!({"resources": []})),
        Err(NoPage::Failed(_))
    ));
}

#[test]
fn what_is_for_pages_alone_is_not_offered_to_models() {
    let listed = |name: &str, visibility: serde_json::Value| {
        let ui = json!({"resourceUri": "ui://page", "visibility": visibility});
        let tool = json!({"name": name, "inputSchema": {"type": "object"}, "_meta": {"ui": ui}});
        convert::tool_from_json("s", &tool).unwrap()
    };
    let mut found = tools(&["plain"]);
    found.push(listed("page", json!(["app"])));
    found.push(listed("model", json!(["model"])));
    found.push(listed("both", json!(["model", "app"])));
    found.push(listed("nobody", json!([])));
    found.push(listed("odd", json!("app")));
    let config = ServerConfig::http("s", "http://h/");
    let tools = offered(&config, found, Vec::new());
    assert_eq!(names(&tools), ["plain", "model", "both", "odd"]);
    let app_only: Vec<&str> = tools.app_only.iter().map(|tool| own_name(tool)).collect();
    assert_eq!(app_only, ["page", "nobody"]);
    // A model does not find them by name either; the host does.
    assert!(tools.find("s__page").is_none());
    assert!(tools.find_own("page").is_some());
    let hidden = ["plain", "page", "model", "both", "nobody", "odd"];
    let hidden = hidden.map(|name| tools.is_hidden_from_apps(name));
    assert_eq!(hidden, [false, false, true, false, true, false]);
}

#[test]
fn tools_of_a_server_that_takes_one_call_at_a_time_run_alone() {
    let mut config = ServerConfig::http("s", "http://h/");
    for sequential in [false, true] {
        config.sequential = sequential;
        let offered = offered(&config, tools(&["a", "b"]), Vec::new());
        let said = offered.definitions.iter().map(|tool| tool.sequential);
        assert_eq!(said.collect::<Vec<_>>(), [sequential, sequential]);
    }
}
