use super::*;
use crate::rules::rules;

fn declared(tool: &ServerTool, model: &str) -> Value {
    Value::Object(tool.declaration(rules(model)))
}

#[test]
fn the_version_is_the_models_unless_one_is_said() {
    for (model, kind) in [
        ("claude-haiku-4-5", "web_search_20250305"),
        ("claude-opus-5-5", "web_search_20260318"),
        // A server with a model of its own.
        ("kimi-k3", "web_search_20250305"),
    ] {
        let sent = declared(&ServerTool::web_search(), model);
        assert_eq!(sent, json!({"type": kind, "name": "web_search"}), "{model}");
    }
    let old = ServerTool::CodeExecution(CodeExecution {
        version: Some("20250522".into()),
    });
    assert_eq!(
        declared(&old, "claude-opus-5-5")["type"],
        "code_execution_20250522"
    );
}

#[test]
fn a_model_that_calls_no_tools_out_of_code_is_told_so() {
    let sent = declared(&ServerTool::web_fetch(), "claude-haiku-5-5");
    assert_eq!(sent["allowed_callers"], json!(["direct"]));
    let sent = declared(&ServerTool::code_execution(), "claude-haiku-5-5");
    assert!(sent.get("allowed_callers").is_none());
}

#[test]
fn every_setting_has_its_place() {
    let search = ServerTool::WebSearch(WebSearch {
        max_uses: Some(3),
        allowed_domains: vec!["example.org".into()],
        user_location: Some(UserLocation {
            city: Some("Kiel".into()),
            timezone: Some("Europe/Berlin".into()),
            ..UserLocation::default()
        }),
        ..WebSearch::default()
    });
    assert_eq!(
        declared(&search, "claude-haiku-4-5"),
        json!({
            "type": "web_search_20250305", "name": "web_search", "max_uses": 3,
            "allowed_domains": ["example.org"],
            "user_location": {"type": "approximate", "city": "Kiel", "timezone": "Europe/Berlin"},
        })
    );
    let fetch = ServerTool::WebFetch(WebFetch {
        blocked_domains: vec!["example.net".into()],
        max_content_tokens: Some(9_000),
        citations: true,
        ..WebFetch::default()
    });
    assert_eq!(
        declared(&fetch, "claude-haiku-4-5"),
        json!({
            "type": "web_fetch_20250910", "name": "web_fetch", "blocked_domains": ["example.net"],
            "max_content_tokens": 9_000, "citations": {"enabled": true},
        })
    );
}

#[test]
fn they_are_read_from_configuration() {
    let read = |value: Value| serde_json::from_value::<ServerTool>(value);
    assert_eq!(
        read(json!({"type": "web_search", "max_uses": 3})).unwrap(),
        ServerTool::WebSearch(WebSearch {
            max_uses: Some(3),
            ..WebSearch::default()
        })
    );
    assert_eq!(
        read(json!({"type": "code_execution"})).unwrap(),
        ServerTool::code_execution()
    );
    let raw = json!({"type": "raw", "betas": ["b-1"],
                     "declaration": {"type": "memory_20250818", "name": "memory"}});
    let raw = read(raw).unwrap();
    assert_eq!(raw.name(), "memory");
    assert_eq!(declared(&raw, "x")["type"], "memory_20250818");
    let error = read(json!({"type": "web_fetch", "max_use": 3})).unwrap_err();
    assert!(error.to_string().contains("max_use"), "{error}");
}

#[test]
fn what_the_api_would_refuse_is_told_first() {
    let both = ServerTool::WebFetch(WebFetch {
        allowed_domains: vec!["a.example".into()],
        blocked_domains: vec!["b.example".into()],
        ..WebFetch::default()
    });
    assert!(both.fault().unwrap().contains("not both"));
    let version = ServerTool::CodeExecution(CodeExecution {
        version: Some("2025-08-25".into()),
    });
    assert!(version.fault().unwrap().contains("2025-08-25"));
    let raw = ServerTool::Raw(RawServerTool {
        declaration: JsonObject::new(),
        betas: Vec::new(),
    });
    assert!(raw.fault().unwrap().contains("`type`"));
    assert_eq!(ServerTool::web_search().fault(), None);
}
