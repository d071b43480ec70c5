use serde_json::json;
use switchboard_domain::MAX_JSON_DEPTH;

use super::*;
use crate::tools::convert;

fn tools(names: &[&str]) -> Vec<ListedTool> {
    names
        .iter()
        .map(|name| {
            let listed = json!({"name": name, "inputSchema": {"type": "object"}});
            convert::tool_from_json("s", &listed).unwrap()
        })
        .collect()
}

fn config() -> ServerConfig {
    ServerConfig::http("s", "http://h/")
}

fn names(tools: &ServerTools) -> Vec<&str> {
    tools.definitions.iter().map(|t| original_name(t)).collect()
}

#[test]
fn only_allowed_and_not_excluded_tools_are_available() {
    let mut config = config();
    config.allowed_tools = Some(vec!["read".into(), "write".into()]);
    config.exclude_tools = vec!["write".into()];
    let available = ServerTools::new(&config, tools(&["read", "write", "delete"]), Vec::new());
    assert_eq!(names(&available), ["read"]);
    assert!(available.problems.is_empty());
}

#[test]
fn configured_names_without_a_tool_are_reported() {
    let mut config = config();
    config.exclude_tools = vec!["delete_flie".into(), "zzz".into()];
    let available = ServerTools::new(&config, tools(&["delete_file"]), Vec::new());
    assert_eq!(
        available.problems,
        [
            "`exclude_tools` names `delete_flie`, a tool that the server does not have (did you \
             mean `delete_file`?)",
            "`exclude_tools` names `zzz`, a tool that the server does not have",
        ]
    );
}

#[test]
fn tools_with_a_too_deep_schema_are_not_available() {
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
    let listed = vec![
        listed("good", "inputSchema", MAX_JSON_DEPTH),
        listed("input", "inputSchema", MAX_JSON_DEPTH + 1),
        listed("output", "outputSchema", MAX_JSON_DEPTH + 1),
    ];
    let available = ServerTools::new(&config(), listed, Vec::new());
    assert_eq!(names(&available), ["good"]);
    assert_eq!(available.problems.len(), 2);
    for (problem, name) in available.problems.iter().zip(["input", "output"]) {
        let expected = format!("tool `{name}` is not available: one of its schemas is ");
        assert!(problem.starts_with(&expected), "{problem}");
    }
}

#[test]
fn the_first_of_two_tools_with_one_name_is_used() {
    let available = ServerTools::new(&config(), tools(&["a", "b", "a"]), Vec::new());
    assert_eq!(names(&available), ["a", "b"]);
    assert_eq!(
        available.problems,
        ["it lists `a` twice; the first one is used"]
    );
}

#[test]
fn tools_only_for_pages_are_hidden_from_models() {
    let listed = |name: &str, visibility: serde_json::Value| {
        let ui = json!({"resourceUri": "ui://page", "visibility": visibility});
        let tool = json!({"name": name, "inputSchema": {"type": "object"}, "_meta": {"ui": ui}});
        convert::tool_from_json("s", &tool).unwrap()
    };
    let mut all = tools(&["plain"]);
    all.push(listed("page", json!(["app"])));
    all.push(listed("model", json!(["model"])));
    all.push(listed("both", json!(["model", "app"])));
    all.push(listed("none", json!([])));
    all.push(listed("invalid", json!("app")));
    let tools = ServerTools::new(&config(), all, Vec::new());
    assert_eq!(names(&tools), ["plain", "model", "both", "invalid"]);
    let app_only = tools.app_only.iter().map(|tool| original_name(tool));
    assert_eq!(app_only.collect::<Vec<_>>(), ["page", "none"]);
    assert!(tools.find("s__page").is_none());
    assert!(tools.find_original("page").is_some());
    let names = ["plain", "page", "model", "both", "none", "invalid"];
    let hidden = names.map(|name| tools.is_hidden_from_apps(name));
    assert_eq!(hidden, [false, false, true, false, true, false]);
}

#[test]
fn tools_of_a_sequential_server_are_sequential() {
    let mut config = config();
    for sequential in [false, true] {
        config.sequential = sequential;
        let available = ServerTools::new(&config, tools(&["a", "b"]), Vec::new());
        let tools = available.definitions.iter();
        let flags: Vec<bool> = tools.map(|tool| tool.sequential).collect();
        assert_eq!(flags, [sequential, sequential]);
    }
}
