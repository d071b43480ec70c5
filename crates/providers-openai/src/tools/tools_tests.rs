use serde_json::{Value, json};
use switchboard_domain::{Message, ModelErrorKind};

use super::*;
use crate::{chat::wire, tools::provider_tools::ToolForm};

const FORM: ToolForm = ToolForm::Nested;

fn request(choice: ToolChoice) -> ChatRequest {
    let tool = |name: &str| ToolDefinition::new(name, "", json!({"type": "object"}));
    ChatRequest::new([Message::user("hi")])
        .with_tools([tool("a"), tool("b"), tool("c")])
        .with_tool_choice(choice)
}

fn named(request: &ChatRequest) -> ToolNames {
    ToolNames::of(request, NAME_RULE)
}

fn only(names: &[&str]) -> ToolChoice {
    ToolChoice::Only(names.iter().map(|&name| name.to_owned()).collect())
}

/// Returns the sent `tool_choice`, the names of the sent tools, the outcome and the warnings.
fn mapped(
    choice: ToolChoice,
    capabilities: &ModelCapabilities,
    profile: &Profile,
) -> (Value, Vec<String>, ToolChoiceOutcome, Vec<Warning>) {
    let request = request(choice);
    let mut warnings = Vec::new();
    let mapped = tools(
        ToolContext {
            request: &request,
            provider: "p",
            names: &named(&request),
            capabilities,
            profile,
            schemas: &ToolSchemas::default(),
        },
        ProviderTool::from_extra(&request.extra, FORM),
        &mut warnings,
    )
    .unwrap();
    let names = mapped
        .declared
        .iter()
        .map(|tool| tool.name.clone().into_owned());
    (
        serde_json::to_value(mapped.choice.map(wire::ToolChoice::from)).unwrap(),
        names.collect(),
        mapped.outcome,
        warnings,
    )
}

#[test]
fn without_allowed_tools_only_the_allowed_are_sent() {
    let (sent, names, outcome, _) = mapped(
        only(&["c", "a"]),
        &ModelCapabilities::default(),
        &Profile::generic(),
    );
    assert_eq!(sent, json!("required"));
    assert_eq!(names, ["a", "c"]);
    assert!(matches!(outcome, ToolChoiceOutcome::Emulated { .. }));
}

#[test]
fn without_named_choice_the_one_tool_is_sent_and_required() {
    let profile = Profile {
        named_tool_choice: false,
        ..Profile::generic()
    };
    let (sent, names, outcome, _) = mapped(only(&["b"]), &ModelCapabilities::default(), &profile);
    assert_eq!((sent, names), (json!("required"), vec!["b".to_owned()]));
    assert!(matches!(outcome, ToolChoiceOutcome::Emulated { .. }));
}

#[test]
fn a_choice_that_is_not_enforced_is_relaxed_with_a_warning() {
    let unenforced = Profile {
        forced_tool_choice: ForcedToolChoice::Unenforced,
        ..Profile::generic()
    };
    let (sent, _, outcome, warnings) = mapped(
        ToolChoice::Required,
        &ModelCapabilities::default(),
        &unenforced,
    );
    assert_eq!(sent, json!("required"));
    assert!(matches!(outcome, ToolChoiceOutcome::Relaxed { .. }));
    assert_eq!(warnings[0].kind, WarningKind::ToolChoiceRelaxed);

    let refusing = ModelCapabilities {
        forced_tool_choice: Some(false),
        ..ModelCapabilities::default()
    };
    let (sent, names, outcome, warnings) = mapped(only(&["b"]), &refusing, &Profile::openai());
    assert_eq!((sent, names), (json!("auto"), vec!["b".to_owned()]));
    assert!(matches!(outcome, ToolChoiceOutcome::Relaxed { .. }));
    assert_eq!(warnings.len(), 1);
}

#[test]
fn both_means_of_an_emulated_choice_are_reported() {
    let (sent, names, outcome, _) = mapped(
        only(&["c", "a"]),
        &ModelCapabilities::default(),
        &Profile::deepseek(),
    );
    assert_eq!((sent, names.len()), (json!("required"), 2));
    let ToolChoiceOutcome::Emulated { how } = outcome else {
        panic!("{outcome:?}");
    };
    assert!(
        how.contains("allowed tools") && how.contains("reasoning"),
        "{how}"
    );
}

#[test]
fn an_invalid_tool_choice_names_the_tool() {
    let fails = |request: &ChatRequest, capabilities: &ModelCapabilities| {
        let profile = Profile::openai();
        tools(
            ToolContext {
                request,
                provider: "openai",
                names: &named(request),
                capabilities,
                profile: &profile,
                schemas: &ToolSchemas::default(),
            },
            ProviderTool::from_extra(&request.extra, FORM),
            &mut Vec::new(),
        )
        .unwrap_err()
    };
    let unknown = ModelCapabilities::default();
    let error = fails(&request(only(&["zzz"])), &unknown);
    assert!(error.to_string().contains("`zzz`"), "{error}");
    fails(&request(only(&[])), &unknown);

    let mut none_declared = request(ToolChoice::Required);
    none_declared.tools.clear();
    fails(&none_declared, &unknown);

    let no_tools = ModelCapabilities {
        tools: Some(false),
        ..unknown
    };
    let error = fails(&request(ToolChoice::Auto), &no_tools);
    assert!(matches!(error.kind, ModelErrorKind::Unsupported { .. }));
    let (sent, names, outcome, _) = mapped(ToolChoice::None, &no_tools, &Profile::openai());
    assert_eq!((sent, names.len()), (Value::Null, 0));
    assert!(matches!(outcome, ToolChoiceOutcome::Emulated { .. }));
}

#[test]
fn a_schema_that_the_api_refuses_is_simplified_with_a_warning() {
    let schema = json!({"anyOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]});
    let tool = ToolDefinition::new("either", "", schema);
    let request = ChatRequest::new([Message::user("hi")]).with_tools([tool]);
    let unknown = ModelCapabilities::default();
    for (profile, expected) in [(Profile::openai(), 1), (Profile::vllm(), 0)] {
        let mut warnings = Vec::new();
        tools(
            ToolContext {
                request: &request,
                provider: "p",
                names: &named(&request),
                capabilities: &unknown,
                profile: &profile,
                schemas: &ToolSchemas::default(),
            },
            ProviderTool::from_extra(&request.extra, FORM),
            &mut warnings,
        )
        .unwrap();
        assert_eq!(warnings.len(), expected);
        assert!(warnings.iter().all(|it| it.message.contains("`either`")));
    }
}
