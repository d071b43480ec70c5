use serde_json::json;

use super::*;

fn request(body: Value) -> AiSdkRequest {
    serde_json::from_value(body).unwrap()
}

/// Returns a message with a tool call that waits for an approval, as the client stores it.
fn waiting(state: &str, approval: &Value) -> Value {
    json!({
        "id": "run", "role": "assistant",
        "metadata": {"runId": "run", "lastEvent": 12, "sessionId": "chat"},
        "parts": [
            {"type": "step-start"},
            {"type": "reasoning", "id": "reasoning-1", "text": "hm", "state": "done"},
            {"type": "text", "text": "I look.", "state": "done"},
            {"type": "dynamic-tool", "toolName": "desk__look", "toolCallId": "a", "state": state, "input": {"n": 1},
             "approval": approval},
        ],
    })
}

fn question() -> Value {
    json!({"id": "q", "role": "user", "parts": [{"type": "text", "text": "What of it?"}]})
}

#[test]
fn requests_of_use_chat_are_read() {
    let request = request(json!({
        "id": "chat", "messages": [question()], "trigger": "submit-message",
        "model": "offline/planner", "parameters": {"max_steps": 3},
    }));
    assert_eq!(request.parse_decisions().unwrap(), None);
    assert_eq!(request.new_messages().unwrap()[0].text(), "What of it?");
    assert_eq!(request.parameters.max_steps, Some(3));
    let unknown = json!({"id": "chat", "messages": [], "recipie": "x"});
    let error = serde_json::from_value::<AiSdkRequest>(unknown).unwrap_err();
    assert!(error.to_string().contains("recipie"), "{error}");
}

#[test]
fn decisions_are_read_from_the_message_with_the_last_seen_event() {
    let yes = waiting("approval-responded", &json!({"id": "a", "approved": true}));
    let request = |message: Value| {
        request(
            json!({"id": "chat", "messages": [question(), message], "trigger": "submit-message",
                       "messageId": "run"}),
        )
    };
    let scope = ApprovalScope::Once;
    assert_eq!(
        request(yes).parse_decisions().unwrap(),
        Some(ClientApprovalDecisions {
            run: "run".into(),
            last_seen: 12,
            calls: vec![("a".into(), ApprovalDecision::Allow { input: None, scope })],
        })
    );
    let denied = json!({"id": "a", "approved": false, "reason": "no"});
    let no = waiting("approval-responded", &denied);
    let words = request(no).parse_decisions().unwrap().unwrap().calls;
    let reason = Some("no".to_owned());
    assert_eq!(
        words,
        [("a".to_owned(), ApprovalDecision::Deny { reason, scope })]
    );
    let open = waiting("approval-requested", &json!({"id": "a"}));
    assert_eq!(request(open.clone()).parse_decisions().unwrap(), None);
    // The message contains no new question either.
    assert!(request(open).new_messages().is_err());
    let mut lost = waiting("approval-responded", &json!({"id": "a", "approved": true}));
    lost["metadata"] = Value::Null;
    let problem = request(lost).parse_decisions().unwrap_err();
    assert!(problem.detail.contains("metadata"), "{problem:?}");
}

#[test]
fn a_history_that_only_the_client_has_is_read_whole() {
    use Role::{Assistant, Tool, User};
    let mut done = waiting("output-available", &json!({"id": "a", "approved": true}));
    done["parts"][3]["output"] = json!({"content": [{"type": "text", "text": "1"}]});
    let parts = done["parts"].as_array_mut().unwrap();
    parts.extend([
        json!({"type": "data-warning", "data": {}}),
        json!({"type": "step-start"}),
        json!({"type": "text", "text": "It is 1.", "state": "done"}),
    ]);
    let request = request(json!({"id": "chat", "messages": [question(), done, question()]}));
    let messages = request.all_messages().unwrap();
    let roles: Vec<_> = messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [User, Assistant, Tool, Assistant, User]);
    assert_eq!(messages[1].text(), "I look.");
    assert_eq!(messages[1].tool_uses().next().unwrap().name, "desk__look");
    let result = messages[2].tool_results().next().unwrap();
    assert!(result.as_text().contains("content"), "{result:?}");

    // A call without a decision gets an error as its result.
    let open = waiting("approval-requested", &json!({"id": "a"}));
    let body = json!({"id": "chat", "messages": [question(), open, question()]});
    let messages = self::request(body).all_messages().unwrap();
    assert!(messages[2].tool_results().next().unwrap().is_error);
}

/// Checks that the character NUL is refused, because no store accepts it. The error names the index
/// of the message.
#[test]
fn nul_is_refused_with_the_index_of_its_message() {
    let said = json!({"id": "q", "role": "user", "parts": [{"type": "text", "text": "a\u{0}b"}]});
    let body = json!({"id": "chat", "messages": [question(), said]});
    let problem = request(body).new_messages().unwrap_err();
    assert_eq!(problem.status.as_u16(), 400);
    assert_eq!(problem.field.as_deref(), Some("messages"));
    assert!(
        problem.detail.starts_with("messages[1]: ") && problem.detail.contains("U+0000"),
        "{problem:?}"
    );
    let denied = json!({"id": "a", "approved": false, "reason": "n\u{0}"});
    let no = waiting("approval-responded", &denied);
    let body = json!({"id": "chat", "messages": [question(), no]});
    let problem = request(body).parse_decisions().unwrap_err();
    assert_eq!(problem.status, 400);
    assert!(problem.detail.contains("`a`"), "{problem:?}");
}
