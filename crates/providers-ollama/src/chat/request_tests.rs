use serde_json::json;
use switchboard_domain::{Message, ModelErrorKind, ReasoningEffort, Sampling, ToolChoice};
use switchboard_testkit::fixtures;

use super::*;
use crate::capabilities;

fn model() -> ModelId {
    ModelId::new("ollama", "qwen3:8b")
}

fn mapped<'a>(
    request: &'a ChatRequest,
    model: &'a ModelId,
    can: &ModelCapabilities,
) -> Result<WireRequest<'a>, ModelError> {
    let schemas = ToolSchemas::default();
    to_wire_request(request, model, can, ThinkForm::default(), &schemas)
}

/// Asserts that the request body and the warnings match the snapshot `name`.
fn snapshot(name: &str, request: &ChatRequest) {
    let model = model();
    let wire = mapped(request, &model, &capabilities(&model.name, false)).unwrap();
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
    fixtures::read(name).unwrap().request
}

fn body(request: &ChatRequest) -> Value {
    let model = model();
    let wire = mapped(request, &model, &capabilities(&model.name, false)).unwrap();
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
fn every_option_has_its_field() {
    snapshot("options", &every_option());
}

#[test]
fn every_kind_of_result_is_sent() {
    let mut request = fixture("results_of_every_kind");
    request.tools.clear();
    snapshot("results", &request);
}

#[test]
fn a_forced_choice_constrains_the_answer() {
    let tools = [fixtures::weather(), fixtures::list_cities()];
    let request = ChatRequest::new([Message::user("Weather in Kiel?")])
        .with_tools(tools)
        .with_tool_choice(ToolChoice::Required);
    snapshot("forced_choice", &request);
}

#[test]
fn tools_and_a_schema_share_one_constraint() {
    let request = every_option().with_tools([fixtures::weather(), fixtures::list_cities()]);
    snapshot("tools_and_schema", &request);
}

#[test]
fn fields_of_the_caller_override_all_except_stream() {
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
fn the_cloud_has_no_structured_output() {
    let model = ModelId::new("ollama", "gpt-oss:120b-cloud");
    let can = capabilities(&model.name, false);
    let error = mapped(&every_option(), &model, &can).unwrap_err();
    assert!(matches!(error.kind, ModelErrorKind::Unsupported { .. }));
}

#[test]
fn a_response_format_that_is_not_a_schema_is_an_error() {
    let request = ChatRequest {
        response_format: ResponseFormat::JsonSchema {
            name: "answer".into(),
            schema: json!(true),
        },
        ..ChatRequest::new([Message::user("Hello?")])
    };
    let (model, can) = (model(), ModelCapabilities::default());
    let error = mapped(&request, &model, &can).unwrap_err();
    let field = Some("format".to_owned());
    assert_eq!(error.kind, ModelErrorKind::InvalidRequest { field });
}
