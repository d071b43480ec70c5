use serde_json::{Value, json};
use switchboard_domain::{
    Document, Media, MediaSource, Message, Opaque, Part, ProviderState, Reasoning, ReasoningEffort,
    ResponseFormat, Role, Sampling, Text, ToolContent, ToolDefinition, ToolInput, ToolResult,
    ToolUse, WarningKind,
};

use super::*;
use crate::capabilities;

fn luna() -> ModelId {
    ModelId::new("openai", "gpt-6-luna")
}

fn sent_by(
    request: &ChatRequest,
    model: &ModelId,
    profile: &Profile,
    options: &ResponsesOptions,
) -> (Value, Vec<Warning>) {
    let capabilities = capabilities(&model.name, profile);
    let schemas = ToolSchemas::default();
    let wire = to_wire_request(request, model, &capabilities, profile, options, &schemas).unwrap();
    (serde_json::to_value(&wire.body).unwrap(), wire.warnings)
}

fn sent(request: &ChatRequest) -> (Value, Vec<Warning>) {
    sent_by(
        request,
        &luna(),
        &Profile::openai(),
        &ResponsesOptions::default(),
    )
}

fn minted(data: Value) -> ProviderState {
    ProviderState::new_for_model(&luna(), data)
}

fn reasoning(id: &str) -> Part {
    Part::Reasoning(Reasoning {
        text: "Hm.".into(),
        provider_state: Some(minted(json!({
            "type": "reasoning", "id": id, "encrypted_content": "gAAA",
            "summary": [{"type": "summary_text", "text": "Hm."}],
        }))),
    })
}

fn said(text: &str, data: Value) -> Part {
    Part::Text(Text {
        text: text.into(),
        provider_state: Some(minted(data)),
    })
}

fn called(id: &str, data: Option<Value>) -> Part {
    Part::ToolUse(ToolUse {
        provider_state: data.map(minted),
        ..ToolUse::new(id, "f", ToolInput::parse_input("{}"))
    })
}

/// Returns a conversation in which the model answered with `parts`.
fn after(parts: impl IntoIterator<Item = Part>) -> ChatRequest {
    ChatRequest::new([
        Message::user("hi"),
        Message::new(Role::Assistant, parts),
        Message::user("go on"),
    ])
}

/// Returns the input items of a request without the user's messages.
fn items(request: &ChatRequest) -> Vec<Value> {
    let (body, _) = sent(request);
    let mut items = body["input"].as_array().unwrap().clone();
    items.retain(|item| item["role"] != "user");
    items
}

/// Otherwise the API answers "… was provided without its required 'reasoning' item".
#[test]
fn an_item_without_its_reasoning_has_no_id() {
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed"});
    let opaque = |text: Option<&str>| {
        Part::Opaque(Opaque {
            kind: "web_search_call".into(),
            text: text.map(Into::into),
            provider_state: ProviderState::new_for_model(
                &luna(),
                json!({"item": search, "after": "rs_1"}),
            ),
        })
    };
    let message = json!({"item": {"id": "msg_1", "phase": "final_answer"}, "after": "rs_1"});
    let call = Some(json!({"item": {"id": "fc_1"}, "after": "rs_1"}));
    let rest = || {
        [
            said("So.", message.clone()),
            called("call_1", call.clone()),
            opaque(Some("q")),
        ]
    };
    let trimmed = after(rest());
    let call =
        json!({"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"});
    assert_eq!(
        items(&trimmed),
        [
            json!({"role": "assistant", "content": "So.", "phase": "final_answer"}),
            call,
            json!({"role": "assistant", "content": "q"}),
        ]
    );
    let whole = after([reasoning("rs_1")].into_iter().chain(rest()));
    let ids: Vec<_> = items(&whole)
        .iter()
        .map(|item| item["id"].clone())
        .collect();
    assert_eq!(ids, ["rs_1", "msg_1", "fc_1", "ws_1"]);
    let (_, warnings) = sent(&after([opaque(None)]));
    assert_eq!(warnings[0].kind, WarningKind::PartDropped);
}

/// Otherwise the API answers "… was provided without its required following item".
#[test]
fn reasoning_without_a_following_item_is_dropped() {
    let request = after([
        reasoning("rs_1"),
        said("", json!({"item": {"id": "msg_1"}})),
    ]);
    assert!(items(&request).is_empty());
    let (_, warnings) = sent(&request);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].message.contains("no item follows them"));
}

#[test]
fn an_item_is_sent_once() {
    let text = || said("a", json!({"item": {"id": "msg_1"}, "after": "rs_1"}));
    let turn = || Message::new(Role::Assistant, [reasoning("rs_1"), text()]);
    let request = ChatRequest::new([turn(), Message::user("again"), turn(), Message::user("?")]);
    let ids: Vec<_> = items(&request)
        .iter()
        .map(|item| item["id"].clone())
        .collect();
    assert_eq!(ids, [json!("rs_1"), json!("msg_1"), Value::Null]);
}

#[test]
fn the_result_of_a_program_names_its_caller() {
    let caller = json!({"type": "program", "caller_id": "p_1"});
    let call = called(
        "call_1",
        Some(json!({"item": {"id": "fc_1", "caller": caller, "namespace": "n"}})),
    );
    let request = ChatRequest::new([
        Message::user("hi"),
        Message::new(Role::Assistant, [call]),
        Message::from_tool_results([ToolResult::text("call_1", "f", "12")]),
    ]);
    let items = items(&request);
    assert_eq!(
        (&items[0]["caller"], &items[1]["caller"]),
        (&caller, &caller)
    );
    assert_eq!(items[0]["namespace"], "n");
}

#[test]
fn messages_of_another_model_have_a_type_if_the_server_requires_one() {
    let request = after([
        Part::text("a"),
        Part::text("b"),
        called("call_1", None),
        Part::text("c"),
    ]);
    let (body, _) = sent_by(
        &request,
        &luna(),
        &Profile::llamacpp(),
        &ResponsesOptions::default(),
    );
    let message = |text: &str| {
        let text = json!({"type": "output_text", "text": text, "annotations": []});
        json!({"type": "message", "role": "assistant", "content": [text]})
    };
    assert_eq!(
        (&body["input"][1], &body["input"][3]),
        (&message("ab"), &message("c"))
    );
}

#[test]
fn images_of_results_follow_in_a_message_if_results_are_text() {
    let result = ToolResult {
        content: vec![
            ToolContent::text("Look:"),
            ToolContent::Image(Media::from_base64("image/png", "AA==")),
        ]
        .into(),
        is_error: true,
        ..ToolResult::text("call_1", "f", "")
    };
    let request = ChatRequest::new([
        Message::user("hi"),
        Message::new(
            Role::Assistant,
            [called("call_1", None), called("call_2", None)],
        ),
        Message::from_tool_results([result, ToolResult::text("call_2", "f", "12")]),
    ]);
    let image =
        json!({"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,AA=="});
    let (body, warnings) = sent(&request);
    let text = json!({"type": "input_text", "text": "Error: Look:"});
    assert_eq!(body["input"][3]["output"], json!([text, image]));
    assert!(warnings.is_empty(), "{warnings:?}");

    let options = ResponsesOptions::default();
    let (body, warnings) = sent_by(&request, &luna(), &Profile::vllm(), &options);
    let expected = "Error: Look:\n[image image/png]";
    assert_eq!(body["input"][3]["output"], expected);
    assert_eq!(body["input"][4]["output"], "12");
    assert_eq!(body["input"][5]["content"][1], image);
    assert_eq!(warnings[0].kind, WarningKind::PartDowngraded);
}

#[test]
fn effort_and_summary_are_sent_together() {
    let options = ResponsesOptions {
        reasoning_summary: Some(ReasoningSummary::Detailed),
        ..ResponsesOptions::default()
    };
    let tools = [ToolDefinition::new("f", "", json!({"type": "object"}))];
    for (effort, expected) in [
        (None, json!({"summary": "detailed"})),
        (Some(ReasoningEffort::None), json!({"effort": "none"})),
        (
            Some(ReasoningEffort::High),
            json!({"effort": "high", "summary": "detailed"}),
        ),
    ] {
        let request = ChatRequest {
            reasoning: effort,
            ..ChatRequest::new([Message::user("hi")]).with_tools(tools.clone())
        };
        let (body, warnings) = sent_by(&request, &luna(), &Profile::openai(), &options);
        assert_eq!(body["reasoning"], expected);
        // Only Chat Completions refuses tools together with reasoning for this model.
        assert!(warnings.is_empty(), "{warnings:?}");
    }
}

#[test]
fn options_without_a_field_are_dropped_with_a_warning() {
    let request = ChatRequest {
        max_output_tokens: Some(5),
        sampling: Sampling {
            temperature: Some(0.2),
            stop: vec!["END".into()],
            seed: Some(1),
            ..Sampling::default()
        },
        ..ChatRequest::new([Message::user("hi")])
    };
    let (body, warnings) = sent(&request);
    assert_eq!(body["max_output_tokens"], 16);
    for field in ["stop", "seed", "temperature"] {
        assert!(body.get(field).is_none(), "{field}");
    }
    assert_eq!(warnings.len(), 4, "{warnings:?}");
    assert!(
        warnings
            .iter()
            .all(|it| it.kind == WarningKind::OptionDropped)
    );
    let limit = |profile: &Profile| {
        let (model, options) = (luna(), ResponsesOptions::default());
        let unknown = ModelCapabilities::default();
        let schemas = ToolSchemas::default();
        let wire =
            to_wire_request(&request, &model, &unknown, profile, &options, &schemas).unwrap();
        wire.unreported_limit
    };
    let limits = (limit(&Profile::openai()), limit(&Profile::llamacpp()));
    assert_eq!(limits, (None, Some(16)));
}

#[test]
fn an_answer_schema_has_its_older_field_name_for_servers_that_ignore_the_newer() {
    let schema =
        json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
    let request = ChatRequest {
        response_format: ResponseFormat::JsonSchema {
            name: "n".into(),
            schema: schema.clone(),
        },
        ..ChatRequest::new([Message::user("hi")])
    };
    let options = ResponsesOptions::default();
    let (body, _) = sent_by(&request, &luna(), &Profile::llamacpp(), &options);
    let form = json!({"name": "n", "schema": schema, "strict": true});
    let expected = json!({"type": "json_schema", "json_schema": form});
    assert_eq!(body["response_format"], expected);
    assert!(body.get("text").is_none());
    let (body, _) = sent(&request);
    assert!(body.get("response_format").is_none());
    assert_eq!(body["text"]["format"]["schema"], schema);
}

#[test]
fn fields_of_the_caller_are_merged_over_the_mapped_fields() {
    let extra = json!({
        "tools": [{"type": "web_search"}],
        "include": ["web_search_call.action.sources", "reasoning.encrypted_content"],
        "text": {"verbosity": "low"},
        "reasoning": {"summary": "auto"},
        "store": true,
        "stream": false,
        "metadata": {"a": "b"},
    });
    let schema =
        json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
    let request = ChatRequest {
        extra: extra.as_object().unwrap().clone(),
        reasoning: Some(ReasoningEffort::Low),
        response_format: ResponseFormat::JsonSchema {
            name: "n".into(),
            schema,
        },
        ..ChatRequest::new([Message::user("hi")]).with_tools([ToolDefinition::new(
            "f",
            "",
            json!({"type": "object"}),
        )])
    };
    let (body, warnings) = sent(&request);
    let types: Vec<_> = body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["type"])
        .collect();
    assert_eq!(types, ["function", "web_search"]);
    assert_eq!(
        body["include"],
        json!([
            "reasoning.encrypted_content",
            "web_search_call.action.sources"
        ])
    );
    assert_eq!(body["text"]["verbosity"], "low");
    assert_eq!(body["text"]["format"]["strict"], true);
    let expected = json!({"effort": "low", "summary": "auto"});
    assert_eq!(body["reasoning"], expected);
    assert_eq!(
        (&body["store"], &body["stream"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(body["metadata"], json!({"a": "b"}));
    assert_eq!(warnings.len(), 1, "`stream` cannot be set: {warnings:?}");
    // Each field is serialized once.
    let model = luna();
    let wire = to_wire_request(
        &request,
        &model,
        &ModelCapabilities::default(),
        &Profile::openai(),
        &ResponsesOptions::default(),
        &ToolSchemas::default(),
    );
    let text = serde_json::to_string(&wire.unwrap().body).unwrap();
    assert_eq!(text.matches("\"include\":").count(), 1, "{text}");
}

#[test]
fn the_name_of_a_schema_is_checked() {
    use switchboard_domain::ModelErrorKind::InvalidRequest;
    let fails = |request: &ChatRequest| {
        let unknown = ModelCapabilities::default();
        let (profile, options) = (Profile::openai(), ResponsesOptions::default());
        to_wire_request(
            request,
            &luna(),
            &unknown,
            &profile,
            &options,
            &ToolSchemas::default(),
        )
        .unwrap_err()
        .kind
    };
    let request = ChatRequest {
        response_format: ResponseFormat::JsonSchema {
            name: "a b".into(),
            schema: json!({}),
        },
        ..ChatRequest::new([Message::user("hi")])
    };
    let field = Some("text.format.name".to_owned());
    assert_eq!(fails(&request), InvalidRequest { field });
}

#[test]
fn a_document_keeps_its_name_for_every_source() {
    let at = |title: Option<&str>| {
        let media = Media {
            media_type: "application/pdf".into(),
            source: MediaSource::Url("https://example.org/trip.pdf".into()),
        };
        let title = title.map(str::to_owned);
        let document = Part::Document(Document { media, title });
        let request = ChatRequest::new([Message::new(Role::User, [document])]);
        sent(&request).0["input"][0]["content"][0].clone()
    };
    let mut file = json!({"type": "input_file", "file_url": "https://example.org/trip.pdf"});
    assert_eq!(at(None), file);
    file["filename"] = json!("Our trip");
    assert_eq!(at(Some("Our trip")), file);
}

#[test]
fn options_are_read_from_configuration() {
    let read = serde_json::from_value::<ResponsesOptions>;
    assert_eq!(read(json!({})).unwrap(), ResponsesOptions::default());
    let all = json!({"store": true, "reasoning_summary": "detailed", "strict_tools": true,
                     "server_tools": [{"type": "web_search"}]});
    let expected = ResponsesOptions {
        store: true,
        reasoning_summary: Some(ReasoningSummary::Detailed),
        server_tools: vec![ServerTool::web_search()],
        strict_tools: Some(true),
    };
    assert_eq!(read(all).unwrap(), expected);
    for (written, word) in [
        (json!({"stor": true}), "stor"),
        (json!({"reasoning_summary": "Auto"}), "Auto"),
        (json!({"server_tools": [{"type": "bing"}]}), "bing"),
    ] {
        let error = read(written).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn the_options_override_the_profile_for_strict_tools() {
    let tool = ToolDefinition::new("f", "", json!({"type": "object", "properties": {}}));
    let request = ChatRequest::new([Message::user("hi")]).with_tools([tool]);
    let strict = |of_profile: bool, of_options: Option<bool>| {
        let profile = Profile {
            strict_tools: of_profile,
            ..Profile::openai()
        };
        let options = ResponsesOptions {
            strict_tools: of_options,
            ..ResponsesOptions::default()
        };
        let (body, _) = sent_by(&request, &luna(), &profile, &options);
        body["tools"][0]["strict"].as_bool().unwrap()
    };
    assert!(!strict(false, None) && strict(true, None));
    assert!(strict(false, Some(true)) && !strict(true, Some(false)));
}
