use serde_json::json;
use switchboard_domain::{Message, ModelErrorKind};

use super::*;

fn request(choice: ToolChoice) -> ChatRequest {
    let object = || json!({"type": "object", "properties": {}});
    ChatRequest::new([Message::user("Hello?")])
        .with_tools([
            ToolDefinition::new("get_weather", "", object()),
            ToolDefinition::new("list_cities", "", object()),
            ToolDefinition::new("screenshot", "", object()),
        ])
        .with_tool_choice(choice)
}

fn only(names: &[&str]) -> ToolChoice {
    ToolChoice::Only(names.iter().map(|&it| it.to_owned()).collect())
}

/// Result of mapping the tools of a request: the names of the declared tools and of the tools in
/// `format`, the kind of the outcome, and the warnings.
#[derive(Debug, PartialEq)]
struct Mapped {
    declared: Vec<String>,
    form: Vec<String>,
    outcome: &'static str,
    warnings: Vec<WarningKind>,
}

fn mapped_for(request: &ChatRequest, can: &ModelCapabilities) -> Result<Mapped, ModelError> {
    let mut warnings = Vec::new();
    let tools = map_tools(
        request,
        "ollama",
        can,
        &ToolSchemas::default(),
        &mut warnings,
    )?;
    let names = |tool: &wire::Tool<'_>| {
        let wire::Tool::Function { function } = tool;
        function.name.to_owned()
    };
    let form = tools.emulated.iter().flat_map(|it| &it.tools);
    Ok(Mapped {
        declared: tools.declared.iter().map(names).collect(),
        form: form.map(|tool| tool.name.clone()).collect(),
        outcome: match tools.outcome {
            ToolChoiceOutcome::Native => "native",
            ToolChoiceOutcome::Emulated { .. } => "emulated",
            ToolChoiceOutcome::Relaxed { .. } => "relaxed",
        },
        warnings: warnings.iter().map(|it| it.kind).collect(),
    })
}

fn mapped(request: &ChatRequest) -> Mapped {
    mapped_for(request, &crate::capabilities("qwen3", false)).unwrap()
}

fn plain(declared: &[&str], form: &[&str], outcome: &'static str) -> Mapped {
    let own = |names: &[&str]| names.iter().map(|&it| it.to_owned()).collect();
    Mapped {
        declared: own(declared),
        form: own(form),
        outcome,
        warnings: vec![],
    }
}

const ALL: [&str; 3] = ["get_weather", "list_cities", "screenshot"];

#[test]
fn tools_and_a_response_format_share_one_constraint() {
    let format = |choice| ChatRequest {
        response_format: ResponseFormat::JsonSchema {
            name: "answer".into(),
            schema: json!({"type": "object"}),
        },
        ..request(choice)
    };
    assert_eq!(
        mapped(&format(ToolChoice::Auto)),
        plain(&[], &ALL, "emulated")
    );
    let request = format(ToolChoice::Auto);
    let mut warnings = Vec::new();
    let can = ModelCapabilities::default();
    let tools = map_tools(
        &request,
        "ollama",
        &can,
        &ToolSchemas::default(),
        &mut warnings,
    )
    .unwrap();
    assert!(tools.emulated.unwrap().answer.is_some());
    // If a call is required, `format` does not allow the structured answer.
    let request = format(ToolChoice::Required);
    let tools = super::map_tools(
        &request,
        "ollama",
        &can,
        &ToolSchemas::default(),
        &mut warnings,
    )
    .unwrap();
    assert!(tools.emulated.unwrap().answer.is_none());
}

#[test]
fn a_model_without_tools_can_be_constrained_to_a_call() {
    let without = ModelCapabilities {
        tools: Some(false),
        ..crate::capabilities("gemma", false)
    };
    let error = mapped_for(&request(ToolChoice::Auto), &without).unwrap_err();
    let feature = error::TOOLS.to_owned();
    assert_eq!(error.kind, ModelErrorKind::Unsupported { feature });
    for choice in [ToolChoice::None, ToolChoice::Required] {
        assert!(mapped_for(&request(choice), &without).is_ok());
    }
}

#[test]
fn parallel_calls_have_no_field() {
    let parallel = |choice, wanted| {
        let request = ChatRequest {
            parallel_tool_use: Some(wanted),
            ..request(choice)
        };
        mapped(&request).warnings
    };
    let dropped = [WarningKind::OptionDropped];
    assert_eq!(parallel(ToolChoice::Auto, false), dropped);
    assert_eq!(parallel(ToolChoice::Auto, true), []);
    assert_eq!(parallel(ToolChoice::Required, true), dropped);
    assert_eq!(parallel(ToolChoice::Required, false), []);
    assert_eq!(parallel(ToolChoice::None, false), []);
}

#[test]
fn an_invalid_tool_choice_is_an_error() {
    let empty = |choice| ChatRequest::default().with_tool_choice(choice);
    for request in [
        request(only(&["nothing"])),
        request(only(&[])),
        empty(ToolChoice::Required),
        empty(only(&["get_weather"])),
    ] {
        let error = mapped_for(&request, &ModelCapabilities::default()).unwrap_err();
        let field = Some("tool_choice".to_owned());
        assert_eq!(error.kind, ModelErrorKind::InvalidRequest { field });
    }
    assert_eq!(mapped(&empty(ToolChoice::None)), plain(&[], &[], "native"));
    let mut nameless = request(ToolChoice::Auto);
    nameless.tools[1] = ToolDefinition::new("", "", json!({})).into();
    let error = mapped_for(&nameless, &ModelCapabilities::default()).unwrap_err();
    let field = Some("tools[1].function.name".to_owned());
    assert_eq!(error.kind, ModelErrorKind::InvalidRequest { field });
}
