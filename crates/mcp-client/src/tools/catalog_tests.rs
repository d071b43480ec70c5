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
    tools
        .model_tools()
        .map(|tool| tool.original_name())
        .collect()
}

#[test]
fn configured_names_without_a_tool_are_reported() {
    let mut config = config();
    config.exclude_tools = vec!["delete_flie".into(), "zzz".into()];
    let available = ServerTools::new(&config, tools(&["delete_file"]), Vec::new());
    assert_eq!(
        available.problems,
        [
            "`exclude_tools` contains `delete_flie`, but the server has no such tool (did you mean \
             `delete_file`?)",
            "`exclude_tools` contains `zzz`, but the server has no such tool",
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
