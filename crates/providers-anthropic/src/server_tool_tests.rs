use super::*;
use crate::model_rules::find_rules;

fn declared(tool: &ServerTool, model: &str) -> Value {
    Value::Object(tool.to_declaration(find_rules(model)))
}

#[test]
fn web_search_uses_the_version_of_the_model_unless_one_is_configured() {
    for (model, kind) in [
        ("claude-haiku-4-5", "web_search_20250305"),
        ("claude-opus-5-5", "web_search_20260318"),
        ("kimi-k3", "web_search_20250305"),
    ] {
        let sent = declared(&ServerTool::web_search(), model);
        assert_eq!(sent, json!({"type": kind, "name": "web_search"}), "{model}");
    }
    let old = ServerTool::WebSearch(WebSearch {
        version: Some("20250305".into()),
        ..WebSearch::default()
    });
    let expected = "web_search_20250305";
    assert_eq!(declared(&old, "claude-haiku-5-5")["type"], expected);
}

#[test]
fn a_model_without_programmatic_calls_gets_direct_callers_only() {
    let sent = declared(&ServerTool::web_search(), "claude-haiku-5-5");
    assert_eq!(sent["allowed_callers"], json!(["direct"]));
}

#[test]
fn every_web_search_setting_is_sent() {
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
}

#[test]
fn server_tools_are_read_from_configuration() {
    let read = |value: Value| serde_json::from_value::<ServerTool>(value);
    assert_eq!(
        read(json!({"type": "web_search", "max_uses": 3})).unwrap(),
        ServerTool::WebSearch(WebSearch {
            max_uses: Some(3),
            ..WebSearch::default()
        })
    );
    let raw = json!({"type": "raw", "betas": ["b-1"],
                     "declaration": {"type": "memory_20250818", "name": "memory"}});
    let raw = read(raw).unwrap();
    assert_eq!(raw.name(), "memory");
    assert_eq!(declared(&raw, "x")["type"], "memory_20250818");
    let error = read(json!({"type": "web_search", "max_use": 3})).unwrap_err();
    assert!(error.to_string().contains("max_use"), "{error}");
}

#[test]
fn settings_that_the_api_would_refuse_are_reported() {
    let both = ServerTool::WebSearch(WebSearch {
        allowed_domains: vec!["a.example".into()],
        blocked_domains: vec!["b.example".into()],
        ..WebSearch::default()
    });
    assert!(
        both.find_configuration_error()
            .unwrap()
            .contains("not both")
    );
    let version = ServerTool::WebSearch(WebSearch {
        version: Some("2025-03-05".into()),
        ..WebSearch::default()
    });
    assert!(
        version
            .find_configuration_error()
            .unwrap()
            .contains("2025-03-05")
    );
    let raw = ServerTool::from_declaration(JsonObject::new());
    assert!(raw.find_configuration_error().unwrap().contains("`type`"));
    assert_eq!(ServerTool::web_search().find_configuration_error(), None);
}
