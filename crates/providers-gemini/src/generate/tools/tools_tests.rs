//! Tests of server tools, with and without functions, for each tool choice.

use serde_json::{Value, json};
use switchboard_domain::{
    JsonObject, Message, ModelErrorKind, ModelId, ResponseFormat, ToolDefinition,
};
use switchboard_providers_common::schema::ToolSchemas;

use super::*;
use crate::{
    GeminiOptions, capabilities,
    generate::to_wire_request,
    server_tool::{GoogleSearch, RawServerTool},
};

const NEW: &str = "gemini-3.8-flash";
const OLD: &str = "gemini-2.5-flash";

fn raw(name: &str) -> ServerTool {
    ServerTool::from_declaration(JsonObject::from_iter([(name.to_owned(), json!({}))]))
}

fn all() -> Vec<ServerTool> {
    vec![
        ServerTool::google_search(),
        raw("urlContext"),
        raw("codeExecution"),
    ]
}

fn only(names: &[&str]) -> ToolChoice {
    ToolChoice::Only(names.iter().map(|name| (*name).to_owned()).collect())
}

fn bare(choice: ToolChoice) -> ChatRequest {
    ChatRequest::new([Message::user("Weather in Hamburg?")]).with_tool_choice(choice)
}

fn mixed(choice: ToolChoice) -> ChatRequest {
    let tool = |name: &str| ToolDefinition::new(name, "", json!({"type": "object"}));
    bare(choice).with_tools([tool("get_weather"), tool("list_cities")])
}

struct Sent {
    /// The names of the functions and the field names of the server tools.
    tools: Vec<String>,
    config: Value,
    outcome: ToolChoiceOutcome,
    warnings: Vec<WarningKind>,
}

impl Sent {
    fn is_relaxed(&self) -> bool {
        matches!(self.outcome, ToolChoiceOutcome::Relaxed { .. })
            && self.warnings.contains(&WarningKind::ToolChoiceRelaxed)
    }
}

fn send(
    request: &ChatRequest,
    model: &str,
    server_tools: Vec<ServerTool>,
) -> Result<Sent, ModelError> {
    let model = ModelId::new("gemini", model);
    let options = GeminiOptions {
        server_tools,
        ..GeminiOptions::default()
    };
    let (can, schemas) = (capabilities(&model.name), ToolSchemas::default());
    let wire = to_wire_request(request, &model, &can, &options, &schemas)?;
    let body = serde_json::to_value(&wire.body).unwrap();
    let mut tools = Vec::new();
    for entry in body["tools"].as_array().into_iter().flatten() {
        let (field, value) = entry.as_object().unwrap().iter().next().unwrap();
        match value.as_array().filter(|_| field == "functionDeclarations") {
            Some(functions) => tools.extend(
                functions
                    .iter()
                    .map(|it| it["name"].as_str().unwrap().to_owned()),
            ),
            None => tools.push(field.clone()),
        }
    }
    Ok(Sent {
        tools,
        config: body.get("toolConfig").cloned().unwrap_or_default(),
        outcome: wire.tool_choice,
        warnings: wire.warnings.iter().map(|it| it.kind).collect(),
    })
}

const OWN: [&str; 3] = ["googleSearch", "urlContext", "codeExecution"];
const EVERY: [&str; 5] = [
    "get_weather",
    "list_cities",
    "googleSearch",
    "urlContext",
    "codeExecution",
];

fn beside(calling: &Value) -> Value {
    json!({"functionCallingConfig": calling, "includeServerSideToolInvocations": true})
}

#[test]
fn a_choice_among_them_that_the_wire_cannot_say_is_never_dropped_in_silence() {
    for model in [OLD, NEW] {
        let none = send(&bare(ToolChoice::None), model, all()).unwrap();
        assert!(none.tools.is_empty());
        assert!(matches!(none.outcome, ToolChoiceOutcome::Emulated { .. }));
        assert!(none.warnings.is_empty());
        let any = send(&bare(ToolChoice::Required), model, all()).unwrap();
        assert_eq!(any.tools, OWN);
        assert!(any.is_relaxed(), "{:?}", any.outcome);
        let one = send(&bare(only(&["url_context"])), model, all()).unwrap();
        assert_eq!(one.tools, ["urlContext"]);
        assert!(one.is_relaxed());
        let two = only(&["code_execution", "google_search"]);
        let two = send(&bare(two), model, all()).unwrap();
        assert_eq!(two.tools, ["googleSearch", "codeExecution"]);
        assert!(two.is_relaxed());
        let absent = send(&bare(only(&["google_maps"])), model, all()).err();
        assert!(absent.unwrap().to_string().contains("`google_maps`"));
    }
    let nothing = send(&bare(ToolChoice::Required), NEW, Vec::new()).err();
    assert!(nothing.unwrap().to_string().contains("none is declared"));
}

#[test]
fn beside_functions_the_model_is_told_to_show_what_they_did() {
    // The API refuses the mode `AUTO` if a request has server tools and functions.
    let auto = send(&mixed(ToolChoice::Auto), NEW, all()).unwrap();
    assert_eq!(auto.tools, EVERY);
    assert_eq!(auto.config, beside(&json!({"mode": "VALIDATED"})));
    let any = send(&mixed(ToolChoice::Required), NEW, all()).unwrap();
    assert_eq!(any.tools, EVERY);
    assert_eq!(any.config, beside(&json!({"mode": "ANY"})));
    let one = send(&mixed(only(&["list_cities"])), NEW, all()).unwrap();
    assert_eq!(one.tools, EVERY);
    let calling = json!({"mode": "ANY", "allowedFunctionNames": ["list_cities"]});
    assert_eq!(one.config, beside(&calling));
    for sent in [auto, any, one] {
        assert_eq!(sent.outcome, ToolChoiceOutcome::Native);
        assert!(sent.warnings.is_empty());
    }
    // Only functions can be forbidden by a mode, so the server tools are not sent.
    let none = send(&mixed(ToolChoice::None), NEW, all()).unwrap();
    assert_eq!(none.tools, ["get_weather", "list_cities"]);
    let expected = json!({"functionCallingConfig": {"mode": "NONE"}});
    assert_eq!(none.config, expected);
    assert!(matches!(none.outcome, ToolChoiceOutcome::Emulated { .. }));
}

#[test]
fn a_choice_that_names_one_beside_functions_leaves_only_what_it_names() {
    let server = send(&mixed(only(&["google_search"])), NEW, all()).unwrap();
    assert_eq!(server.tools, ["googleSearch"]);
    assert_eq!(server.config, Value::Null);
    assert!(server.is_relaxed());
    let both = only(&["google_search", "list_cities"]);
    let sent = send(&mixed(both.clone()), NEW, all()).unwrap();
    assert_eq!(sent.tools, ["list_cities", "googleSearch"]);
    assert_eq!(sent.config, beside(&json!({"mode": "VALIDATED"})));
    assert!(sent.is_relaxed());
    // An older model does not accept both, so only the function is sent and forced.
    let old = send(&mixed(both), OLD, all()).unwrap();
    assert_eq!(old.tools, ["list_cities"]);
    let calling = json!({"mode": "ANY", "allowedFunctionNames": ["list_cities"]});
    assert_eq!(old.config, json!({ "functionCallingConfig": calling }));
    assert_eq!(old.outcome, ToolChoiceOutcome::Native);
    assert_eq!(old.warnings, [WarningKind::ToolUnavailable]);
}

#[test]
fn older_models_take_functions_or_them() {
    for model in [OLD, "gemini-2.5-pro", "gemini-2.0-flash"] {
        let sent = send(&mixed(ToolChoice::Auto), model, all()).unwrap();
        assert_eq!(sent.tools, ["get_weather", "list_cities"], "{model}");
        let expected = json!({"functionCallingConfig": {"mode": "AUTO"}});
        assert_eq!(sent.config, expected);
        assert_eq!(sent.warnings, [WarningKind::ToolUnavailable; 3]);
        // If the tool choice names a server tool, that tool is sent and the functions are not.
        let sent = send(&mixed(only(&["google_search"])), model, all()).unwrap();
        assert_eq!(sent.tools, ["googleSearch"]);
    }
    // For an unknown model, functions and server tools are both sent.
    let sent = send(&mixed(ToolChoice::Auto), "acme", all()).unwrap();
    assert_eq!(sent.tools, EVERY);
}

#[test]
fn older_models_take_the_schema_of_an_answer_or_them() {
    let structured = |choice: ToolChoice| ChatRequest {
        response_format: ResponseFormat::JsonSchema {
            name: "report".into(),
            schema: json!({"type": "object", "properties": {"degrees": {"type": "number"}}}),
        },
        ..bare(choice)
    };
    let sent = send(&structured(ToolChoice::Auto), NEW, all()).unwrap();
    assert_eq!(sent.tools, OWN);
    let sent = send(&structured(ToolChoice::Auto), OLD, all()).unwrap();
    assert!(sent.tools.is_empty());
    assert_eq!(sent.warnings, [WarningKind::ToolUnavailable; 3]);
    for choice in [ToolChoice::Required, only(&["google_search"])] {
        let error = send(&structured(choice), OLD, all()).err().unwrap();
        assert!(matches!(error.kind, ModelErrorKind::Unsupported { .. }));
    }
}

#[test]
fn functions_come_first_where_names_meet() {
    let tool = ToolDefinition::new("google_search", "Ours.", json!({"type": "object"}));
    let request = bare(ToolChoice::Auto).with_tools([tool]);
    let images = ServerTool::GoogleSearch(GoogleSearch {
        images: true,
        ..GoogleSearch::default()
    });
    let maps = || {
        let declaration = json!({"googleMaps": {}}).as_object().cloned();
        ServerTool::Raw(RawServerTool {
            declaration: declaration.unwrap(),
        })
    };
    let sent = send(&request, NEW, vec![images, maps(), maps()]).unwrap();
    assert_eq!(sent.tools, ["google_search", "googleMaps"]);
    assert_eq!(sent.warnings, [WarningKind::ToolUnavailable; 2]);
}

#[test]
fn the_callers_own_word_about_the_switch_wins() {
    let mut request = mixed(ToolChoice::Auto);
    let extra = json!({"toolConfig": {"includeServerSideToolInvocations": false}});
    request.extra = extra.as_object().cloned().unwrap();
    let sent = send(&request, NEW, all()).unwrap();
    assert_eq!(sent.config["includeServerSideToolInvocations"], false);
    assert_eq!(sent.config["functionCallingConfig"]["mode"], "VALIDATED");
}
