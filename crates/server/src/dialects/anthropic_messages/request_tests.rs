use serde_json::json;
use switchboard_domain::Media;

use super::*;

fn request(mut body: Value) -> AnthropicMessagesRequest {
    body["model"] = json!("default");
    body["max_tokens"] = json!(100);
    if body.get("messages").is_none() {
        body["messages"] = json!([{"role": "user", "content": "Hello"}]);
    }
    serde_json::from_value(body).unwrap()
}

#[test]
fn what_can_be_honoured_is() {
    let parameters = request(json!({
        "stop_sequences": ["END"], "temperature": 0.2, "top_p": 0.5,
        "thinking": {"type": "enabled", "budget_tokens": 5000},
        "tool_choice": {"type": "any", "disable_parallel_tool_use": true},
        "switchboard": {"tools": true},
        "metadata": {"user_id": "ann"}, "service_tier": "auto", "tools": [],
    }))
    .parse_parameters()
    .unwrap();
    assert_eq!(
        parameters,
        Parameters {
            temperature: Some(0.2),
            top_p: Some(0.5),
            stop: vec!["END".into()],
            max_output_tokens: Some(100),
            tool_choice: Some(ToolChoice::Required),
            reasoning: Some(ReasoningEffort::Medium),
            parallel_tool_use: Some(false),
            tools: Some(true),
            ..Parameters::default()
        }
    );
    let effort = |body| request(body).parse_parameters().unwrap().reasoning;
    assert_eq!(
        effort(json!({"thinking": {"type": "disabled"}})),
        Some(ReasoningEffort::None)
    );
    assert_eq!(effort(json!({"thinking": {"type": "adaptive"}})), None);
    let both = json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}});
    assert_eq!(effort(both), Some(ReasoningEffort::High));
}

#[test]
fn what_cannot_is_refused_by_its_name() {
    for (field, value) in [
        ("top_k", json!(5)),
        ("mcp_servers", json!([])),
        ("container", json!("c")),
        ("output_config", json!({"effort": "max"})),
        ("thinking", json!({"type": "between_tools"})),
        ("tool_choice", json!({"type": "tool"})),
        ("speed", json!("fast")),
    ] {
        let mut body = json!({});
        body[field] = value;
        let problem = request(body).parse_parameters().unwrap_err();
        assert_eq!(problem.status, 400);
        assert_eq!(problem.field.as_deref(), Some(field), "{problem:?}");
    }
}

#[test]
fn an_answer_may_be_wanted_in_a_form() {
    let form = |format: Value| {
        let asked = request(json!({"output_config": {"effort": "low", "format": format}}));
        assert!(asked.parse_parameters().is_ok());
        asked.parse_answer_schema()
    };
    let schema = json!({"type": "object", "required": ["n"]});
    let given = form(json!({"type": "json_schema", "schema": schema})).unwrap();
    let given = given.unwrap();
    assert!(given.accepts_json_text(r#"{"n": 1}"#) && !given.accepts_json_text("{}"));
    assert!(request(json!({})).parse_answer_schema().unwrap().is_none());
    for wrong in [
        json!({"type": "json_schema"}),
        json!({"type": "json_schema", "schema": {"type": "nothing"}}),
        json!({"type": "grammar"}),
    ] {
        let problem = form(wrong).unwrap_err();
        assert_eq!(problem.status.as_u16(), 400);
        assert_eq!(problem.field.as_deref(), Some("output_config"));
    }
}

#[test]
fn tools_of_the_client_have_schemas_of_their_own() {
    let tools = request(
        json!({"tools": [{"name": "a", "description": "A.", "input_schema": {"type": "object"}}]}),
    );
    let tool = &tools.parse_tools().unwrap()[0];
    assert_eq!(tool.name, "a");
    assert_eq!(tool.description.as_deref(), Some("A."));
    assert_eq!(tool.parameters, Some(json!({"type": "object"})));
    let other = request(json!({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}));
    assert_eq!(
        other.parse_tools().unwrap_err().field.as_deref(),
        Some("tools")
    );
}

#[test]
fn a_conversation_is_read_with_its_calls_and_files() {
    use Role::{Assistant, System, Tool, User};
    let messages = request(json!({
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": [
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "hi"}},
                {"type": "text", "text": "?"},
            ]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": ""},
                {"type": "tool_use", "id": "a", "name": "look", "input": {"n": 1}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "no"}], "is_error": true},
                {"type": "text", "text": "And?"},
            ]},
        ],
    }))
    .parse_conversation()
    .unwrap();
    let roles: Vec<_> = messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [System, User, Assistant, Tool, User]);
    let Part::Document(document) = &messages[1].parts[1] else {
        panic!("{messages:?}");
    };
    assert_eq!(document.media, Media::from_base64("text/plain", "aGk="));
    // Reasoning without a signature is omitted, because the provider would refuse it.
    assert_eq!(messages[2].parts.len(), 1);
    let result = messages[3].tool_results().next().unwrap();
    assert!(result.is_error && result.as_text() == "no" && result.name == "look");
}

#[test]
fn a_message_that_cannot_be_read_is_named() {
    for bad in [
        json!({"role": "user", "content": "a\u{0}"}),
        json!({"role": "tool", "content": "x"}),
        json!({"role": "user", "content": [{"type": "search_result"}]}),
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "nobody"}]}),
        json!({"role": "user", "content": [{"type": "image", "source": {"type": "file", "file_id": "f"}}]}),
        json!({"role": "assistant", "content": [{"type": "tool_result", "tool_use_id": "a"}]}),
    ] {
        let problem = request(json!({"messages": [{"role": "user", "content": "?"}, bad]}))
            .parse_conversation()
            .unwrap_err();
        assert!(problem.detail.starts_with("messages[1]: "), "{problem:?}");
    }
}
