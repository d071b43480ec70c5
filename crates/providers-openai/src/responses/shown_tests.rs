use proptest::prelude::*;
use serde_json::json;

use super::*;

fn read(item: &Value) -> Option<String> {
    shown(item.as_object().unwrap())
}

/// What is read of an item of that type.
fn of(kind: &str, mut item: Value) -> String {
    item["type"] = json!(kind);
    read(&item).unwrap_or_else(|| panic!("nothing is read of {item}"))
}

#[test]
fn searches_tell_what_was_looked_for_and_found() {
    let search = json!({"status": "completed", "action": {
        "type": "search", "query": "weather hamburg", "queries": ["weather hamburg", "hamburg rain"],
        "sources": [{"type": "url", "url": "https://example.org/a"},
                    {"type": "url", "url": "https://example.org/b", "title": "B"}],
    }});
    assert_eq!(
        of("web_search_call", search),
        "weather hamburg, hamburg rain\n- https://example.org/a\n- B: https://example.org/b"
    );
    let open = json!({"action": {"type": "open_page", "url": "https://example.org"}});
    assert_eq!(of("web_search_call", open), "https://example.org");
    let find =
        json!({"action": {"type": "find_in_page", "pattern": "rain", "url": "https://e.org"}});
    assert_eq!(of("web_search_call", find), "“rain” in https://e.org");
    let passage = format!("It  rains\n {}", "and rains ".repeat(60));
    let files = json!({"queries": ["refund"], "results": [
        {"file_id": "f", "filename": "terms.md", "score": 0.9, "text": passage}, {"file_id": "g"},
    ]});
    let files = of("file_search_call", files);
    assert!(
        files.starts_with("refund\n- terms.md: It rains and rains"),
        "{files}"
    );
    assert!(
        files.ends_with('…') && files.chars().count() < 350,
        "{files}"
    );
}

#[test]
fn programs_tell_what_ran_and_what_came_out() {
    let run = json!({"code": "print(12)", "container_id": "c", "outputs": [
        {"type": "logs", "logs": "12\n"},
        {"type": "image", "url": "data:image/png;base64,AAAA"},
        {"type": "image", "url": "https://example.org/plot.png"},
    ]});
    assert_eq!(
        of("code_interpreter_call", run),
        "print(12)\n12\n[image]\n[image https://example.org/plot.png]"
    );
    assert_eq!(
        of("program", json!({"code": "f()", "fingerprint": "x"})),
        "f()"
    );
    assert_eq!(of("program_output", json!({"result": "12"})), "12");
    let shell =
        json!({"action": {"type": "exec", "command": ["ls", "-l"], "env": {"KEY": "secret"}}});
    assert_eq!(of("local_shell_call", shell), "ls -l");
    assert_eq!(of("local_shell_call_output", json!({"output": "a\n"})), "a");
    let shell = json!({"action": {"commands": ["cd a", "ls"], "timeout_ms": 5}});
    assert_eq!(of("shell_call", shell), "cd a\nls");
    let output = json!({"output": [
        {"stdout": "a\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
        {"stdout": "", "stderr": "no b", "outcome": {"type": "exit", "exit_code": 2}},
        {"stdout": "", "stderr": "", "outcome": {"type": "timeout"}},
    ]});
    assert_eq!(
        of("shell_call_output", output),
        "a\nno b\n[exit code: 2]\n[timed out]"
    );
    let patch = json!({"operation": {"type": "update_file", "path": "a.rs", "diff": "-a\n+b"}});
    assert_eq!(of("apply_patch_call", patch), "update_file a.rs\n-a\n+b");
    assert_eq!(
        of("apply_patch_call_output", json!({"output": "done"})),
        "done"
    );
}

#[test]
fn screens_and_images_are_told_in_words() {
    let click = json!({"call_id": "c", "action": {"type": "click", "button": "left", "x": 1, "y": 2, "keys": null},
                       "pending_safety_checks": [{"id": "s", "message": "Looks odd."}]});
    assert_eq!(
        of("computer_call", click),
        "click (button: \"left\", x: 1, y: 2)\n[safety check: Looks odd.]"
    );
    let many = json!({"actions": [{"type": "screenshot"}, {"type": "type", "text": "hi"}]});
    assert_eq!(of("computer_call", many), "screenshot\ntype (text: \"hi\")");
    let screen = json!({"output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,AAAA"}});
    assert_eq!(of("computer_call_output", screen), "[screenshot]");
    let image = json!({"revised_prompt": "A cat.", "result": "iVBOR".repeat(1000),
                       "output_format": "png", "size": "1024x1024"});
    assert_eq!(
        of("image_generation_call", image),
        "A cat.\n[image png 1024x1024]"
    );
    let blocked =
        json!({"status": "failed", "error": {"type": "moderation_blocked", "message": "No."}});
    assert_eq!(of("image_generation_call", blocked), "[error: No.]");
}

#[test]
fn tools_of_servers_tell_what_was_called_and_what_it_gave() {
    let call =
        json!({"server_label": "w", "name": "get", "arguments": "{\"a\":1}", "output": "12 °C"});
    assert_eq!(of("mcp_call", call), "get({\"a\":1})\n12 °C");
    for (error, told) in [
        (json!("gone"), "gone"),
        (
            json!({"type": "http_error", "code": 500, "message": "Oops"}),
            "Oops",
        ),
        (
            json!({"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": "no"}]}),
            "[{\"type\":\"text\",\"text\":\"no\"}]",
        ),
    ] {
        let call = json!({"name": "get", "arguments": "{}", "output": null, "error": error});
        assert_eq!(of("mcp_call", call), format!("get({{}})\n[error: {told}]"));
    }
    let tools =
        json!({"server_label": "w", "tools": [{"name": "a", "input_schema": {}}, {"name": "b"}]});
    assert_eq!(of("mcp_list_tools", tools), "w: a, b");
    let asked = json!({"name": "get", "arguments": "{}"});
    assert_eq!(of("mcp_approval_request", asked), "get({})");
    let answer = json!({"approve": false, "reason": "too dear"});
    assert_eq!(of("mcp_approval_response", answer), "declined\ntoo dear");
    assert_eq!(
        of(
            "custom_tool_call",
            json!({"name": "sql", "input": "select 1"})
        ),
        "sql(select 1)"
    );
    assert_eq!(
        of("tool_search_call", json!({"arguments": {"query": "q"}})),
        "{\"query\":\"q\"}"
    );
    let found = json!({"tools": [{"type": "function", "name": "a"}, {"type": "web_search"}]});
    assert_eq!(of("tool_search_output", found), "a, web_search");
    let output = json!({"output": [{"type": "input_text", "text": "12"},
                                   {"type": "input_file", "filename": "a.pdf", "file_data": "JVBE"}]});
    assert_eq!(of("custom_tool_call_output", output), "12\n[file a.pdf]");
}

#[test]
fn kinds_of_other_servers_are_read_as_far_as_they_are_alike() {
    let search = json!({"name": "x_keyword_search", "input": "{\"q\":1}", "call_id": "c"});
    assert_eq!(of("custom_thing", search), "x_keyword_search({\"q\":1})");
    assert_eq!(of("x_search_call", json!({"query": "rain"})), "rain");
    for silent in [
        json!({"type": "compaction", "encrypted_content": "gAAA"}),
        json!({"type": "web_search_call", "status": "completed"}),
        json!({"type": "code_interpreter_call", "code": null, "outputs": null}),
        json!({"type": "thing"}),
        json!({}),
    ] {
        assert_eq!(read(&silent), None, "{silent}");
    }
}

#[test]
fn it_is_short_and_no_data() {
    let long = of(
        "code_interpreter_call",
        json!({"code": "é = 1\n".repeat(1000)}),
    );
    assert_eq!(long.chars().count(), MAX_SHOWN);
    assert!(long.ends_with('…'));
    let base64 = "QUJD+/aa".repeat(500);
    let output =
        format!("{{\"type\":\"image\",\"data\":\"{base64}==\",\"mimeType\":\"image/png\"}}");
    assert_eq!(
        of(
            "mcp_call",
            json!({"name": "shot", "arguments": "{}", "output": output})
        ),
        "shot({})\n{\"type\":\"image\",\"data\":\"[data]\",\"mimeType\":\"image/png\"}"
    );
    let path = "some/long/path".repeat(10);
    assert_eq!(of("thing", json!({"text": path})), path);
}

proptest! {
    #[test]
    fn any_item_is_read_within_its_bounds(
        kind in prop::sample::select(vec![
            "web_search_call", "file_search_call", "code_interpreter_call", "computer_call",
            "image_generation_call", "shell_call", "shell_call_output", "apply_patch_call", "mcp_call",
            "mcp_list_tools", "odd",
        ]),
        field in prop::sample::select(vec![
            "action", "queries", "results", "code", "outputs", "output", "error", "tools", "name",
            "arguments", "result", "actions", "operation", "text",
        ]),
        text in "[ -~é\n]{0,3000}",
        nested in any::<bool>(),
    ) {
        let value = if nested { json!([{"text": text, "url": text, "type": "image"}]) } else { json!(text) };
        let item = json!({"type": kind, field: value});
        if let Some(read) = read(&item) {
            prop_assert!(!read.is_empty() && read.chars().count() <= MAX_SHOWN);
        }
    }
}
