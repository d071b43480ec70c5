use serde_json::json;

use super::*;

fn input(mut body: Value) -> RunInput {
    body["threadId"] = json!("thread");
    body["runId"] = json!("client");
    if body.get("messages").is_none() {
        body["messages"] = json!([{"id": "q", "role": "user", "content": "What of it?"}]);
    }
    serde_json::from_value(body).unwrap()
}

#[test]
fn what_http_agent_posts_is_read() {
    let input = input(json!({
        "protocolVersion": "1.0", "tools": [], "context": [], "state": {},
        "forwardedProps": {"model": "offline/planner"},
    }));
    assert_eq!(
        input.wish().unwrap().model.as_deref(),
        Some("offline/planner")
    );
    assert_eq!(input.words().unwrap(), None);
    assert_eq!(input.newest().unwrap()[0].text(), "What of it?");
}

#[test]
fn what_else_the_agent_should_know_stands_before_the_question() {
    let input = input(json!({"context": [{"description": "Today", "value": "Monday"}]}));
    assert_eq!(
        input.newest().unwrap()[0].text(),
        "Context:\nToday: Monday\n\nWhat of it?"
    );
}

#[test]
fn what_is_not_supported_is_refused_by_its_name() {
    for (field, value) in [
        (
            "tools",
            json!([{"name": "mine", "description": "", "parameters": {}}]),
        ),
        ("state", json!({"a": 1})),
    ] {
        let mut body = json!({});
        body[field] = value;
        let problem = input(body).wish().unwrap_err();
        assert_eq!(
            (problem.status.as_u16(), problem.field.as_deref()),
            (400, Some(field))
        );
    }
}

#[test]
fn answers_to_interrupts_are_words_about_calls() {
    let resume = |entries: Value| input(json!({"resume": entries})).words();
    let words = resume(json!([
        {"interruptId": "run/12/a", "status": "resolved",
         "payload": {"approved": true, "input": {"n": 2}, "scope": "session"}},
        {"interruptId": "run/12/b/c", "status": "resolved", "payload": {"approved": false, "reason": "no"}},
        {"interruptId": "run/12/d", "status": "cancelled"},
    ]))
    .unwrap()
    .unwrap();
    assert_eq!((words.run.as_str(), words.seen), ("run", 12));
    let deny = |reason: Option<&str>| ApprovalDecision::Deny {
        reason: reason.map(ToOwned::to_owned),
        scope: ApprovalScope::Once,
    };
    assert_eq!(
        words.said,
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
    .conversation()
    .unwrap();
    let roles: Vec<_> = messages.iter().map(|message| message.role).collect();
    assert_eq!(
        roles,
        [
            Role::System,
            Role::User,
            Role::Assistant,
            Role::Tool,
            Role::User
        ]
    );
    assert!(messages[3].results().next().unwrap().is_error);
}
