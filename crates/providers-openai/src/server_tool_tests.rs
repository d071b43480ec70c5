use super::*;

fn read(value: Value) -> Result<ServerTool, serde_json::Error> {
    serde_json::from_value(value)
}

#[test]
fn each_is_read_from_configuration_and_has_its_declaration() {
    let address = "https://example.org/mcp";
    let mcp = |more: Value| {
        let mut tool = json!({"type": "mcp", "server_label": "wiki", "server_url": address});
        let (Value::Object(tool), Value::Object(more)) = (&mut tool, more) else {
            unreachable!("both are objects");
        };
        tool.extend(more);
        json!(tool)
    };
    for (written, name, sent) in [
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
        // Not the United States, which the API takes where nothing is said.
        (
            json!({"type": "web_search", "user_location": {}}),
            "web_search",
            json!({"type": "web_search", "user_location": {"type": "approximate"}}),
        ),
        (
            json!({"type": "code_interpreter"}),
            "code_interpreter",
            json!({"type": "code_interpreter", "container": {"type": "auto"}}),
        ),
        (
            json!({"type": "code_interpreter", "file_ids": ["f"], "memory_limit": "64g"}),
            "code_interpreter",
            json!({"type": "code_interpreter",
                   "container": {"type": "auto", "file_ids": ["f"], "memory_limit": "64g"}}),
        ),
        (
            json!({"type": "code_interpreter", "container": "cntr_1"}),
            "code_interpreter",
            json!({"type": "code_interpreter", "container": "cntr_1"}),
        ),
        (
            json!({"type": "file_search", "vector_store_ids": ["vs_1"]}),
            "file_search",
            json!({"type": "file_search", "vector_store_ids": ["vs_1"]}),
        ),
        (
            json!({"type": "image_generation"}),
            "image_generation",
            json!({"type": "image_generation"}),
        ),
        (
            mcp(json!({})),
            "wiki",
            mcp(json!({"require_approval": "always"})),
        ),
        (
            mcp(json!({"require_approval": "never"})),
            "wiki",
            mcp(json!({"require_approval": "never"})),
        ),
        (
            mcp(json!({"allowed_tools": ["a"], "require_approval": {"never_for": ["a"]}})),
            "wiki",
            mcp(json!({"allowed_tools": ["a"],
                       "require_approval": {"never": {"tool_names": ["a"]}}})),
        ),
        (
            mcp(json!({"require_approval": {"never_for": []}})),
            "wiki",
            mcp(json!({"require_approval": "always"})),
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
        let tool = read(written).unwrap();
        assert_eq!(tool.name(), name);
        assert_eq!(Value::Object(tool.declaration()), sent);
        assert_eq!(tool.fault(), None);
        // What is stored is read again.
        assert_eq!(read(serde_json::to_value(&tool).unwrap()).unwrap(), tool);
    }
}

#[test]
fn a_wrong_word_is_named() {
    let mcp = |more: &str| {
        let text = format!(
            r#"{{"type": "mcp", "server_label": "w", "server_url": "https://e.org", {more}}}"#
        );
        serde_json::from_str::<Value>(&text).unwrap()
    };
    for (written, word) in [
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
        (
            json!({"type": "code_interpreter", "memory_limit": "2g"}),
            "2g",
        ),
        (json!({"type": "file_search"}), "vector_store_ids"),
        (json!({"type": "image_generation", "seed": 1}), "seed"),
        (json!({"type": "mcp", "server_label": "w"}), "server_url"),
        // No token where it would not be kept as one.
        (mcp(r#""authorization": "x""#), "authorization"),
        (mcp(r#""require_approval": "sometimes""#), "sometimes"),
        (json!({"type": "raw"}), "declaration"),
    ] {
        let error = read(written).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn what_the_api_would_refuse_is_told_first() {
    let mcp =
        |label: &str, url: &str| json!({"type": "mcp", "server_label": label, "server_url": url});
    for (written, words) in [
        (
            json!({"type": "code_interpreter", "container": "c", "memory_limit": "1g"}),
            "not both",
        ),
        (
            json!({"type": "file_search", "vector_store_ids": []}),
            "at least one",
        ),
        (
            json!({"type": "file_search", "vector_store_ids": ["v"], "max_num_results": 0}),
            "1 to 50",
        ),
        (
            json!({"type": "file_search", "vector_store_ids": ["v"], "max_num_results": 51}),
            "1 to 50",
        ),
        (mcp(" ", "https://e.org"), "server_label"),
        (mcp("w", "e.org/mcp"), "`e.org/mcp`"),
        (mcp("w", "ftp://e.org"), "`ftp://e.org`"),
        (json!({"type": "raw", "declaration": {}}), "`type`"),
        (
            json!({"type": "raw", "declaration": {"type": "function", "name": "f"}}),
            "`function`",
        ),
    ] {
        let fault = read(written).unwrap().fault().unwrap();
        assert!(fault.contains(words), "{fault}");
    }
}

#[test]
fn what_may_hold_a_token_is_not_printed() {
    for written in [
        json!({"type": "mcp", "server_label": "w", "server_url": "https://e.org/?key=secret-1"}),
        json!({"type": "mcp", "server_label": "w", "server_url": "https://me:secret-1@e.org"}),
        json!({"type": "mcp", "server_label": "w", "server_url": "e.org?key=secret-1"}),
        json!({"type": "raw", "declaration": {"type": "mcp", "headers": {"x": "secret-1"}}}),
        json!({"type": "raw", "declaration": {"type": 1, "authorization": "secret-1"}}),
    ] {
        let tool = read(written).unwrap();
        let printed = format!("{tool:?} {:?}", tool.fault());
        assert!(!printed.contains("secret-1"), "{printed}");
    }
}
