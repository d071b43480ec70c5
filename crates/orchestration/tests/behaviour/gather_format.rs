//! Sequential thinking, exactly: gather with tools, then put the answer into its form.

use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_domain::{
    FinishReason, ModelCapabilities, ModelErrorKind, ResponseFormat, Role, ToolChoice,
};
use switchboard_orchestration::{
    Agent, AnswerItem, Outcome, RunErrorKind, RunEventKind, RunOptions, RunPhase, ToolFailure,
    strategy::{GatherFormat, Strategy, formatter},
};

use crate::support::{
    Answer, Scripted, Tools, agent_with, ask, calls, echo, echoing, gather_format, has, picked,
    results, streamed, tool,
};

#[allow(clippy::needless_pass_by_value)]
fn form(items: Value) -> Answer {
    calls(&[("f", formatter::TOOL, json!({ "conversation": items }))])
}

fn text(content: &str) -> Value {
    json!([{"type": "text", "content": content}])
}

fn tools() -> Arc<Tools> {
    echoing(&["find", "other"])
}

fn find(words: &'static str, id: &'static str, n: i64) -> Answer {
    Answer::Calls(words, vec![(id, "srv__find", json!({ "n": n }))])
}

#[tokio::test]
async fn the_model_gathers_first_and_then_formats() {
    let model = Scripted::new([
        find("NEED MORE DATA: the second part is missing", "a", 1),
        find("", "b", 2),
        form(json!([
            {"type": "text", "content": "Two things were found."},
            {"type": "artifact", "artifactType": "table", "title": "Things", "content": "| a |"},
        ])),
    ]);
    let tools = tools();
    let agent =
        agent_with(&model, &tools, gather_format()).with_instructions("You know about things.");
    let (events, report) = ask(&agent, "Find things").await;
    assert_eq!(tools.called(), ["srv__find", "srv__find"]);
    assert_eq!(report.outcome, Outcome::Completed);
    assert_eq!(
        report.content,
        [
            AnswerItem::Text {
                text: "Two things were found.".into()
            },
            AnswerItem::Artifact {
                artifact_type: "table".into(),
                title: "Things".into(),
                content: "| a |".into(),
                language: None,
            },
        ]
    );
    let item = serde_json::to_value(&report.content[1]).unwrap();
    assert_eq!(
        item,
        json!({"type": "artifact", "artifactType": "table", "title": "Things", "content": "| a |"})
    );
    let phases: Vec<_> = picked(&events, |kind| match kind {
        RunEventKind::PhaseStarted { phase, .. } => Some(*phase),
        _ => None,
    });
    assert_eq!(phases, [RunPhase::Gathering, RunPhase::Formatting]);
    // Gathering: instructions first, the marker explained, no choice of tools forced.
    let first = model.request(0);
    let prompt = first.messages[0].text();
    assert!(
        prompt.contains("You know about things.") && prompt.contains("NEED MORE DATA:"),
        "{prompt}"
    );
    assert_eq!(first.tool_choice, ToolChoice::Auto);
    // Formatting: the conversation so far, the formatter, nothing else to call.
    let last = model.request(2);
    assert!(
        last.messages
            .iter()
            .any(|message| message.role == Role::Tool)
    );
    assert!(
        last.messages
            .last()
            .unwrap()
            .text()
            .contains(formatter::TOOL)
    );
    // The streamed text is the answer.
    assert_eq!(streamed(&events), report.answer);
    // The formatter leaves no tool use without a result behind.
    assert!(
        report
            .tool_calls
            .iter()
            .all(|call| call.tool != formatter::TOOL)
    );
}

#[tokio::test]
async fn gathering_has_at_most_five_steps() {
    let more = |id, n| find("NEED MORE DATA: still not all", id, n);
    let model = Scripted::new([
        more("a", 1),
        more("b", 2),
        more("c", 3),
        more("d", 4),
        more("e", 5),
        form(text("ok")),
    ]);
    let tools = tools();
    let (_, report) = ask(&agent_with(&model, &tools, gather_format()), "go").await;
    assert_eq!((report.answer.as_str(), tools.called().len()), ("ok", 5));
}

#[tokio::test]
async fn at_most_fifteen_tools_are_described_in_the_prompt() {
    let mut many = Tools::new();
    for n in 0..20 {
        many = many.with(tool(&format!("t{n:02}")), echo);
    }
    let model = Scripted::new([Answer::Says("Nothing to look up."), form(text("ok"))]);
    let agent = agent_with(&model, &Arc::new(many), gather_format());
    ask(&agent, "go").await;
    let request = model.request(0);
    let prompt = request.messages[0].text();
    let described = (0..20)
        .filter(|n| prompt.contains(&format!("Does t{n:02}.")))
        .count();
    assert_eq!((described, request.tools.len()), (15, 20));
}

#[tokio::test]
async fn a_repeated_call_is_not_executed_and_the_second_repetition_ends_the_phase() {
    let again = |id| {
        Answer::Calls(
            "NEED MORE DATA: really",
            vec![(id, "srv__find", json!({"n": 1.0}))],
        )
    };
    let model = Scripted::new([
        find("NEED MORE DATA: more", "a", 1),
        again("b"),
        again("c"),
        form(text("ok")),
    ]);
    let tools = tools();
    let (_, report) = ask(&agent_with(&model, &tools, gather_format()), "go").await;
    assert_eq!(tools.called().len(), 1);
    assert_eq!(report.tool_calls[1].failure, Some(ToolFailure::Repeated));
    assert!(!report.tool_calls[1].is_error);
    let repeated = &results(&model, 2)[0];
    assert!(
        repeated.contains(r#"srv__find {"n":1}"#) && repeated.len() > 20,
        "{repeated}"
    );
    assert_eq!(model.asked(), 4);
}

#[tokio::test]
async fn the_formatter_mode_follows_the_capabilities_of_the_model() {
    let with = |structured: Option<bool>, forced: Option<bool>| ModelCapabilities {
        structured_output: structured,
        forced_tool_choice: forced,
        tools: Some(true),
        ..ModelCapabilities::default()
    };
    // Native structured output: the form itself is the answer's format.
    let native = json!({"conversation": text("native")}).to_string();
    let native: &'static str = Box::leak(native.into_boxed_str());
    let model = Scripted::named(
        "native",
        with(Some(true), Some(true)),
        [Answer::Says("Nothing to find."), Answer::Says(native)],
    );
    let (events, report) = ask(&agent_with(&model, &tools(), gather_format()), "go").await;
    assert_eq!(report.answer, "native");
    assert_eq!(streamed(&events), "native");
    assert!(matches!(
        model.request(1).response_format,
        ResponseFormat::JsonSchema { .. }
    ));
    // A named choice.
    let model = Scripted::named(
        "named",
        with(Some(false), Some(true)),
        [Answer::Says("Nothing to find."), form(text("named"))],
    );
    let (events, report) = ask(&agent_with(&model, &tools(), gather_format()), "go").await;
    assert_eq!(report.answer, "named");
    assert_eq!(
        model.request(1).tool_choice,
        ToolChoice::Only(vec![formatter::TOOL.into()])
    );
    let told = has(
        &events,
        |kind| matches!(kind, RunEventKind::PhaseStarted { phase: RunPhase::Formatting, mode: Some(mode) } if !mode.is_empty()),
    );
    assert!(told, "how it is forced is visible");
    // Without a forced tool choice, the response is checked.
    let model = Scripted::named(
        "auto",
        with(Some(false), Some(false)),
        [Answer::Says("Nothing to find."), form(text("auto"))],
    );
    let (_, report) = ask(&agent_with(&model, &tools(), gather_format()), "go").await;
    assert_eq!(report.answer, "auto");
    let request = model.request(1);
    let names: Vec<_> = request
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(
        (names, &request.tool_choice),
        (vec![formatter::TOOL], &ToolChoice::Auto)
    );
}

#[tokio::test]
async fn a_refused_formatter_mode_is_followed_by_the_next_mode() {
    let capabilities = ModelCapabilities {
        structured_output: Some(false),
        forced_tool_choice: None,
        ..ModelCapabilities::default()
    };
    let refused = Answer::Fails(
        ModelErrorKind::InvalidRequest {
            field: Some("tool_choice".into()),
        },
        "tool_choice forces tool use is not compatible with this model",
    );
    let model = Scripted::named(
        "m",
        capabilities,
        [Answer::Says("Nothing to find."), refused, form(text("ok"))],
    );
    let (events, report) = ask(&agent_with(&model, &tools(), gather_format()), "go").await;
    assert_eq!(report.answer, "ok");
    let tried = events
        .iter()
        .filter(|event| {
            matches!(
                &event.kind,
                RunEventKind::PhaseStarted {
                    phase: RunPhase::Formatting,
                    ..
                }
            )
        })
        .count();
    assert_eq!(tried, 2);
    assert_ne!(model.request(1).tool_choice, model.request(2).tool_choice);
}

#[tokio::test]
async fn a_malformed_formatted_answer_is_repaired_and_reported() {
    let model = Scripted::new([
        Answer::Says("Nothing to find."),
        calls(&[(
            "f",
            formatter::TOOL,
            json!({"conversation": "Just a string."}),
        )]),
    ]);
    let (events, report) = ask(&agent_with(&model, &tools(), gather_format()), "go").await;
    assert_eq!(report.answer, "Just a string.");
    assert!(has(
        &events,
        |kind| matches!(kind, RunEventKind::FormatRepaired { repairs } if !repairs.is_empty())
    ));
}

#[tokio::test]
async fn an_irreparable_answer_is_requested_again_once_and_then_becomes_text() {
    let broken = || {
        calls(&[(
            "f",
            formatter::TOOL,
            json!({"conversation": [{"type": "text"}]}),
        )])
    };
    let model = Scripted::new([
        Answer::Says("I found nothing at all."),
        broken(),
        form(text("now it is right")),
    ]);
    let (events, report) = ask(&agent_with(&model, &tools(), gather_format()), "go").await;
    assert_eq!(report.answer, "now it is right");
    assert!(has(&events, |kind| matches!(
        kind,
        RunEventKind::AskedAgain { .. }
    )));

    let model = Scripted::new([Answer::Says("I found nothing at all."), broken(), broken()]);
    let (_, report) = ask(&agent_with(&model, &tools(), gather_format()), "go").await;
    assert_eq!(
        report.answer, "I found nothing at all.",
        "never an empty answer"
    );
    assert_eq!(report.outcome, Outcome::Completed);
}

#[tokio::test]
async fn gathered_data_is_formatted_after_a_truncated_response() {
    let model = Scripted::new([
        find("NEED MORE DATA: more", "a", 1),
        Answer::Ends("There is much m", FinishReason::Length),
        form(text("ok")),
    ]);
    let (_, report) = ask(&agent_with(&model, &tools(), gather_format()), "go").await;
    assert_eq!(report.answer, "ok");
}

#[tokio::test]
async fn a_request_for_more_data_never_becomes_the_answer() {
    let model = Scripted::new([
        Answer::Says("NEED MORE DATA: the id"),
        Answer::Says("Customer 42 is Noor."),
        Answer::Says("NEED MORE DATA: the account value"),
        form(text("Noor's account is worth 530.19 EUR.")),
    ]);
    let (_, report) = ask(&agent_with(&model, &tools(), gather_format()), "go").await;
    assert_eq!(report.answer, "Noor's account is worth 530.19 EUR.");
}

#[tokio::test]
async fn the_last_allowed_step_formats_the_answer() {
    for max_steps in [1, 2, 3] {
        let gathers = (0..max_steps - 1).map(|n| {
            let id: &'static str = Box::leak(n.to_string().into_boxed_str());
            find("NEED MORE DATA: more", id, n.into())
        });
        let model = Scripted::new(gathers.chain([form(text("What was gathered."))]));
        let mut options = gather_format();
        options.limits.max_steps = max_steps;
        let (_, report) = ask(&agent_with(&model, &tools(), options), "go").await;
        assert_eq!(report.outcome, Outcome::Completed, "{max_steps}");
        assert_eq!(report.answer, "What was gathered.");
        assert_eq!(report.steps, max_steps);
        // The gather phase is not continued.
        let last = model.request(model.asked() - 1);
        assert_eq!(last.tools[0].name, formatter::TOOL);
    }
    let mut options = gather_format();
    options.limits.max_steps = 0;
    let agent = Agent::new(Scripted::new([])).with_options(options);
    let (_, report) = ask(&agent, "go").await;
    assert_eq!((report.outcome, report.steps), (Outcome::Limited, 0));
}

#[tokio::test]
async fn the_last_allowed_call_ends_gathering_but_not_the_run() {
    let model = Scripted::new([
        find("NEED MORE DATA: more", "a", 1),
        find("NEED MORE DATA: more", "b", 2),
        form(text("What was gathered.")),
    ]);
    let mut options = gather_format();
    options.limits.max_tool_calls = Some(1);
    let tools = tools();
    let (_, report) = ask(&agent_with(&model, &tools, options), "go").await;
    assert_eq!(report.outcome, Outcome::Completed);
    assert_eq!(report.answer, "What was gathered.");
    assert_eq!(tools.called().len(), 1);
}

/// Returns options whose answers must fit a schema.
fn with_schema(schema: Value) -> RunOptions {
    RunOptions {
        strategy: Strategy::GatherFormat(GatherFormat {
            schema: Some(schema),
            ..GatherFormat::default()
        }),
        ..RunOptions::default()
    }
}

fn person() -> Value {
    json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"],
    })
}

#[tokio::test]
async fn an_answer_that_violates_its_schema_is_an_error_with_its_text() {
    const UNFIT: &str = r#"{"a":20,"b":22}"#;
    let able = ModelCapabilities {
        structured_output: Some(true),
        ..ModelCapabilities::default()
    };
    for (last, outcome, kind) in [
        (
            Answer::Says(UNFIT),
            Outcome::Failed,
            RunErrorKind::MalformedAnswer,
        ),
        // The reason why the model stopped comes first.
        (
            Answer::Ends(UNFIT, FinishReason::Length),
            Outcome::Limited,
            RunErrorKind::OutputLimit,
        ),
        (
            Answer::Ends(UNFIT, FinishReason::Refusal),
            Outcome::Failed,
            RunErrorKind::Refusal,
        ),
    ] {
        let answers = [Answer::Says("Nothing to find."), Answer::Says(UNFIT), last];
        let model = Scripted::named("m", able.clone(), answers);
        let agent = Agent::new(model.clone()).with_options(with_schema(person()));
        let (_, report) = ask(&agent, "Who?").await;
        let error = report.error.clone().unwrap();
        assert_eq!((report.outcome, &error.kind), (outcome, &kind));
        assert_eq!(report.answer, UNFIT, "the text stays");
        if kind == RunErrorKind::MalformedAnswer {
            for field in ["\"name\" is a required", "\"age\" is a required"] {
                assert!(error.message.contains(field), "{error:?}");
            }
        }
        assert_eq!(
            model.requests.lock().unwrap().len(),
            3,
            "one repair request"
        );
    }
}

#[tokio::test]
async fn an_invalid_answer_schema_is_an_error_before_the_first_request() {
    for schema in [
        json!({"type": "object", "minimum": "x"}),
        json!({"$ref": "https://schemas.test/person.json"}),
        json!({"type": "person"}),
    ] {
        let model = Scripted::new([Answer::Says("Nothing to find.")]);
        let agent = Agent::new(model.clone()).with_options(with_schema(schema.clone()));
        let (_, report) = ask(&agent, "Who?").await;
        let error = report.error.unwrap();
        assert_eq!(error.kind, RunErrorKind::InvalidSchema, "{schema}");
        assert_eq!(report.outcome, Outcome::Failed);
        assert_eq!(model.requests.lock().unwrap().len(), 0, "{schema}");
    }
}
