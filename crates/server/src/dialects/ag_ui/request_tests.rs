use serde_json::json;

use super::*;

fn input(mut body: Value) -> AgUiRequest {
    body["threadId"] = json!("thread");
    body["runId"] = json!("client");
    if body.get("messages").is_none() {
        body["messages"] = json!([{"id": "q", "role": "user", "content": "What of it?"}]);
    }
    serde_json::from_value(body).unwrap()
}

#[test]
fn requests_of_http_agent_are_read() {
    let input = input(json!({
        "protocolVersion": "1.0", "tools": [], "context": [], "state": {},
        "forwardedProps": {"model": "offline/planner"},
    }));
    assert_eq!(
        input.parse_run_settings().unwrap().model.as_deref(),
        Some("offline/planner")
    );
    assert_eq!(input.parse_decisions().unwrap(), None);
    assert_eq!(input.new_messages().unwrap()[0].text(), "What of it?");
}

#[test]
fn what_else_the_agent_should_know_stands_before_the_question() {
    let input = input(json!({"context": [{"description": "Today", "value": "Monday"}]}));
    assert_eq!(
        input.new_messages().unwrap()[0].text(),
        "Context:\nToday: Monday\n\nWhat of it?"
    );
}

#[test]
fn what_is_not_supported_is_refused_by_its_name() {
    let problem = input(json!({"state": {"a": 1}}))
        .parse_run_settings()
        .unwrap_err();
    assert_eq!(problem.status.as_u16(), 400);
    assert_eq!(problem.field.as_deref(), Some("state"));
}

#[test]
fn tools_of_the_client_and_their_results_are_read() {
    let input = input(json!({
        "tools": [
            {"name": "mine", "description": "Mine.", "parameters": {"type": "object", "required": ["n"]}},
            {"name": "bare", "description": "", "parameters": null},
        ],
        "messages": [
            {"id": "1", "role": "user", "content": "?"},
            {"id": "2", "role": "assistant", "toolCalls": [
                {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}},
                {"id": "b", "type": "function", "function": {"name": "mine", "arguments": "{}"}},
                {"id": "c", "type": "function", "function": {"name": "mine", "arguments": "{}"}}]},
            {"id": "3", "role": "tool", "toolCallId": "a", "content": "seen"},
            {"id": "4", "role": "tool", "toolCallId": "b", "content": "17 degrees"},
            {"id": "5", "role": "tool", "toolCallId": "c", "content": "", "error": "no such city"},
        ],
    }));
    let schema = input.tools[0].parameters.as_ref().unwrap();
    assert_eq!(schema["required"], json!(["n"]));
    assert_eq!(input.tools[1].parameters, None);
    let results = input.client_tool_results().unwrap();
    let said: Vec<_> = results
        .iter()
        .map(|(id, output)| (id.as_str(), output.content[0].as_text(), output.is_error))
        .collect();
    assert_eq!(
        said,
        [
            ("a", "seen".to_owned(), false),
            ("b", "17 degrees".to_owned(), false),
            ("c", "no such city".to_owned(), true),
        ]
    );
}

/// Checks that the character NUL is refused in every field, because no store accepts it. The error
/// names the index of the message.
#[test]
fn nul_is_refused_with_the_index_of_its_message() {
    let said = |message: Value| {
        let first = json!({"id": "1", "role": "user", "content": "?"});
        let messages = json!([first, message]);
        input(json!({"messages": messages})).new_messages()
    };
    let problem = said(json!({"id": "2", "role": "user", "content": "a\u{0}b"})).unwrap_err();
    assert_eq!(problem.status, 400);
    assert!(
        problem.detail.starts_with("messages[1]: ") && problem.detail.contains("U+0000"),
        "{problem:?}"
    );
    let context = input(json!({"context": [{"description": "d", "value": "a\u{0}"}]}));
    assert!(context.new_messages().is_err());
    for payload in [
        json!({"approved": false, "reason": "a\u{0}"}),
        json!({"approved": true, "input": {"a": ["\u{0}"]}}),
        json!({"approved": true, "input": {"\u{0}": 1}}),
    ] {
        let entry = json!({"interruptId": "run/1/a", "status": "resolved", "payload": payload});
        let problem = input(json!({"resume": [entry]}))
            .parse_decisions()
            .unwrap_err();
        assert_eq!(problem.field.as_deref(), Some("resume"));
        assert!(problem.detail.starts_with("resume[0]: "), "{problem:?}");
    }
}

#[test]
fn answers_to_interrupts_are_words_about_calls() {
    let resume = |entries: Value| input(json!({"resume": entries})).parse_decisions();
    let words = resume(json!([
        {"interruptId": "run/12/a", "status": "resolved",
         "payload": {"approved": true, "input": {"n": 2}, "scope": "session"}},
        {"interruptId": "run/12/b/c", "status": "resolved", "payload": {"approved": false, "reason": "no"}},
        {"interruptId": "run/12/d", "status": "cancelled"},
    ]))
    .unwrap()
    .unwrap();
    assert_eq!((words.run.as_str(), words.last_seen), ("run", 12));
    let deny = |reason: Option<&str>| ApprovalDecision::Deny {
        reason: reason.map(ToOwned::to_owned),
        scope: ApprovalScope::Once,
    };
    assert_eq!(
        words.calls,
        [
            (
                "a".to_owned(),
                ApprovalDecision::Allow {
                    input: json!({"n": 2}).as_object().cloned(),
                    scope: ApprovalScope::Session,
                }
            ),
            ("b/c".to_owned(), deny(Some("no"))),
            ("d".to_owned(), deny(None)),
        ]
    );
    for bad in [
        json!([{"interruptId": "x", "status": "cancelled"}]),
        json!([{"interruptId": "run/x/a", "status": "cancelled"}]),
        json!([{"interruptId": "run/1/a", "status": "resolved"}]),
        json!([{"interruptId": "run/1/a", "status": "resolved", "payload": {"approved": "yes"}}]),
        json!([{"interruptId": "run/1/a", "status": "cancelled"}, {"interruptId": "other/1/a", "status": "cancelled"}]),
    ] {
        assert_eq!(resume(bad).unwrap_err().field.as_deref(), Some("resume"));
    }
}

#[test]
fn a_thread_that_only_the_client_has_is_read_whole() {
    use Role::{Assistant, System, Tool, User};
    let messages = input(json!({"messages": [
        {"id": "1", "role": "developer", "content": "Be brief."},
        {"id": "2", "role": "user", "content": [
            {"type": "text", "text": "?"},
            {"type": "image", "source": {"type": "data", "value": "AA==", "mimeType": "image/png"}},
        ]},
        {"id": "3", "role": "reasoning", "content": "hm"},
        {"id": "4", "role": "assistant", "toolCalls": [
            {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
        {"id": "5", "role": "tool", "toolCallId": "a", "content": "", "error": "it failed"},
        {"id": "6", "role": "activity", "activityType": "x", "content": {"a": 1}},
        {"id": "7", "role": "user", "content": "And?"},
    ]}))
    .all_messages()
    .unwrap();
    let roles: Vec<_> = messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [System, User, Assistant, Tool, User]);
    assert!(messages[3].tool_results().next().unwrap().is_error);
}
