//! What ends a run early, and what it keeps.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use switchboard_domain::Usage;
use switchboard_orchestration::{
    Agent, Limits, Outcome, RunErrorKind, RunEventKind, RunOptions, ToolFailure, limits::Pricing,
};

use crate::support::{Answer, Scripted, Tools, ask, calls, echo, tool};

fn limited(change: impl FnOnce(&mut Limits)) -> RunOptions {
    let mut options = RunOptions::default();
    change(&mut options.limits);
    options
}

fn tools() -> Arc<Tools> {
    Arc::new(Tools::new().with(tool("do"), echo))
}

fn one(id: &'static str) -> Answer {
    Answer::Calls("Working.", vec![(id, "srv__do", json!({"n": 1}))])
}

#[tokio::test]
async fn steps_end_the_run_and_keep_the_work() {
    let model = Scripted::new([one("a"), one("b")]);
    let agent = Agent::new(model)
        .with_tools(tools())
        .with_options(limited(|limits| limits.max_steps = 2));
    let (_, report) = ask(&agent, "go").await;
    assert_eq!(report.outcome, Outcome::Limited);
    assert_eq!(report.error.unwrap().kind, RunErrorKind::StepLimit);
    assert_eq!(report.tool_calls.len(), 2);
    assert_eq!(report.answer, "Working.");
}

#[tokio::test]
async fn calls_per_response_are_refused_one_by_one() {
    let model = Scripted::new([
        calls(&[
            ("a", "srv__do", json!({"n": 1})),
            ("b", "srv__do", json!({"n": 2})),
            ("c", "srv__do", json!({"n": 3})),
        ]),
        Answer::Says("ok"),
    ]);
    let tools = tools();
    let agent = Agent::new(model)
        .with_tools(tools.clone())
        .with_options(limited(|limits| limits.max_calls_per_response = Some(2)));
    let (_, report) = ask(&agent, "go").await;
    assert_eq!(tools.called().len(), 2);
    assert_eq!(
        report.tool_calls[2].failure,
        Some(ToolFailure::LimitReached)
    );
    assert_eq!(report.outcome, Outcome::Completed);
}

#[tokio::test]
async fn calls_of_a_run_end_it() {
    let model = Scripted::new([one("a"), one("b")]);
    let tools = tools();
    let agent = Agent::new(model)
        .with_tools(tools.clone())
        .with_options(limited(|limits| limits.max_tool_calls = Some(1)));
    let (_, report) = ask(&agent, "go").await;
    assert_eq!(tools.called().len(), 1);
    assert_eq!(report.outcome, Outcome::Limited);
    assert_eq!(report.error.unwrap().kind, RunErrorKind::ToolCallLimit);
}

#[tokio::test]
async fn calls_per_minute_are_counted_by_the_clock() {
    let clock = Arc::new(std::sync::Mutex::new(Timestamp::UNIX_EPOCH));
    let model = Scripted::new([one("a"), one("b"), one("c"), Answer::Says("ok")]);
    let later = clock.clone();
    let tools = Arc::new(Tools::new().with(tool("do"), move |call| {
        // Each call takes forty seconds.
        let mut now = later.lock().unwrap();
        *now += SignedDuration::from_secs(40);
        echo(call)
    }));
    let agent = Agent::new(model)
        .with_tools(tools.clone())
        .with_clock(Arc::new(move || *clock.lock().unwrap()))
        .with_options(limited(|limits| limits.max_calls_per_minute = Some(1)));
    let (_, report) = ask(&agent, "go").await;
    let failures: Vec<_> = report.tool_calls.iter().map(|call| call.failure).collect();
    // The second comes after forty seconds and the third no sooner, for the refused one took none.
    assert_eq!(
        failures,
        [
            None,
            Some(ToolFailure::LimitReached),
            Some(ToolFailure::LimitReached)
        ]
    );
    assert_eq!(tools.called().len(), 1);
}

fn usage(input: u64, output: u64) -> Usage {
    Usage {
        input_tokens: Some(input),
        output_tokens: Some(output),
        ..Usage::default()
    }
}

/// A first answer that costs so much and pauses, so that a second call would follow.
fn expensive() -> Vec<Answer> {
    vec![Answer::Costs("", usage(900, 200))]
}

#[tokio::test]
async fn tokens_are_checked_before_each_model_call() {
    type Change = fn(&mut Limits);
    let changes: [Change; 3] = [
        |limits| limits.max_input_tokens = Some(800),
        |limits| limits.max_output_tokens = Some(150),
        |limits| limits.max_total_tokens = Some(1000),
    ];
    for change in changes {
        // An empty answer would be asked for again.
        let model = Scripted::new(expensive());
        let agent = Agent::new(model.clone()).with_options(limited(change));
        let (_, report) = ask(&agent, "go").await;
        assert_eq!(report.outcome, Outcome::Limited);
        assert_eq!(report.error.unwrap().kind, RunErrorKind::TokenLimit);
        assert_eq!(model.asked(), 1);
    }
}

#[tokio::test]
async fn cost_is_limited_and_an_unknown_price_is_no_free_pass() {
    let options = || limited(|limits| limits.max_cost_usd = Some(0.001));
    let model = Scripted::new(expensive());
    let agent = Agent::new(model)
        .with_options(options())
        .with_prices(|_| Pricing::from_list(Some(3.0), Some(15.0), None, None));
    let (_, report) = ask(&agent, "go").await;
    assert_eq!(report.error.unwrap().kind, RunErrorKind::CostLimit);

    let model = Scripted::new([]);
    let agent = Agent::new(model.clone()).with_options(options());
    let (_, report) = ask(&agent, "go").await;
    assert_eq!(report.error.unwrap().kind, RunErrorKind::CostLimit);
    assert_eq!(model.asked(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_run_ends_what_is_under_way() {
    let model = Scripted::new([one("a")]);
    let tools = Tools::new().with_async(tool("do"), |_| std::future::pending());
    let began = tokio::time::Instant::now();
    let agent = Agent::new(model)
        .with_tools(Arc::new(tools))
        .with_clock(Arc::new(move || {
            Timestamp::UNIX_EPOCH + SignedDuration::try_from(began.elapsed()).unwrap()
        }))
        .with_options(limited(|limits| {
            limits.max_wall_time = Some(Duration::from_secs(30));
        }));
    let (events, report) = ask(&agent, "go").await;
    assert_eq!(report.outcome, Outcome::Limited);
    assert_eq!(report.error.unwrap().kind, RunErrorKind::TimeLimit);
    assert_eq!(report.tool_calls[0].failure, Some(ToolFailure::Cancelled));
    assert_eq!(report.tool_calls[0].duration_ms, 30_000);
    assert!(matches!(
        events.last().unwrap().kind,
        RunEventKind::RunFinished { .. }
    ));
}

#[tokio::test]
async fn a_long_conversation_is_trimmed_by_whole_groups_and_told() {
    let words = "word ".repeat(400);
    let long = Tools::new().with(tool("do"), move |_| {
        Ok(switchboard_domain::ToolOutput::text(words.clone()))
    });
    let mut answers: Vec<_> = ["a", "b", "c", "d", "e", "f"].map(one).to_vec();
    answers.push(Answer::Says("ok"));
    let model = Scripted::new(answers);
    let mut options = RunOptions::default();
    options.history.max_tokens = Some(1500);
    let agent = Agent::new(model.clone())
        .with_tools(Arc::new(long))
        .with_options(options);
    let (events, report) = ask(&agent, "The question.").await;
    assert_eq!(report.answer, "ok");
    assert!(
        events
            .iter()
            .any(|event| matches!(event.kind, RunEventKind::HistoryTrimmed { .. }))
    );
    for request in model.requests.lock().unwrap().iter() {
        crate::support::assert_whole(&request.messages);
        assert_eq!(request.messages[0].text(), "The question.");
    }
}
