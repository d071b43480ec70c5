//! Combinations of features: a limit and a retry, a pause and a format, a guard and a call that did
//! not start.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt;
use serde_json::json;
use switchboard_domain::{
    FinishReason, ModelCapabilities, ModelErrorKind, ModelEvent, PartStart, ResponseFormat,
};
use switchboard_orchestration::{
    Agent, Outcome, RunErrorKind, RunEventKind, RunOptions, ToolFailure, strategy::formatter,
};

use crate::support::{
    Answer, Person, Scripted, TestClock, Tools, agent_with, allow_once, ask, asking,
    assert_grammar, assert_whole, calls, echo, echoing, expiring_options, failures, gather_format,
    has, picked, streamed, tool,
};

#[tokio::test]
async fn the_wall_time_of_a_run_includes_all_steps() {
    let hands = TestClock::default();
    let moving = hands.clone();
    let tools = Tools::new().with(tool("do"), move |call| {
        moving.advance(4);
        echo(call)
    });
    let ids = ["a", "b", "c", "d", "e"];
    let model = Scripted::new(ids.map(|id| calls(&[(id, "srv__do", json!({"n": 1}))])));
    let mut options = RunOptions::default();
    options.limits.max_wall_time = Some(Duration::from_secs(10));
    let agent = agent_with(&model, &Arc::new(tools), options).with_clock(hands.clock());
    let (_, report) = ask(&agent, "go").await;
    assert_eq!(report.error.unwrap().kind, RunErrorKind::TimeLimit);
    assert_eq!(model.asked(), 3);
}

#[tokio::test]
async fn the_expiry_of_a_request_starts_with_the_request() {
    let hands = TestClock::default();
    let moving = hands.clone();
    let mut alone = tool("slow");
    alone.sequential = true;
    alone.annotations.read_only = Some(true);
    let tools = Arc::new(
        Tools::new()
            .with(alone, move |call| {
                moving.advance(100);
                echo(call)
            })
            .with(tool("write"), echo),
    );
    let model = Scripted::calling(&[
        ("a", "srv__slow", json!({"n": 1})),
        ("b", "srv__write", json!({"n": 1})),
    ]);
    let agent = agent_with(&model, &tools, expiring_options())
        .with_approver(Person::always(allow_once()))
        .with_clock(hands.clock());
    ask(&agent, "go").await;
    assert_eq!(tools.called(), ["srv__slow", "srv__write"]);
}

#[tokio::test]
async fn a_call_that_exceeded_a_limit_is_not_a_repetition_later() {
    let more = "NEED MORE DATA: the others";
    let look = |id, n: i64| (id, "srv__look", json!({ "n": n }));
    let model = Scripted::new([
        Answer::Calls(more, vec![look("a", 1), look("b", 2)]),
        Answer::Calls(more, vec![look("c", 2)]),
        Answer::Says("That is all."),
        Answer::Says("Both are there."),
    ]);
    let tools = echoing(&["look"]);
    let mut options = gather_format();
    options.limits.max_calls_per_response = Some(1);
    let (_, report) = ask(&agent_with(&model, &tools, options), "go").await;
    let failures = failures(&report);
    assert_eq!(failures, [None, Some(ToolFailure::LimitReached), None]);
    assert_eq!(tools.called().len(), 2);
}

#[tokio::test]
async fn a_guarded_call_without_a_result_stops_later_calls() {
    let guard = json!({"tool": "srv__check", "when": "error"});
    let options = RunOptions {
        guards: vec![serde_json::from_value(guard).unwrap()],
        ..RunOptions::default()
    };
    let model = Scripted::calling(&[
        ("a", "srv__check", json!({"n": "who knows"})),
        ("b", "srv__pay", json!({"n": 1})),
    ]);
    let tools = echoing(&["check", "pay"]);
    let (_, report) = ask(&agent_with(&model, &tools, options), "go").await;
    assert!(tools.called().is_empty());
    let failures = failures(&report);
    let expected = [Some(ToolFailure::InvalidInput), Some(ToolFailure::Skipped)];
    assert_eq!(failures, expected);
}

/// A response whose text and tool call the provider retracts.
fn takes_back() -> Answer {
    Answer::Streams(vec![
        ModelEvent::PartStarted {
            index: 0,
            part: PartStart::Text,
        },
        ModelEvent::TextDelta {
            index: 0,
            text: "I do it.".into(),
        },
        ModelEvent::PartFinished { index: 0 },
        ModelEvent::PartStarted {
            index: 1,
            part: PartStart::ToolUse {
                id: "a".into(),
                name: "srv__do".into(),
            },
        },
        ModelEvent::ToolInputDelta {
            index: 1,
            json: r#"{"n":1}"#.into(),
        },
        ModelEvent::PartFinished { index: 1 },
        ModelEvent::Finished {
            reason: FinishReason::Refusal,
            raw: None,
        },
    ])
}

#[tokio::test]
async fn a_refusal_after_visible_output_ends_the_run() {
    let second = Scripted::named("second", ModelCapabilities::default(), []);
    for options in [RunOptions::default(), gather_format()] {
        let tools = echoing(&["do"]);
        let agent = agent_with(&Scripted::new([takes_back()]), &tools, options)
            .with_fallback(second.clone());
        let (events, report) = ask(&agent, "go").await;
        assert_eq!(report.error.unwrap().kind, RunErrorKind::Refusal);
        assert!(tools.called().is_empty());
        let formats = has(&events, |kind| {
            matches!(kind, RunEventKind::PhaseStarted { mode: Some(_), .. })
        });
        assert!(!formats, "the phase did not start");
    }
    assert_eq!(second.asked(), 0);
}

fn native() -> ModelCapabilities {
    ModelCapabilities {
        structured_output: Some(true),
        ..ModelCapabilities::default()
    }
}

#[tokio::test]
async fn a_paused_formatted_answer_is_read_as_one() {
    let model = Scripted::named(
        "native",
        native(),
        [
            Answer::Says("Nothing to gather."),
            Answer::Ends(r#"{"conversation":[{"type":"text","#, FinishReason::Paused),
            Answer::Says(r#""content":"In two pieces."}]}"#),
        ],
    );
    let agent = Agent::new(model).with_options(gather_format());
    let (_, report) = ask(&agent, "go").await;
    assert_eq!(report.answer, "In two pieces.");
    assert_eq!(report.outcome, Outcome::Completed);
}

#[tokio::test]
async fn repeated_pauses_of_a_formatted_answer_are_limited() {
    let pauses = std::iter::repeat_n(Answer::Ends("and so on ", FinishReason::Paused), 9);
    let gathered = std::iter::once(Answer::Says("Nothing to gather."));
    let model = Scripted::new(gathered.chain(pauses));
    let agent = Agent::new(model.clone()).with_options(gather_format());
    let (_, report) = ask(&agent, "go").await;
    assert_eq!(model.asked(), 10);
    assert_eq!(report.answer.matches("and so on").count(), 9);
}

#[tokio::test]
async fn a_truncated_formatted_answer_is_shown_as_incomplete() {
    let cut = r#"{"conversation":[{"type":"text","content":"The first half of"#;
    for (last, outcome) in [
        (Answer::Ends(cut, FinishReason::Length), Outcome::Limited),
        (Answer::Breaks(cut), Outcome::Failed),
    ] {
        let model = Scripted::named(
            "native",
            native(),
            [Answer::Says("Nothing to gather."), last],
        );
        let agent = Agent::new(model).with_options(gather_format());
        let (events, report) = ask(&agent, "go").await;
        assert_eq!(
            (report.outcome, report.answer.as_str()),
            (outcome, "The first half of")
        );
        assert!(streamed(&events).starts_with("The first half"));
        assert!(!streamed(&events).contains("conversation"));
    }
}

#[tokio::test]
async fn an_empty_formatted_answer_is_requested_again_without_an_empty_message() {
    let form = json!({"conversation": [{"type": "text", "content": "Here it is."}]});
    let model = Scripted::new([
        Answer::Says("Nothing to gather."),
        Answer::Ends("", FinishReason::Stop),
        calls(&[("f", formatter::TOOL, form)]),
    ]);
    let agent = Agent::new(model.clone()).with_options(gather_format());
    let (_, report) = ask(&agent, "go").await;
    assert_eq!(report.answer, "Here it is.");
    let last = model.request(2);
    assert!(
        last.messages
            .iter()
            .all(|message| !message.parts.is_empty()),
        "{last:#?}"
    );
}

#[tokio::test]
async fn a_fallback_model_uses_its_own_formatter_mode() {
    let first = Scripted::new([
        Answer::Says("Nothing to gather."),
        Answer::Fails(ModelErrorKind::Authentication, "no"),
    ]);
    let second = Scripted::named(
        "native",
        native(),
        [Answer::Says(
            r#"{"conversation":[{"type":"text","content":"ok"}]}"#,
        )],
    );
    let agent = Agent::new(first)
        .with_fallback(second.clone())
        .with_options(gather_format());
    let (events, report) = ask(&agent, "go").await;
    assert_eq!(report.answer, "ok");
    assert!(matches!(
        second.request(0).response_format,
        ResponseFormat::JsonSchema { .. }
    ));
    let modes: Vec<_> = picked(&events, |kind| match kind {
        RunEventKind::PhaseStarted { mode, .. } => mode.clone(),
        _ => None,
    });
    assert_eq!(modes.len(), 2);
    assert_ne!(modes[0], modes[1], "the event names the mode");
}

/// Returns a model with two steps of different tool calls, and an answer.
fn eventful_model() -> Arc<Scripted> {
    Scripted::new([
        Answer::Calls(
            "I look.",
            vec![
                ("a", "srv__look", json!({"n": 1})),
                ("b", "srv__write", json!({"n": "2"})),
                ("c", "srv__nothing", json!({"n": 3})),
                ("d", "srv__alone", json!({"n": 4})),
            ],
        ),
        calls(&[
            ("e", "srv__write", json!({"n": 5})),
            ("f", "srv__look", json!({"n": 6})),
        ]),
        Answer::Says("All is done."),
    ])
}

fn eventful_tools() -> Arc<Tools> {
    let mut alone = tool("alone");
    alone.sequential = true;
    Arc::new(
        Tools::new()
            .with(crate::support::reading("look"), echo)
            .with(tool("write"), echo)
            .with(alone, echo),
    )
}

#[tokio::test]
async fn a_cancellation_at_any_event_ends_the_run_consistently() {
    let mut at = 1;
    loop {
        let tools = eventful_tools();
        let agent = Agent::new(eventful_model())
            .with_tools(tools.clone())
            .with_approver(Person::always(allow_once()))
            .with_options(asking());
        let mut stream = agent.ask("go");
        let handle = stream.cancel_handle();
        let (mut events, mut called) = (Vec::new(), 0);
        while let Some(event) = stream.next().await {
            events.push(event);
            if events.len() == at {
                handle.cancel_run();
                called = tools.called().len();
            }
        }
        assert_grammar(&events);
        let run = stream.into_run().unwrap();
        assert_whole(run.messages());
        if events.len() < at {
            assert_eq!(run.outcome(), Some(Outcome::Completed));
            break;
        }
        // This event describes a past action. The end of a run cannot be reverted.
        let is_over = at + 1 >= events.len();
        assert!(
            is_over || run.outcome() == Some(Outcome::Cancelled),
            "at {at}: {events:#?}"
        );
        assert_eq!(tools.called().len(), called, "at {at}");
        at += 1;
    }
    assert!(at > 40, "{at}");
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_reported_once() {
    let ids = ["a", "b", "c"];
    let model = Scripted::new(
        ids.map(|id| calls(&[(id, "srv__do", json!({"n": 1}))]))
            .into_iter()
            .chain([Answer::Says("ok")]),
    );
    let mut options = RunOptions::default();
    options.history.max_tokens = Some(10);
    let (_, report) = ask(&agent_with(&model, &echoing(&["do"]), options), "go").await;
    assert_eq!(report.answer, "ok", "the provider has the last word");
    assert_eq!(report.warnings.len(), 1, "{:?}", report.warnings);
}

#[tokio::test]
async fn a_streamed_call_has_its_final_id() {
    let twice = || {
        calls(&[
            ("0", "srv__do", json!({"n": 1})),
            ("", "srv__do", json!({"n": 2})),
        ])
    };
    let model = Scripted::new([twice(), twice(), Answer::Says("ok")]);
    let tools = echoing(&["do"]);
    let (events, _) = ask(&Agent::new(model).with_tools(tools), "go").await;
    let planned = picked(&events, |kind| match kind {
        RunEventKind::ToolPlanned { id, .. } => Some(id),
        _ => None,
    });
    assert_eq!(planned, ["0", "call", "0_2", "call_2"]);
    let begun = picked(&events, |kind| match kind {
        RunEventKind::ToolInputStarted { id, .. } => Some(id),
        _ => None,
    });
    assert_eq!(begun, planned);
    let written = picked(&events, |kind| match kind {
        RunEventKind::ToolInputDelta { id, .. } => Some(id),
        _ => None,
    });
    assert_eq!(written, planned);
}

#[tokio::test]
async fn a_limitation_of_the_provider_is_reported_once() {
    let warned = |last: FinishReason| {
        let message = "there is no temperature";
        let kind = switchboard_domain::WarningKind::OptionDropped;
        Answer::Streams(vec![
            ModelEvent::Warning {
                warning: switchboard_domain::Warning::new(kind, message),
            },
            ModelEvent::PartStarted {
                index: 0,
                part: PartStart::Text,
            },
            ModelEvent::TextDelta {
                index: 0,
                text: "ok".into(),
            },
            ModelEvent::Finished {
                reason: last,
                raw: None,
            },
        ])
    };
    let model = Scripted::new([warned(FinishReason::Paused), warned(FinishReason::Stop)]);
    let (events, report) = ask(&Agent::new(model), "go").await;
    assert_eq!(report.warnings.len(), 1);
    let told = events
        .iter()
        .filter(|event| matches!(event.kind, RunEventKind::Warning { .. }));
    assert_eq!(told.count(), 1);
}

#[tokio::test]
async fn a_model_without_tool_support_does_not_affect_its_fallback() {
    let first = Scripted::new([
        Answer::Fails(
            ModelErrorKind::Unsupported {
                feature: "tools".into(),
            },
            "this model cannot call tools",
        ),
        Answer::Fails(ModelErrorKind::Authentication, "no"),
    ]);
    let second = Scripted::named(
        "second",
        ModelCapabilities::default(),
        [
            calls(&[("a", "srv__do", json!({"n": 1}))]),
            Answer::Says("ok"),
        ],
    );
    let tools = echoing(&["do"]);
    let agent = Agent::new(first)
        .with_fallback(second)
        .with_tools(tools.clone());
    let (_, report) = ask(&agent, "go").await;
    assert_eq!(report.answer, "ok");
    assert_eq!(tools.called(), ["srv__do"]);
}
