//! The strategy with two phases: gather data with tools, then format the answer.

use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_domain::{
    FinishReason, ModelCapabilities, ModelErrorKind, ResponseFormat, Role, ToolChoice,
};
use switchboard_orchestration::{
    Agent, AnswerItem, Outcome, RunErrorKind, RunEvent, RunEventKind, RunOptions, RunPhase,
    RunReport, ToolFailure,
    strategy::{
        GatherFormat, Strategy,
        formatter::{self, FormatterMode},
        gather_phase::GatheringEnd,
    },
};

use crate::support::{
    Answer, Scripted, Tools, agent_with, ask, calls, echo, echoing, gather_format, picked, results,
    streamed, tool,
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

fn gathering(model: &Arc<Scripted>) -> Agent {
    agent_with(model, &tools(), gather_format())
}

/// Asks a model with these capabilities. Its gathering phase has no tool call. These answers
/// follow.
async fn formatted(
    capabilities: ModelCapabilities,
    answers: impl IntoIterator<Item = Answer>,
) -> (Arc<Scripted>, Vec<RunEvent>, RunReport) {
    let nothing = Answer::Says("Nothing to find.");
    let model = Scripted::named("m", capabilities, [nothing].into_iter().chain(answers));
    let (events, report) = ask(&gathering(&model), "go").await;
    (model, events, report)
}

/// Returns the formatter modes of the formatting phase.
fn modes(events: &[RunEvent]) -> Vec<Option<String>> {
    picked(events, |kind| match kind {
        RunEventKind::PhaseStarted {
            phase: RunPhase::Formatting,
            mode,
            ..
        } => Some(mode.clone()),
        _ => None,
    })
}

/// Returns the reasons for the end of the gathering phase.
fn gathering_ends(events: &[RunEvent]) -> Vec<GatheringEnd> {
    picked(events, |kind| match kind {
        RunEventKind::PhaseStarted {
            gathering_ended, ..
        } => *gathering_ended,
        _ => None,
    })
}

pub(crate) fn phases(events: &[RunEvent]) -> Vec<RunPhase> {
    picked(events, |kind| match kind {
        RunEventKind::PhaseStarted { phase, .. } => Some(*phase),
        _ => None,
    })
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
    let agent = Agent::new(model.clone())
        .with_tools(tools.clone())
        .with_instructions("You know about things.")
        .with_options(gather_format());
    let (events, report) = ask(&agent, "Find things").await;
    assert_eq!(tools.called(), ["srv__find", "srv__find"]);
    assert_eq!(report.outcome, Outcome::Completed);
    assert_eq!(
        report.content,
        [
            AnswerItem::Text {
                content: "Two things were found.".into()
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
    assert_eq!(phases(&events), [RunPhase::Gathering, RunPhase::Formatting]);
    assert_eq!(gathering_ends(&events), [GatheringEnd::Stopped]);
    // The gathering phase: the prompt contains the instructions and the marker, and no tool choice
    // is forced.
    let first = model.request(0);
    let prompt = first.messages[0].text();
    assert!(
        prompt.contains("You know about things.") && prompt.contains("NEED MORE DATA:"),
        "{prompt}"
    );
    assert_eq!(first.tool_choice, ToolChoice::Auto);
    // The formatting phase: the request contains the conversation, and the formatter is the only
    // tool.
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
    // The formatter call is not recorded as a tool call.
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
    let (events, report) = ask(&agent_with(&model, &tools, gather_format()), "go").await;
    assert_eq!((report.answer.as_str(), tools.called().len()), ("ok", 5));
    assert_eq!(gathering_ends(&events), [GatheringEnd::ThinkingSteps]);
}

#[tokio::test]
async fn a_limit_of_the_run_ends_gathering_and_is_the_stated_reason() {
    let model = Scripted::new([find("NEED MORE DATA: all", "a", 1), form(text("ok"))]);
    let mut options = gather_format();
    options.limits.max_steps = 2;
    let (events, report) = ask(&agent_with(&model, &tools(), options), "go").await;
    assert_eq!(report.answer, "ok");
    assert_eq!(gathering_ends(&events), [GatheringEnd::Limit]);
}

#[tokio::test]
async fn notes_of_the_formatter_are_reasoning_and_stand_in_the_report() {
    let notes = json!({"thinking": " One row is enough. ", "conversation": text("ok")});
    let answer = calls(&[("f", formatter::TOOL, notes)]);
    let (_, events, report) = formatted(ModelCapabilities::default(), [answer]).await;
    assert_eq!(report.answer, "ok");
    assert_eq!(report.thinking.as_deref(), Some("One row is enough."));
    let reasoning = picked(&events, |kind| match kind {
        RunEventKind::ReasoningDelta { text } => Some(text.clone()),
        _ => None,
    });
    assert!(reasoning.contains(&"One row is enough.".to_owned()));
    assert_eq!(streamed(&events), "ok");
}

#[tokio::test]
async fn the_formatter_mode_can_be_chosen_and_less_strict_modes_follow() {
    let strategy = Strategy::GatherFormat(GatherFormat {
        formatter_mode: Some(FormatterMode::Required),
        ..GatherFormat::default()
    });
    let options = RunOptions {
        strategy,
        ..RunOptions::default()
    };
    let refused = Answer::Fails(ModelErrorKind::InvalidRequest { field: None }, "not so");
    let model = Scripted::new([Answer::Says("Nothing."), refused, form(text("ok"))]);
    let (_, report) = ask(&agent_with(&model, &tools(), options), "go").await;
    assert_eq!(report.answer, "ok");
    assert_eq!(model.request(1).tool_choice, ToolChoice::Required);
    assert_eq!(model.request(2).tool_choice, ToolChoice::Auto);
}

#[test]
fn text_items_of_earlier_reports_can_be_read() {
    let earlier = json!({"type": "text", "text": "ok"});
    let item: AnswerItem = serde_json::from_value(earlier).unwrap();
    assert_eq!(item.content(), "ok");
    let written = serde_json::to_value(item).unwrap();
    assert_eq!(written, json!({"type": "text", "content": "ok"}));
}

#[tokio::test]
async fn at_most_fifteen_tools_are_described_in_the_prompt() {
    let mut many = Tools::new();
    for n in 0..20 {
        many = many.with(tool(&format!("t{n:02}")), echo);
    }
    let model = Scripted::new([Answer::Says("Nothing to look up."), form(text("ok"))]);
    let agent = Agent::new(model.clone())
        .with_tools(Arc::new(many))
        .with_options(gather_format());
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
    let agent = agent_with(&model, &tools, gather_format());
    let (events, report) = ask(&agent, "go").await;
    assert_eq!(gathering_ends(&events), [GatheringEnd::RepeatedCalls]);
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
    let native: &'static str = r#"{"conversation": [{"type": "text", "content": "ok"}]}"#;
    for (structured_output, forced_tool_choice, answer) in [
        (true, true, Answer::Says(native)),
        (false, true, form(text("ok"))),
        (false, false, form(text("ok"))),
    ] {
        let capabilities = ModelCapabilities {
            structured_output: Some(structured_output),
            forced_tool_choice: Some(forced_tool_choice),
            tools: Some(true),
            ..ModelCapabilities::default()
        };
        let (model, events, report) = formatted(capabilities, [answer]).await;
        assert_eq!(report.answer, "ok");
        assert_eq!(streamed(&events), "ok");
        let mode = modes(&events).pop().flatten();
        assert!(mode.is_some_and(|mode| !mode.is_empty()));
        let request = model.request(1);
        if structured_output {
            let format = request.response_format;
            assert!(matches!(format, ResponseFormat::JsonSchema { .. }));
            continue;
        }
        assert_eq!(request.tools.len(), 1);
        assert_eq!(request.tools[0].name, formatter::TOOL);
        let choice = if forced_tool_choice {
            ToolChoice::Only(vec![formatter::TOOL.into()])
        } else {
            ToolChoice::Auto
        };
        assert_eq!(request.tool_choice, choice);
    }
}

#[tokio::test]
async fn a_refused_formatter_mode_is_followed_by_the_next_mode() {
    let capabilities = ModelCapabilities {
        structured_output: Some(false),
        forced_tool_choice: None,
        ..ModelCapabilities::default()
    };
    let field = Some("tool_choice".into());
    let refused = Answer::Fails(ModelErrorKind::InvalidRequest { field }, "not compatible");
    let (model, events, report) = formatted(capabilities, [refused, form(text("ok"))]).await;
    assert_eq!(report.answer, "ok");
    assert_eq!(modes(&events).len(), 2);
    assert_ne!(model.request(1).tool_choice, model.request(2).tool_choice);
}

#[tokio::test]
async fn a_malformed_formatted_answer_is_repaired_and_reported() {
    let answer = form(json!("Just a string."));
    let (_, events, report) = formatted(ModelCapabilities::default(), [answer]).await;
    assert_eq!(report.answer, "Just a string.");
    assert!(events.iter().any(|event| {
        matches!(&event.kind, RunEventKind::FormatRepaired { repairs } if !repairs.is_empty())
    }));
}

#[tokio::test]
async fn an_irreparable_answer_is_requested_again_once_and_then_becomes_text() {
    let broken = || form(json!([{"type": "text"}]));
    let answers = [broken(), form(text("now it is right"))];
    let (_, events, report) = formatted(ModelCapabilities::default(), answers).await;
    assert_eq!(report.answer, "now it is right");
    let asked_again = |event: &RunEvent| matches!(event.kind, RunEventKind::AskedAgain { .. });
    assert!(events.iter().any(asked_again));

    let answers = [broken(), broken()];
    let (_, _, report) = formatted(ModelCapabilities::default(), answers).await;
    assert_eq!(report.answer, "Nothing to find.", "never an empty answer");
    assert_eq!(report.outcome, Outcome::Completed);
}

#[tokio::test]
async fn gathered_data_is_formatted_after_a_truncated_response() {
    let model = Scripted::new([
        find("NEED MORE DATA: more", "a", 1),
        Answer::Ends("There is much m", FinishReason::Length),
        form(text("ok")),
    ]);
    let (_, report) = ask(&gathering(&model), "go").await;
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
    let (_, report) = ask(&gathering(&model), "go").await;
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
        let agent = Agent::new(model.clone())
            .with_tools(tools())
            .with_options(options);
        let (_, report) = ask(&agent, "go").await;
        assert_eq!(report.outcome, Outcome::Completed, "{max_steps}");
        assert_eq!(report.answer, "What was gathered.");
        assert_eq!(report.steps, max_steps);
        // The last request is a formatting request and not a gathering request.
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
    let agent = agent_with(&model, &tools, options);
    let (_, report) = ask(&agent, "go").await;
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
        // The finish reason determines the error, and not the malformed answer.
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
