use proptest::prelude::*;
use serde_json::json;

use super::*;

fn shown(block: Value) -> Option<String> {
    match block {
        Value::Object(block) => words(&block),
        other => panic!("{other}"),
    }
}

fn said(block: Value) -> String {
    shown(block).expect("it says something")
}

fn call(name: &str, input: Value) -> Value {
    let mut block = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": name});
    block["input"] = input;
    block
}

fn result(kind: &str, content: Value) -> Value {
    let mut block = json!({"type": kind, "tool_use_id": "srvtoolu_1"});
    block["content"] = content;
    block
}

#[test]
fn a_call_tells_what_it_looks_for_or_runs() {
    for (block, expected) in [
        (
            call("web_search", json!({"query": "weather Kiel"})),
            "[web_search: weather Kiel]",
        ),
        (
            call("web_fetch", json!({"url": "https://a.example"})),
            "[web_fetch: https://a.example]",
        ),
        (
            call("code_execution", json!({"code": "x = 1\nprint(x)\n"})),
            "[code_execution]\nx = 1\nprint(x)",
        ),
        (
            call("bash_code_execution", json!({"command": "ls"})),
            "[bash_code_execution: ls]",
        ),
        (
            call(
                "text_editor_code_execution",
                json!({"command": "view", "path": "/a"}),
            ),
            r#"[text_editor_code_execution {"command":"view","path":"/a"}]"#,
        ),
        (
            call("tool_search_tool_regex", json!({"pattern": "a.*"})),
            r#"[tool_search_tool_regex {"pattern":"a.*"}]"#,
        ),
        (call("advisor", json!({})), "[advisor]"),
        (
            json!({"type": "mcp_tool_use", "id": "m", "server_name": "s", "name": "echo", "input": {"a": 1}}),
            r#"[echo {"a":1}]"#,
        ),
    ] {
        assert_eq!(said(block), expected);
    }
}

#[test]
fn a_search_tells_titles_and_addresses_and_nothing_encrypted() {
    let found = json!([
        {"type": "web_search_result", "title": "A", "url": "https://a.example",
         "encrypted_content": "EqgfCioIARgB", "page_age": "1 day"},
        {"type": "web_search_result", "title": " ", "url": "https://b.example",
         "encrypted_content": "EqgfCioIARgB"},
    ]);
    let text = said(result("web_search_tool_result", found));
    assert_eq!(text, "A: https://a.example\nhttps://b.example");
}

#[test]
fn every_error_tells_its_code() {
    for kind in [
        "web_search",
        "web_fetch",
        "code_execution",
        "bash_code_execution",
        "text_editor_code_execution",
        "tool_search",
        "advisor",
    ] {
        let error = json!({"type": format!("{kind}_tool_result_error"), "error_code": "unavailable",
                           "error_message": null});
        let text = said(result(&format!("{kind}_tool_result"), error));
        assert_eq!(text, "[error: unavailable]", "{kind}");
    }
    let error = json!({"type": "tool_search_tool_result_error", "error_code": "invalid_tool_input",
                       "error_message": "no such pattern"});
    let text = said(result("tool_search_tool_result", error));
    assert_eq!(text, "[error: invalid_tool_input]\nno such pattern");
}

#[test]
fn a_fetched_page_is_text_and_a_fetched_file_its_type() {
    let page = |source: Value| {
        let content = json!({"type": "web_fetch_result", "url": "https://a.example", "retrieved_at": "2026",
                             "content": {"type": "document", "title": "A", "source": source}});
        said(result("web_fetch_tool_result", content))
    };
    let text = json!({"type": "text", "media_type": "text/plain", "data": "12 degrees.\n"});
    assert_eq!(page(text), "https://a.example\nA\n12 degrees.");
    let pdf = json!({"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="});
    assert_eq!(page(pdf), "https://a.example\nA\n[application/pdf]");
}

#[test]
fn code_that_ran_tells_output_errors_files_and_exit_code() {
    for kind in ["code_execution", "bash_code_execution"] {
        let ran = |stdout: &str, stderr: &str, code: i64, files: Value| {
            let content = json!({"type": format!("{kind}_result"), "stdout": stdout, "stderr": stderr,
                                 "return_code": code, "content": files});
            said(result(&format!("{kind}_tool_result"), content))
        };
        assert_eq!(ran("42\n", "", 0, json!([])), "42");
        assert_eq!(
            ran("", "no such file\n", 2, json!([])),
            "no such file\n[exit code: 2]"
        );
        assert_eq!(ran("", "", 0, json!([])), "[exit code: 0]");
        let file = json!([{"type": format!("{kind}_output"), "file_id": "file_1"}]);
        assert_eq!(ran("", "", 0, file), "[file: file_1]");
    }
    let secret = json!({"type": "encrypted_code_execution_result", "encrypted_stdout": "EqgfCioIARgB",
                        "stderr": "", "return_code": 0, "content": []});
    assert_eq!(
        said(result("code_execution_tool_result", secret)),
        "[exit code: 0]"
    );
}

#[test]
fn a_file_that_was_seen_or_changed_is_told() {
    let edited = |content: Value| said(result("text_editor_code_execution_tool_result", content));
    let kind = |word: &str| format!("text_editor_code_execution_{word}_result");
    let view = |file_type: &str| {
        edited(
            json!({"type": kind("view"), "file_type": file_type, "content": "a\nb", "num_lines": 2}),
        )
    };
    assert_eq!(view("text"), "a\nb");
    assert_eq!(view("image"), "[image]");
    assert_eq!(
        edited(json!({"type": kind("create"), "is_file_update": false})),
        "[file created]"
    );
    assert_eq!(
        edited(json!({"type": kind("create"), "is_file_update": true})),
        "[file updated]"
    );
    let lines = json!({"type": kind("str_replace"), "lines": ["-a", "+b"], "new_start": 1});
    assert_eq!(edited(lines), "-a\n+b");
}

#[test]
fn the_rest_tells_what_it_has() {
    let references = json!({"type": "tool_search_tool_search_result",
                            "tool_references": [{"type": "tool_reference", "tool_name": "a"},
                                                {"type": "tool_reference", "tool_name": "b"}]});
    assert_eq!(said(result("tool_search_tool_result", references)), "a\nb");
    let text = json!([{"type": "text", "text": "no such city"}]);
    let mut failed = result("mcp_tool_result", text);
    failed["is_error"] = json!(true);
    assert_eq!(said(failed), "[failed]\nno such city");
    assert_eq!(said(result("mcp_tool_result", json!("plain"))), "plain");
    let advice = json!({"type": "advisor_result", "text": "Go on.", "stop_reason": "end_turn"});
    assert_eq!(said(result("advisor_tool_result", advice)), "Go on.");
    assert_eq!(
        said(json!({"type": "container_upload", "file_id": "file_1"})),
        "[file: file_1]"
    );
    let summary = json!({"type": "compaction", "content": "We spoke of rain.",
                         "encrypted_content": "EqgfCioIARgB", "signature": "EqgfCioIARgB"});
    assert_eq!(said(summary), "We spoke of rain.");
    let fallback =
        json!({"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}, "trigger": {}});
    assert_eq!(said(fallback), "[a declined; b goes on]");
    // These say nothing to a reader.
    for silent in [
        result(
            "advisor_tool_result",
            json!({"type": "advisor_redacted_result", "encrypted_content": "Eqgf"}),
        ),
        json!({"type": "compaction", "content": null, "encrypted_content": "Eqgf"}),
        json!({"type": "container", "id": "container_1", "expires_at": "2026-11-21T10:00:00Z"}),
        result("web_search_tool_result", json!([])),
        json!({"type": "hologram", "data": "iVBORw0KGgo="}),
        json!({}),
    ] {
        assert_eq!(shown(silent.clone()), None, "{silent}");
    }
}

#[test]
fn what_is_long_is_cut_between_letters_and_says_so() {
    let long = "ä".repeat(MAX_WORDS + 1);
    let cut = said(call("code_execution", json!({"code": long})));
    assert_eq!(cut.chars().count(), MAX_WORDS);
    assert!(cut.starts_with("[code_execution: ää") && cut.ends_with("ä…"));
    // What just fits is whole.
    let whole = "ä".repeat(MAX_WORDS - 1);
    assert_eq!(said(result("mcp_tool_result", json!(whole))), whole);
    let results =
        (0..500).map(|at| json!({"title": "t".repeat(20), "url": format!("https://{at}.example")}));
    let cut = said(result("web_search_tool_result", results.collect()));
    assert_eq!(cut.chars().count(), MAX_WORDS);
}

fn any_json() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just("type"),
        Just("content"),
        Just("source"),
        Just("data"),
        Just("stdout"),
        Just("title"),
        Just("url"),
        Just("return_code"),
        Just("name"),
        Just("input"),
        Just("file_type"),
        Just("lines"),
        Just("encrypted_content"),
        Just("error_code"),
        Just("from"),
        Just("model"),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-zä\n ]{0,900}".prop_map(Value::from),
        Just(json!("base64")),
    ];
    leaf.prop_recursive(4, 24, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((word.clone(), inner), 0..6).prop_map(|fields| {
                let fields = fields
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value));
                Value::Object(fields.collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn the_words_of_any_block_are_bounded(mut block in any_json()) {
        let secret = "zzzz-sealed";
        if let Value::Object(block) = &mut block {
            block.insert("encrypted_content".into(), secret.into());
            block.remove("input");
            if let Some(words) = words(block) {
                prop_assert!(!words.is_empty());
                prop_assert!(words.chars().count() <= MAX_WORDS);
                prop_assert!(!words.contains(secret));
            }
        }
    }
}
