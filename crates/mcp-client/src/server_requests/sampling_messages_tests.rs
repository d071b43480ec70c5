use serde_json::{Value, json};
use switchboard_domain::{Reasoning, ToolContent, Usage};

use super::*;

fn params(value: Value) -> CreateMessageRequestParams {
    serde_json::from_value(value).unwrap()
}

fn answered(finish: FinishReason, parts: impl IntoIterator<Item = Part>) -> ChatResponse {
    ChatResponse {
        message: Message::new(Role::Assistant, parts),
        finish,
        finish_raw: None,
        usage: Usage::default(),
        tool_choice: switchboard_domain::ToolChoiceOutcome::default(),
        warnings: Vec::new(),
        response_id: None,
        model: Some("m-1".to_owned()),
    }
}

#[test]
fn a_servers_conversation_becomes_a_request_of_its_own() {
    let asked = params(json!({
        "systemPrompt": "Be brief.",
        "messages": [
            {"role": "user", "content": {"type": "text", "text": "What is in it?"}},
            {"role": "assistant", "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "u1", "name": "look", "input": {"at": 1}},
            ]},
            {"role": "user", "content": {"type": "tool_result", "toolUseId": "u1", "content": [
                {"type": "image", "data": "AA==", "mimeType": "image/png"},
            ], "structuredContent": {"n": 1}, "isError": true}},
            {"role": "user", "content": {"type": "audio", "data": "BB==", "mimeType": "audio/wav"}},
        ],
        "tools": [{"name": "look", "description": "Looks.", "inputSchema": {"type": "object"}}],
        "toolChoice": {"mode": "required"},
        "temperature": 0.7,
        "stopSequences": ["END"],
        "maxTokens": 5000,
        "includeContext": "allServers",
        "modelPreferences": {"hints": [{"name": "claude"}, {}, {"name": "gpt"}], "speedPriority": 1},
    }));
    let wanted = to_sample_request("notes", asked, 100).unwrap();
    assert_eq!(wanted.server, "notes");
    assert_eq!(wanted.model_hints, ["claude", "gpt"]);
    let request = wanted.request;
    let expected = [
        Message::system("Be brief."),
        Message::user("What is in it?"),
        Message::new(
            Role::Assistant,
            [
                Part::text("I look."),
                Part::ToolUse(ToolUse::new(
                    "u1",
                    "look",
                    ToolInput::parse_input(r#"{"at":1}"#),
                )),
            ],
        ),
        Message::from_tool_results([ToolResult {
            tool_use_id: "u1".to_owned(),
            name: "look".to_owned(),
            content: vec![ToolContent::Image(Media::from_base64("image/png", "AA=="))].into(),
            structured: Some(json!({"n": 1}).into()),
            is_error: true,
        }]),
        Message::new(
            Role::User,
            [Part::Audio(Media::from_base64("audio/wav", "BB=="))],
        ),
    ];
    let messages: Vec<Message> = request.messages.iter().map(|m| (**m).clone()).collect();
    assert_eq!(messages, expected);
    let tool = ToolDefinition::new("look", "Looks.", json!({"type": "object"}));
    assert_eq!(*request.tools[0], tool);
    assert_eq!(request.tool_choice, ToolChoice::Required);
    assert_eq!(request.sampling.temperature, Some(0.7));
    assert_eq!(request.sampling.stop, ["END"]);
    assert_eq!(request.max_output_tokens, Some(100));
}

#[test]
fn a_smaller_wish_is_heeded_and_a_broken_conversation_refused() {
    let text = json!({"role": "user", "content": {"type": "text", "text": "?"}});
    let asked = params(json!({"messages": [text], "maxTokens": 7}));
    let wanted = to_sample_request("s", asked, 100).unwrap();
    assert_eq!(wanted.request.max_output_tokens, Some(7));
    assert_eq!(wanted.request.tool_choice, ToolChoice::Auto);
    let result = json!({"role": "user", "content": {"type": "tool_result", "toolUseId": "u", "content": []}});
    let asked = params(json!({"messages": [result], "maxTokens": 7}));
    let why = to_sample_request("s", asked, 100).unwrap_err();
    assert!(why.contains("no matching ToolUse"), "{why}");
}

#[test]
fn an_answer_is_given_without_what_the_model_thought() {
    let thought = Part::Reasoning(Reasoning {
        text: "hm".to_owned(),
        provider_state: None,
    });
    let one =
        to_sampling_result(answered(FinishReason::Stop, [thought, Part::text("two")])).unwrap();
    assert_eq!(
        serde_json::to_value(one).unwrap(),
        json!({
            "model": "m-1", "stopReason": "endTurn", "role": "assistant",
            "content": {"type": "text", "text": "two"},
        })
    );
    let used = Part::ToolUse(ToolUse::new(
        "u1",
        "look",
        ToolInput::parse_input(r#"{"at":1}"#),
    ));
    let image = Part::Image(Media::from_base64("image/png", "AA=="));
    let elsewhere = Part::Image(Media::from_url("image/png", "https://h/i.png"));
    let several =
        to_sampling_result(answered(FinishReason::ToolUse, [image, elsewhere, used])).unwrap();
    assert_eq!(
        serde_json::to_value(several).unwrap(),
        json!({
            "model": "m-1", "stopReason": "toolUse", "role": "assistant",
            "content": [
                {"type": "image", "data": "AA==", "mimeType": "image/png"},
                {"type": "tool_use", "id": "u1", "name": "look", "input": {"at": 1}},
            ],
        })
    );
    let cut = to_sampling_result(answered(FinishReason::Length, [])).unwrap();
    assert_eq!(cut.stop_reason.as_deref(), Some("maxTokens"));
}

#[test]
fn no_answer_is_an_error() {
    let refused = to_sampling_result(answered(FinishReason::Refusal, [])).unwrap_err();
    assert_eq!(refused, "the model gave no answer (refusal)");
    let broken = Part::ToolUse(ToolUse::new("u1", "look", ToolInput::parse_input("[")));
    let broken = to_sampling_result(answered(FinishReason::ToolUse, [broken])).unwrap_err();
    assert!(
        broken.starts_with("the model's call of `look` is invalid"),
        "{broken}"
    );
}
