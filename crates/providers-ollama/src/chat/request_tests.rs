use serde_json::json;
use switchboard_domain::{Message, ReasoningEffort, Sampling, ToolChoice};
use switchboard_testkit::fixtures;

use super::*;
use crate::capabilities;

fn model() -> ModelId {
    ModelId::new("ollama", "qwen3:8b")
}

/// The body of a fixture, and what was not the same in it.
fn snapshot(name: &str, request: &ChatRequest) {
    let model = model();
    let can = capabilities(&model.name, false);
    let wire = to_wire(request, &model, &can, ThinkForm::default()).unwrap();
    let body = serde_json::to_value(&wire.body).unwrap();
    let beside = json!({
        "tool_choice": wire.tool_choice,
        "warnings": wire.warnings,
        "form": wire.form.map(|form| json!({"tools": form.tools, "may_answer": form.may_answer})),
    });
    insta::assert_json_snapshot!(format!("request__ollama__{name}"), body);
    insta::assert_json_snapshot!(format!("beside__{name}"), beside);
}

fn fixture(name: &str) -> ChatRequest {
    let found = fixtures::all().into_iter().find(|it| it.name == name);
    found.unwrap().request
}

fn body(request: &ChatRequest) -> Value {
    let model = model();
    let can = capabilities(&model.name, false);
    let wire = to_wire(request, &model, &can, ThinkForm::default()).unwrap();
    serde_json::to_value(&wire.body).unwrap()
}

fn every_option() -> ChatRequest {
    let extra = json!({"keep_alive": "10m", "options": {"num_ctx": 16384, "top_k": 20}});
    ChatRequest {
        parallel_tool_use: Some(true),
        response_format: ResponseFormat::JsonSchema {
            name: "answer".into(),
            schema: json!({
                "type": "object",
                "properties": {"degrees": {"type": "number"}},
                "required": ["degrees"],
            }),
        },
        sampling: Sampling {
            temperature: Some(0.2),
            top_p: Some(0.9),
            stop: vec!["END".into()],
            seed: Some(42),
        },
        max_output_tokens: Some(512),
        reasoning: Some(ReasoningEffort::High),
        extra: extra.as_object().unwrap().clone(),
        ..ChatRequest::new([
            Message::system("Be brief."),
            Message::user("How warm is it?"),
        ])
    }
}

#[test]
fn every_option_has_its_place() {
    snapshot("options", &every_option());
}

#[test]
fn results_of_every_kind_have_their_place() {
    let mut request = fixture("results_of_every_kind");
    request.tools.clear();
    snapshot("results", &request);
}

#[test]
fn a_forced_choice_is_a_form() {
    let tools = [fixtures::weather(), fixtures::list_cities()];
    let request = ChatRequest::new([Message::user("Weather in Kiel?")])
        .with_tools(tools)
        .with_tool_choice(ToolChoice::Required);
    snapshot("forced_choice", &request);
}

#[test]
fn tools_and_a_schema_are_one_form() {
    let request = every_option().with_tools([fixtures::weather(), fixtures::list_cities()]);
    snapshot("tools_and_schema", &request);
}

#[test]
fn the_callers_fields_win_but_for_the_stream() {
    let mut request = every_option();
    let extra = json!({"format": "json", "think": "max", "stream": false, "truncate": false});
    request.extra = extra.as_object().unwrap().clone();
    let body = body(&request);
    assert_eq!(body["format"], "json");
    assert_eq!(body["think"], "max");
    assert_eq!(body["stream"], true);
    assert_eq!(body["truncate"], false);
    assert_eq!(body["options"]["num_predict"], 512);
}

#[test]
fn nothing_is_said_that_was_not_asked() {
    let body = body(&ChatRequest::new([Message::user("Hello?")]));
    assert_eq!(
        body,
        json!({
            "model": "qwen3:8b",
            "messages": [{"role": "user", "content": "Hello?"}],
            "stream": true,
        })
    );
}

#[test]
fn the_cloud_answers_in_no_form() {
    let model = ModelId::new("ollama", "gpt-oss:120b-cloud");
    let can = capabilities(&model.name, false);
    let error = to_wire(&every_option(), &model, &can, ThinkForm::default()).unwrap_err();
    assert!(matches!(error.kind, ModelErrorKind::Unsupported { .. }));
}

#[test]
fn a_response_format_that_is_no_schema_is_refused() {
    let request = ChatRequest {
        response_format: ResponseFormat::JsonSchema {
            name: "answer".into(),
            schema: json!(true),
        },
        ..ChatRequest::new([Message::user("Hello?")])
    };
    let (model, can) = (model(), ModelCapabilities::default());
    let error = to_wire(&request, &model, &can, ThinkForm::default()).unwrap_err();
    let field = Some("format".to_owned());
    assert_eq!(error.kind, ModelErrorKind::InvalidRequest { field });
}

#[test]
fn every_fixture_can_be_said() {
    for fixture in fixtures::all() {
        let body = body(&fixture.request);
        assert!(body["messages"].is_array(), "{}", fixture.name);
        // No id of a call, and no state of another provider, goes out.
        let text = body.to_string();
        for word in ["tool_call_id", "provider_state", "signature"] {
            assert!(!text.contains(word), "{}: {word}", fixture.name);
        }
    }
}
