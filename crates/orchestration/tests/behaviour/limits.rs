//! Limits of a run and the partial results that they keep.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use serde_json::json;
use switchboard_domain::{
    ChatModel, ChatRequest, FinishReason, ModelCapabilities, ModelError, ModelEvent, ModelId,
    ModelStream, PartStart, Principal, Usage, Warning, WarningKind,
};
use switchboard_orchestration::{
    Agent, Limits, Outcome, RunErrorKind, RunEventKind, RunOptions, ToolFailure,
    policy::limits::{Pricing, ToolLimits},
    tools::name_pattern::NamePattern,
};

use crate::support::{
    Answer, Scripted, Tools, agent_with, ask, calls, echoing, has, streamed, tokio_clock, tool,
};

fn limited(change: impl FnOnce(&mut Limits)) -> RunOptions {
    let mut options = RunOptions::default();
    change(&mut options.limits);
    options
}

fn tools() -> Arc<Tools> {
    echoing(&["do"])
}

fn one(id: &'static str) -> Answer {
    Answer::Calls("Working.", vec![(id, "srv__do", json!({"n": 1}))])
}

#[tokio::test]
async fn each_limit_ends_the_run_and_keeps_the_results() {
    type Change = fn(&mut Limits);
    // The answer is empty, so the run would request another one.
    let expensive = || vec![Answer::Costs("", usage(900, 200))];
    let cases: [(Change, Vec<Answer>, RunErrorKind, usize); 6] = [
        (
            |limits| limits.max_steps = 2,
            vec![one("a"), one("b")],
            RunErrorKind::StepLimit,
            2,
        ),
        (
            |limits| limits.max_tool_calls = Some(1),
            vec![one("a"), one("b")],
            RunErrorKind::ToolCallLimit,
            1,
        ),
        (
            |limits| limits.max_input_tokens = Some(800),
            expensive(),
            RunErrorKind::TokenLimit,
            0,
        ),
        (
            |limits| limits.max_output_tokens = Some(150),
            expensive(),
            RunErrorKind::TokenLimit,
            0,
        ),
        (
            |limits| limits.max_total_tokens = Some(1000),
            expensive(),
            RunErrorKind::TokenLimit,
            0,
        ),
        (
            |limits| limits.max_cost_usd = Some(0.001),
            expensive(),
            RunErrorKind::CostLimit,
            0,
        ),
    ];
    for (change, answers, kind, executed) in cases {
        let (answered, tools) = (answers.len(), tools());
        let model = Scripted::new(answers);
        let agent = agent_with(&model, &tools, limited(change))
            .with_model_prices(|_| Pricing::from_price_list(Some(3.0), Some(15.0), None, None));
        let (_, report) = ask(&agent, "go").await;
        assert_eq!(report.outcome, Outcome::Limited);
        assert_eq!(report.error.unwrap().kind, kind);
        assert_eq!((model.asked(), tools.called().len()), (answered, executed));
        assert_eq!(report.answer, if executed > 0 { "Working." } else { "" });
    }
}

#[tokio::test]
async fn an_unknown_price_ends_a_run_with_a_cost_limit() {
    let model = Scripted::new([]);
    let options = limited(|limits| limits.max_cost_usd = Some(0.001));
    let agent = Agent::new(model.clone()).with_options(options);
    let (_, report) = ask(&agent, "go").await;
    assert_eq!(report.error.unwrap().kind, RunErrorKind::CostLimit);
    assert_eq!(model.asked(), 0);
}

#[tokio::test]
async fn calls_beyond_the_limit_per_answer_are_refused() {
    let model = Scripted::calling(&[
        ("a", "srv__do", json!({"n": 1})),
        ("b", "srv__do", json!({"n": 2})),
        ("c", "srv__do", json!({"n": 3})),
    ]);
    let tools = tools();
    let (_, report) = ask(
        &agent_with(
            &model,
            &tools,
            limited(|limits| limits.max_calls_per_response = Some(2)),
        ),
        "go",
    )
    .await;
    assert_eq!(tools.called().len(), 2);
    let expected = Some(ToolFailure::LimitReached);
    assert_eq!(report.tool_calls[2].failure, expected);
    assert_eq!(report.outcome, Outcome::Completed);
}

fn tool_limits(max_calls: Option<u32>, max_calls_per_minute: Option<u32>) -> ToolLimits {
    ToolLimits {
        max_calls,
        max_calls_per_minute,
    }
}

#[tokio::test]
async fn a_limit_of_a_tool_stops_only_that_tool() {
    for limits in [tool_limits(Some(1), None), tool_limits(None, Some(1))] {
        let call = |id, tool| (id, tool, json!({"n": 1}));
        let model = Scripted::new([
            calls(&[call("a", "srv__do"), call("b", "srv__do")]),
            calls(&[call("c", "srv__do"), call("d", "srv__other")]),
            Answer::Says("ok"),
        ]);
        let tools = echoing(&["do", "other"]);
        let options = limited(|all| {
            all.tools.insert(NamePattern::new("*__do"), limits);
        });
        let (_, report) = ask(&agent_with(&model, &tools, options), "go").await;
        assert_eq!(tools.called(), ["srv__do", "srv__other"]);
        let failures = report.tool_calls.iter().map(|call| call.failure);
        let reached = Some(ToolFailure::LimitReached);
        assert_eq!(failures.collect::<Vec<_>>(), [None, reached, reached, None]);
        assert_eq!(report.outcome, Outcome::Completed);
    }
}

#[tokio::test]
async fn runs_of_one_user_reach_a_limit_per_minute_together() {
    let tools = tools();
    let answers = [
        one("a"),
        one("b"),
        Answer::Says("1"),
        one("c"),
        Answer::Says("2"),
    ];
    let model = Scripted::new(answers.into_iter().chain([one("d"), Answer::Says("3")]));
    let options = limited(|limits| limits.max_calls_per_minute = Some(2));
    let agent = agent_with(&model, &tools, options);
    let (_, first) = ask(&agent, "go").await;
    let (_, second) = ask(&agent, "go").await;
    assert_eq!(first.tool_calls[1].failure, None);
    let expected = Some(ToolFailure::LimitReached);
    assert_eq!(second.tool_calls[0].failure, expected);
    let another = Principal {
        user: "another".to_owned(),
        ..Principal::default()
    };
    let other = agent.with_principal(another, None);
    let (_, third) = ask(&other, "go").await;
    assert_eq!(third.tool_calls[0].failure, None);
    assert_eq!(tools.called().len(), 3);
}

pub(crate) fn usage(input: u64, output: u64) -> Usage {
    Usage {
        input_tokens: Some(input),
        output_tokens: Some(output),
        ..Usage::default()
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_limit_ends_running_calls() {
    let model = Scripted::new([one("a")]);
    let tools = Tools::new().with_async(tool("do"), |_| std::future::pending());
    let agent = agent_with(
        &model,
        &Arc::new(tools),
        limited(|limits| {
            limits.max_wall_time = Some(Duration::from_secs(30));
        }),
    )
    .with_clock(tokio_clock());
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
async fn a_long_conversation_is_trimmed_by_whole_groups() {
    let words = "word ".repeat(400);
    let long = Tools::new().with(tool("do"), move |_| {
        Ok(switchboard_domain::ToolOutput::text(words.clone()))
    });
    let mut answers: Vec<_> = ["a", "b", "c", "d", "e", "f"].map(one).to_vec();
    answers.push(Answer::Says("ok"));
    let model = Scripted::new(answers);
    let mut options = RunOptions::default();
    options.history.max_tokens = Some(1500);
    let (events, report) = ask(
        &agent_with(&model, &Arc::new(long), options),
        "The question.",
    )
    .await;
    assert_eq!(report.answer, "ok");
    assert!(has(&events, |kind| matches!(
        kind,
        RunEventKind::HistoryTrimmed { .. }
    )));
    for request in model.requests.lock().unwrap().iter() {
        crate::support::assert_whole(&request.messages);
        assert_eq!(request.messages[0].text(), "The question.");
    }
}

/// Creates the event with this number in an endless response.
pub(crate) type Repeats = fn(u32) -> ModelEvent;

/// A model that repeats an event until a given number is reached. Its stream holds a clone of
/// `said`, the number of repetitions, until the stream is dropped.
pub(crate) struct Endless {
    id: ModelId,
    capabilities: ModelCapabilities,
    begins: Vec<ModelEvent>,
    repeats: Repeats,
    repetitions: u32,
    pub(crate) said: Arc<AtomicUsize>,
}

impl Endless {
    pub(crate) fn new(begins: Vec<ModelEvent>, repeats: Repeats) -> Self {
        Self {
            id: ModelId::new("test", "endless"),
            capabilities: ModelCapabilities::default(),
            begins,
            repeats,
            repetitions: u32::MAX,
            said: Arc::default(),
        }
    }

    /// Returns a model whose response has this number of words.
    pub(crate) fn talking(words: u32) -> Self {
        let word = |_| ModelEvent::TextDelta {
            index: 0,
            text: "word ".into(),
        };
        Self {
            repetitions: words,
            ..Self::new(begun(PartStart::Text), word)
        }
    }
}

#[async_trait]
impl ChatModel for Endless {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn capabilities(&self) -> &ModelCapabilities {
        &self.capabilities
    }

    async fn stream(&self, _: &ChatRequest) -> Result<ModelStream, ModelError> {
        let (repeats, said) = (self.repeats, Arc::clone(&self.said));
        let repeated = (1..=self.repetitions).map(move |index| {
            said.fetch_add(1, Ordering::Relaxed);
            repeats(index)
        });
        let end = ModelEvent::Finished {
            reason: FinishReason::Stop,
            raw: None,
        };
        let events = self.begins.clone().into_iter().chain(repeated).chain([end]);
        Ok(Box::pin(stream::iter(events).map(Ok)))
    }
}

pub(crate) fn begun(part: PartStart) -> Vec<ModelEvent> {
    vec![ModelEvent::PartStarted { index: 0, part }]
}

#[tokio::test]
async fn an_endless_answer_ends_the_run_and_keeps_the_received_part() {
    let text = |_| ModelEvent::TextDelta {
        index: 0,
        text: "0123456789".repeat(10),
    };
    let model = Arc::new(Endless::new(begun(PartStart::Text), text));
    let options = limited(|limits| limits.max_answer_bytes = Some(100_000));
    let agent = Agent::new(model.clone()).with_options(options);
    let (events, report) = ask(&agent, "go").await;
    assert_eq!(report.outcome, Outcome::Limited);
    assert_eq!(report.finish_reason, Some(FinishReason::Length));
    let error = report.error.unwrap();
    assert_eq!(error.kind, RunErrorKind::OutputLimit);
    assert_eq!(
        error.message,
        "one answer of the model is longer than 100000 bytes; raise the limit with \
         `limits.max_answer_bytes`"
    );
    // The stored answer equals the emitted text.
    let shown = streamed(&events);
    assert_eq!(report.answer, shown);
    assert!((99_000..=100_000).contains(&shown.len()), "{}", shown.len());
    assert_eq!(Arc::strong_count(&model.said), 1, "the stream is dropped");
}

#[tokio::test]
async fn endless_events_of_every_kind_end_the_run() {
    let tool = PartStart::ToolUse {
        id: "a".to_owned(),
        name: "srv__do".to_owned(),
    };
    let cases: [(Vec<ModelEvent>, Repeats); 6] = [
        (begun(PartStart::Reasoning), |_| {
            ModelEvent::ReasoningDelta {
                index: 0,
                text: "hm ".repeat(30),
            }
        }),
        (begun(tool), |_| ModelEvent::ToolInputDelta {
            index: 0,
            json: "[".repeat(100),
        }),
        // Events without content.
        (begun(PartStart::Text), |_| ModelEvent::TextDelta {
            index: 0,
            text: String::new(),
        }),
        (Vec::new(), |index| ModelEvent::PartStarted {
            index,
            part: PartStart::Text,
        }),
        (Vec::new(), |_| ModelEvent::Warning {
            warning: Warning::new(WarningKind::UnknownWireValue, "odd"),
        }),
        (Vec::new(), |_| ModelEvent::Usage {
            usage: Box::new(usage(1, 1)),
        }),
    ];
    for (number, (begins, repeats)) in cases.into_iter().enumerate() {
        let model = Arc::new(Endless::new(begins, repeats));
        let options = limited(|limits| limits.max_answer_bytes = Some(100_000));
        let (events, report) = ask(&agent_with(&model, &tools(), options), "go").await;
        assert_eq!(report.outcome, Outcome::Limited, "case {number}");
        let error = report.error.unwrap();
        assert_eq!(error.kind, RunErrorKind::OutputLimit, "case {number}");
        assert!(events.len() < 4000, "case {number}: {}", events.len());
        assert!(report.tool_calls.is_empty(), "case {number}");
        assert_eq!(Arc::strong_count(&model.said), 1, "case {number}");
    }
}

#[tokio::test]
async fn an_answer_is_limited_by_default() {
    let text = |_| ModelEvent::TextDelta {
        index: 0,
        text: "x".repeat(1 << 20),
    };
    let agent = Agent::new(Arc::new(Endless::new(begun(PartStart::Text), text)));
    let (_, report) = ask(&agent, "go").await;
    assert_eq!(report.error.unwrap().kind, RunErrorKind::OutputLimit);
    assert_eq!(report.answer.len(), 15 << 20);
}
