//! Defects of the source systems that do not occur here: one test for each, with its name.
//!
//! Tests about server connections (circuit breaker, reconnection, pages, names) and providers (calls
//! as text) are in their crates; docs/orchestration.md names them.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use switchboard_domain::{
    FinishReason, ModelEvent, ModelId, Part, PartStart, ProviderState, Role, ToolCallError,
    ToolChoiceOutcome, ToolOrigin, ToolOutput,
};
use switchboard_orchestration::{
    Agent, Outcome, RunErrorKind, RunEventKind, RunOptions, ToolFailure,
    observe::metrics::Metrics,
    strategy::{GatherFormat, Strategy},
};

use crate::support::{
    Answer, Scripted, Tools, ask, assert_whole, calls, echo, reading, results, tool,
};

#[tokio::test]
async fn trimming_orphans_tool_results_or_loses_the_question() {
    let long = Tools::new().with(tool("do"), |_| Ok(ToolOutput::text("word ".repeat(300))));
    let ids = ["a", "b", "c", "d", "e", "f", "g"];
    let answers = ids.map(|id| {
        calls(&[
            (id, "srv__do", json!({"n": 1})),
            ("", "srv__do", json!({"n": 2})),
        ])
    });
    let model = Scripted::new(answers.into_iter().chain([Answer::Says("ok")]));
    let mut options = RunOptions::default();
    options.history.max_tokens = Some(1_200);
    let agent = Agent::new(model.clone())
        .with_instructions("Be brief.")
        .with_tools(Arc::new(long))
        .with_options(options);
    let (events, _) = ask(&agent, "What is it?").await;
    let trims = events
        .iter()
        .filter(|event| matches!(event.kind, RunEventKind::HistoryTrimmed { .. }));
    assert!(trims.count() > 0);
    for n in 0..model.asked() {
        let request = model.request(n);
        assert_whole(&request.messages);
        assert_eq!(request.messages[0].text(), "Be brief.");
        assert_eq!(request.messages[1].text(), "What is it?");
    }
}

/// Thinking with a signature, then a call with one.
fn thinks_and_calls(signature: &str) -> Answer {
    let minter = ModelId::new("test", "scripted");
    let state = |data: &str| ProviderState::minted_by(&minter, json!({ "signature": data }));
    Answer::Streams(vec![
        ModelEvent::Started {
            response_id: None,
            model: None,
            tool_choice: ToolChoiceOutcome::Native,
        },
        ModelEvent::PartStarted {
            index: 0,
            part: PartStart::Reasoning,
        },
        ModelEvent::ReasoningDelta {
            index: 0,
            text: "I should look.".into(),
        },
        ModelEvent::PartState {
            index: 0,
            state: Box::new(state(signature)),
        },
        ModelEvent::PartFinished { index: 0 },
        ModelEvent::PartStarted {
            index: 1,
            part: PartStart::ToolUse {
                id: format!("call_{signature}"),
                name: "srv__do".into(),
            },
        },
        ModelEvent::ToolInputDelta {
            index: 1,
            json: r#"{"n":1}"#.into(),
        },
        ModelEvent::PartState {
            index: 1,
            state: Box::new(state("of the call")),
        },
        ModelEvent::PartFinished { index: 1 },
        ModelEvent::Finished {
            reason: FinishReason::ToolUse,
            raw: None,
        },
    ])
}

#[tokio::test]
async fn thinking_signatures_are_lost_in_recursion() {
    let model = Scripted::new([
        thinks_and_calls("first"),
        thinks_and_calls("second"),
        Answer::Says("ok"),
    ]);
    let agent = Agent::new(model.clone()).with_tools(Arc::new(Tools::new().with(tool("do"), echo)));
    ask(&agent, "go").await;
    let last = model.request(2);
    let states: Vec<_> = last
        .messages
        .iter()
        .flat_map(|message| &message.parts)
        .filter_map(Part::provider_state)
        .map(|state| state.data["signature"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["first", "of the call", "second", "of the call"]);
    // Where they stood: before the call that they led to, in one message with it.
    assert!(matches!(
        &last.messages[1].parts[..],
        [Part::Reasoning(thought), Part::ToolUse(_)] if thought.text == "I should look."
    ));
}

#[tokio::test]
async fn is_error_results_are_given_as_successes() {
    let failing = Tools::new().with(tool("do"), |_| {
        Ok(ToolOutput {
            is_error: true,
            ..ToolOutput::text("no such customer")
        })
    });
    let model = Scripted::new([
        calls(&[("a", "srv__do", json!({"n": 1}))]),
        Answer::Says("There is none."),
    ]);
    let (events, report) = ask(
        &Agent::new(model.clone()).with_tools(Arc::new(failing)),
        "go",
    )
    .await;
    let request = model.request(1);
    let result = request.messages[2].results().next().unwrap();
    assert!(result.is_error && result.as_text() == "no such customer");
    let call = &report.tool_calls[0];
    assert_eq!(
        (call.is_error, call.failure),
        (true, Some(ToolFailure::ToolError))
    );
    let mut metrics = Metrics::default();
    for event in &events {
        metrics.observe(event);
    }
    let counts = metrics.snapshot().tools[0].calls;
    assert_eq!((counts.failed, counts.successful), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn time_outs_run_tools_again_that_are_not_idempotent() {
    let hanging = Arc::new(Tools::new().with_async(tool("pay"), |_| std::future::pending()));
    let model = Scripted::new([
        calls(&[("a", "srv__pay", json!({"n": 1}))]),
        Answer::Says("I do not know whether it was paid."),
    ]);
    let agent = Agent::new(model.clone())
        .with_tools(hanging.clone())
        .with_options(RunOptions {
            tool_timeout: Some(Duration::from_secs(1)),
            ..RunOptions::default()
        });
    let (_, report) = ask(&agent, "pay").await;
    assert_eq!(hanging.called(), ["srv__pay"], "once, and never again");
    let call = &report.tool_calls[0];
    assert_eq!(
        (call.failure, call.attempts),
        (Some(ToolFailure::Timeout), 1)
    );
    assert!(!results(&model, 1)[0].is_empty());
}

#[tokio::test]
async fn one_tool_named_status_fails_its_whole_server() {
    let model = Scripted::new([
        calls(&[
            ("a", "srv__status", json!({"n": 1})),
            ("b", "srv__other", json!({"n": 1})),
        ]),
        Answer::Says("ok"),
    ]);
    let tools = Arc::new(
        Tools::new()
            .with(tool("status"), echo)
            .with(tool("other"), echo),
    );
    let (_, report) = ask(&Agent::new(model).with_tools(tools.clone()), "go").await;
    assert_eq!(tools.called(), ["srv__status", "srv__other"]);
    assert!(report.tool_calls.iter().all(|call| !call.is_error));
}

#[tokio::test]
async fn there_is_no_loop_limit() {
    let ids: Vec<&'static str> = (0..16).map(|_| "again").collect();
    let model = Scripted::new(
        ids.into_iter()
            .map(|id| calls(&[(id, "srv__do", json!({"n": 1}))])),
    );
    let tools = Arc::new(Tools::new().with(tool("do"), echo));
    let (_, report) = ask(&Agent::new(model.clone()).with_tools(tools), "go").await;
    // With the options as they are, and a model that would go on for ever.
    assert_eq!(model.asked(), 16);
    assert_eq!(report.outcome, Outcome::Limited);
    assert_eq!(report.error.unwrap().kind, RunErrorKind::StepLimit);
}

#[tokio::test]
async fn unparseable_arguments_are_executed() {
    for raw in [r#"{"n": "#, "n is one", "[1]", ""] {
        let model = Scripted::new([
            Answer::RawCall("a", "srv__do", raw),
            Answer::Says("I try again."),
        ]);
        let tools = Arc::new(Tools::new().with(tool("do"), echo));
        let (_, report) = ask(&Agent::new(model.clone()).with_tools(tools.clone()), "go").await;
        assert!(tools.called().is_empty(), "{raw}");
        assert!(report.tool_calls[0].failure.unwrap().is_hallucination());
        assert!(results(&model, 1)[0].starts_with("Not executed"), "{raw}");
    }
}

#[tokio::test]
async fn tool_results_go_back_as_one_plain_text_message() {
    let model = Scripted::new([
        calls(&[
            ("a", "srv__do", json!({"n": 1})),
            ("b", "srv__do", json!({"n": 2})),
        ]),
        Answer::Says("ok"),
    ]);
    let tools = Arc::new(Tools::new().with(tool("do"), echo));
    ask(&Agent::new(model.clone()).with_tools(tools), "go").await;
    let request = model.request(1);
    let message = request.messages.last().unwrap();
    assert_eq!(message.role, Role::Tool);
    assert!(
        message.text().is_empty(),
        "no words of ours beside the results"
    );
    let results: Vec<_> = message
        .results()
        .map(|result| (result.tool_use_id.as_str(), result.as_text()))
        .collect();
    let expected = [
        ("a", r#"srv__do {"n":1}"#.to_owned()),
        ("b", r#"srv__do {"n":2}"#.to_owned()),
    ];
    assert_eq!(results, expected);
}

#[tokio::test]
async fn the_iteration_limit_throws_away_the_work() {
    let model = Scripted::new([Answer::Calls(
        "The first half is 21.",
        vec![("a", "srv__do", json!({"n": 1}))],
    )]);
    let mut options = RunOptions::default();
    options.limits.max_steps = 1;
    let tools = Arc::new(Tools::new().with(tool("do"), echo));
    let agent = Agent::new(model).with_tools(tools).with_options(options);
    let (_, report) = ask(&agent, "go").await;
    assert_eq!(report.outcome, Outcome::Limited);
    assert_eq!(report.answer, "The first half is 21.");
    assert_eq!(
        report.tool_calls[0].result.content[0].as_text(),
        r#"srv__do {"n":1}"#
    );
    assert_eq!(report.tool_calls.len(), 1);
}

#[tokio::test]
async fn names_are_split_on_the_wrong_server() {
    // `a__b` of server `c`, and `b` of server `c__a`: the name alone is ambiguous.
    let named = |alias: &str, server: &str, own: &str| {
        let mut tool = tool(own);
        tool.name = alias.into();
        tool.origin = Some(ToolOrigin {
            server: server.into(),
            tool: own.into(),
        });
        tool
    };
    let model = Scripted::new([
        calls(&[
            ("1", "c__a__b", json!({"n": 1})),
            ("2", "c__a__b_2", json!({"n": 1})),
        ]),
        Answer::Says("ok"),
    ]);
    let tools = Arc::new(
        Tools::new()
            .with(named("c__a__b", "c", "a__b"), echo)
            .with(named("c__a__b_2", "c__a", "b"), echo),
    );
    let (events, report) = ask(&Agent::new(model).with_tools(tools.clone()), "go").await;
    assert_eq!(
        tools.called(),
        ["c__a__b", "c__a__b_2"],
        "the host gets the whole name"
    );
    let planned: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.kind {
            RunEventKind::ToolPlanned { server, tool, .. } => {
                Some((server.clone().unwrap(), tool.clone()))
            }
            _ => None,
        })
        .collect();
    let expected = [("c", "a__b"), ("c__a", "b")];
    assert_eq!(
        planned,
        expected.map(|(server, tool)| (server.to_owned(), tool.to_owned()))
    );
    assert_eq!(report.tool_calls[1].server.as_deref(), Some("c__a"));
}

#[tokio::test]
async fn calls_are_repeated() {
    let look = |id| {
        Answer::Calls(
            "NEED MORE DATA: once more",
            // The same in another order and notation is the same.
            vec![(id, "srv__look", json!({"n": 1}))],
        )
    };
    let model = Scripted::new([look("a"), look("b"), look("c"), Answer::Says("It is 1.")]);
    let tools = Arc::new(Tools::new().with(reading("look"), echo));
    let agent = Agent::new(model)
        .with_tools(tools.clone())
        .with_options(RunOptions {
            strategy: Strategy::GatherFormat(GatherFormat::default()),
            ..RunOptions::default()
        });
    let (_, report) = ask(&agent, "go").await;
    assert_eq!(tools.called(), ["srv__look"]);
    let failures: Vec<_> = report.tool_calls.iter().map(|call| call.failure).collect();
    let repeated = Some(ToolFailure::Repeated);
    assert_eq!(failures, [None, repeated, repeated]);
}

#[tokio::test]
async fn a_call_that_never_left_is_told_as_one_that_failed() {
    // The open circuit breaker prevents the request. Model and person read the reason.
    let blocked = Tools::new().with(tool("do"), |_| {
        Err(ToolCallError::Unavailable {
            server: "srv".into(),
            reason: "it gave no answer five times and is left alone for 10 s".into(),
        })
    });
    let model = Scripted::new([
        calls(&[("a", "srv__do", json!({"n": 1}))]),
        Answer::Says("It is away."),
    ]);
    let (_, report) = ask(
        &Agent::new(model.clone()).with_tools(Arc::new(blocked)),
        "go",
    )
    .await;
    assert_eq!(report.tool_calls[0].failure, Some(ToolFailure::Unavailable));
    assert!(results(&model, 1)[0].contains("left alone for 10 s"));
}
