use super::*;

fn read(value: Value) -> Result<ServerTool, serde_json::Error> {
    serde_json::from_value(value)
}

#[test]
fn each_tool_is_read_from_configuration_and_has_its_declaration() {
    for (configured, name, sent) in [
        (
            json!({"type": "web_search"}),
            "web_search",
            json!({"type": "web_search"}),
        ),
        (
            json!({"type": "web_search", "allowed_domains": ["example.org"],
                   "search_context_size": "high", "user_location": {"country": "DE"},
                   "external_web_access": true}),
            "web_search",
            json!({"type": "web_search", "filters": {"allowed_domains": ["example.org"]},
                   "search_context_size": "high",
                   "user_location": {"type": "approximate", "country": "DE"},
                   "external_web_access": true}),
        ),
        (
            json!({"type": "web_search", "user_location": {}}),
            "web_search",
            json!({"type": "web_search", "user_location": {"type": "approximate"}}),
        ),
        (
            json!({"type": "raw", "declaration": {"type": "shell"}}),
            "shell",
            json!({"type": "shell"}),
        ),
        (
            json!({"type": "raw", "declaration": {"type": "custom", "name": "sql"}}),
            "sql",
            json!({"type": "custom", "name": "sql"}),
        ),
        (
            json!({"type": "raw", "declaration": {"type": "mcp", "server_label": "w"}}),
            "w",
            json!({"type": "mcp", "server_label": "w"}),
        ),
    ] {
        let tool = read(configured).unwrap();
        assert_eq!(tool.name(), name);
        assert_eq!(Value::Object(tool.to_declaration()), sent);
        assert_eq!(tool.find_configuration_error(), None);
        assert_eq!(read(serde_json::to_value(&tool).unwrap()).unwrap(), tool);
    }
}

#[test]
fn an_error_of_the_configuration_names_the_wrong_word() {
    for (configured, word) in [
        (json!({"type": "bing"}), "bing"),
        (json!({"type": "web_search", "max_uses": 3}), "max_uses"),
        (
            json!({"type": "web_search", "search_context_size": "huge"}),
            "huge",
        ),
        (
            json!({"type": "web_search", "user_location": {"town": "Kiel"}}),
            "town",
        ),
        (json!({"type": "raw"}), "declaration"),
    ] {
        let error = read(configured).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn settings_that_the_api_would_refuse_are_reported() {
    for (declaration, word) in [
        (json!({}), "`type`"),
        (json!({"type": "function", "name": "f"}), "`function`"),
    ] {
        let tool = read(json!({"type": "raw", "declaration": declaration})).unwrap();
        let error = tool.find_configuration_error().unwrap();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn debug_output_hides_the_values_of_a_declaration() {
    for declaration in [
        json!({"type": "mcp", "headers": {"x": "secret-1"}}),
        json!({"type": 1, "authorization": "secret-1"}),
    ] {
        let tool = read(json!({"type": "raw", "declaration": declaration})).unwrap();
        let printed = format!("{tool:?} {:?}", tool.find_configuration_error());
        assert!(!printed.contains("secret-1"), "{printed}");
    }
}
