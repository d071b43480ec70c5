use serde_json::json;

use super::*;
use crate::Approve;
use switchboard_domain::ReasoningEffort;

fn request(mut body: Value) -> OpenAiChatRequest {
    body["model"] = json!("default");
    if body.get("messages").is_none() {
        body["messages"] = json!([{"role": "user", "content": "Hello"}]);
    }
    serde_json::from_value(body).unwrap()
}

#[test]
fn what_can_be_honoured_is() {
    let parameters = request(json!({
        "max_completion_tokens": 50, "temperature": 0.5, "top_p": 0.9, "stop": "END", "seed": 7,
        "reasoning_effort": "low", "parallel_tool_calls": false,
        "tool_choice": {"type": "function", "function": {"name": "desk__look"}},
        "switchboard": {"max_steps": 3, "approve": "ask"},
    }))
    .parse_parameters()
    .unwrap();
    assert_eq!(
        parameters,
        Parameters {
            temperature: Some(0.5),
            top_p: Some(0.9),
            stop: vec!["END".into()],
            seed: Some(7),
            max_steps: Some(3),
            max_output_tokens: Some(50),
            tool_choice: Some(ToolChoice::Only(vec!["desk__look".into()])),
            reasoning: Some(ReasoningEffort::Low),
            parallel_tool_use: Some(false),
            approve: Some(Approve::Ask),
            ..Parameters::default()
        }
    );
}

#[test]
fn what_cannot_is_refused_by_its_name() {
    for (field, value) in [
        ("n", json!(2)),
        ("functions", json!([{"name": "mine"}])),
        ("frequency_penalty", json!(0.5)),
        ("logprobs", json!(true)),
        ("logit_bias", json!({"50256": -100})),
        ("modalities", json!(["text", "audio"])),
        ("web_search_options", json!({})),
        ("prediction", json!({"type": "content", "content": ""})),
        ("store", json!(true)),
        ("reasoning_effort", json!("xhigh")),
        ("tool_choice", json!({"type": "allowed_tools"})),
        ("something_new", json!(1)),
    ] {
        let mut body = json!({});
        body[field] = value;
        let problem = request(body).parse_parameters().unwrap_err();
        assert_eq!(problem.status, 400);
        assert_eq!(problem.field.as_deref(), Some(field), "{problem:?}");
        assert!(problem.detail.contains(field), "{problem:?}");
    }
    let both = request(json!({"max_tokens": 1, "max_completion_tokens": 2}));
    assert!(both.parse_parameters().is_err());
}

#[test]
fn tools_of_the_client_are_functions() {
    let tools = request(json!({"tools": [
        {"type": "function", "function": {"name": "a", "description": "A.", "parameters": {"type": "object"}, "strict": true}},
        {"type": "function", "function": {"name": "b"}},
    ]}));
    let [a, b] = &tools.parse_tools().unwrap()[..] else {
        panic!("two tools");
    };
    assert_eq!(a.name, "a");
    assert_eq!(a.description.as_deref(), Some("A."));
    assert_eq!(a.parameters, Some(json!({"type": "object"})));
    assert_eq!((b.name.as_str(), &b.parameters), ("b", &None));
    let other = request(json!({"tools": [{"type": "custom", "custom": {"name": "c"}}]}));
    let problem = other.parse_tools().unwrap_err();
    assert_eq!(problem.field.as_deref(), Some("tools"));
}

#[test]
fn what_says_nothing_may_be_said() {
    let parameters = request(json!({
        "n": 1, "frequency_penalty": 0, "presence_penalty": 0.0, "logprobs": false, "logit_bias": {}, "tools": [],
        "modalities": ["text"], "response_format": {"type": "text"}, "store": false, "user": "ann",
        "metadata": {"a": "b"}, "service_tier": "auto", "audio": null, "prompt_cache_key": "k",
        "stream_options": {"include_usage": true, "include_obfuscation": false},
    }))
    .parse_parameters();
    assert_eq!(parameters, Ok(Parameters::default()));
}

#[test]
fn an_answer_may_be_wanted_in_a_form() {
    let form = |format: Value| request(json!({"response_format": format})).parse_answer_schema();
    assert!(form(json!({"type": "text"})).unwrap().is_none());
    let any = form(json!({"type": "json_object"})).unwrap().unwrap();
    assert!(any.accepts_json_text("{}") && !any.accepts_json_text("3"));
    let schema = json!({"type": "object", "required": ["n"]});
    let given = json!({"type": "json_schema", "json_schema": {
        "name": "numbers", "strict": true, "description": "Numbers.", "schema": schema,
    }});
    let given = form(given).unwrap().unwrap();
    assert!(given.accepts_json_text(r#"{"n": 1}"#) && !given.accepts_json_text("{}"));
    assert_eq!(given.json_schema()["description"], "Numbers.");
    for wrong in [
        json!({"type": "grammar"}),
        json!({"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "nothing"}}}),
        json!({"type": "json_schema", "json_schema": {"name": "x", "schema": {"$ref": "https://schemas.invalid/x"}}}),
    ] {
        let problem = form(wrong).unwrap_err();
        assert_eq!(problem.status.as_u16(), 400);
        assert_eq!(problem.field.as_deref(), Some("response_format"));
    }
}

#[test]
fn a_conversation_is_read_with_its_calls_and_files() {
    use Role::{Assistant, System, Tool, User};
    let messages = request(json!({"messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": [{"type": "text", "text": "Very."}]},
        {"role": "user", "content": [
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "auto"}},
        ]},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{\"n\":1}"}},
        ]},
        {"role": "tool", "tool_call_id": "a", "content": "a cat"},
    ]}))
    .parse_conversation()
    .unwrap();
    let roles: Vec<_> = messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [System, System, User, Assistant, Tool]);
    let call = messages[3].tool_uses().next().unwrap();
    assert_eq!(call.input.as_object().unwrap()["n"], 1);
    let result = messages[4].tool_results().next().unwrap();
    assert_eq!(result.as_text(), "a cat");
}

#[test]
fn a_message_that_cannot_be_read_is_named() {
    for bad in [
        json!({"role": "user", "content": "a\u{0}"}),
        json!({"role": "function", "name": "f", "content": "x"}),
        json!({"role": "tool", "content": "x"}),
        json!({"role": "tool", "tool_call_id": "nobody", "content": "x"}),
        json!({"role": "user", "content": [{"type": "video", "text": "x"}]}),
        json!({"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}}),
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": "a", "type": "custom", "custom": {}}]}),
    ] {
        let problem = request(json!({"messages": [{"role": "user", "content": "?"}, bad]}))
            .parse_conversation()
            .unwrap_err();
        assert_eq!(problem.status.as_u16(), 400);
        assert_eq!(problem.field.as_deref(), Some("messages"));
        assert!(problem.detail.starts_with("messages[1]: "), "{problem:?}");
    }
}
