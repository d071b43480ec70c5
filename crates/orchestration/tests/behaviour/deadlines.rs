//! Slow operations: calls that exceed the time limit, and tools that appear after their examples
//! were omitted.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use serde_json::json;
use switchboard_domain::{
    JsonObject, Message, ModelCapabilities, ModelErrorKind, Part, Role, ToolCall, ToolCallError,
    ToolCatalog, ToolDefinition, ToolHost, ToolHostChanges, ToolOutput, ToolResult, ToolUse,
};
use switchboard_orchestration::{
    Agent, Outcome, Run, RunErrorKind, RunEventKind, RunOptions, ToolFailure,
    persistence::checkpoint::{Checkpoint, CheckpointError, CheckpointStore},
    recipe::Recipe,
};

use crate::support::{
    Answer, Scripted, Shelf, Tools, agent_with, ask, assert_whole, calls, echo, echoing, failures,
    played, tokio_clock, tool,
};

const HOUR: Duration = Duration::from_hours(1);

/// Returns options with a time limit of 30 seconds.
fn timed() -> RunOptions {
    let mut options = RunOptions::default();
    options.limits.max_wall_time = Some(Duration::from_secs(30));
    options
}

fn one_after_the_other() -> ToolDefinition {
    let mut one = tool("do");
    one.sequential = true;
    one
}

fn three() -> Answer {
    calls(&[
        ("a", "srv__do", json!({"n": 1})),
        ("b", "srv__do", json!({"n": 2})),
        ("c", "srv__do", json!({"n": 3})),
    ])
}

/// A store that takes a minute for each result.
struct Slow;

#[async_trait]
impl CheckpointStore for Slow {
    async fn save_checkpoint(&self, _: &Run, point: Checkpoint) -> Result<(), CheckpointError> {
        if point == Checkpoint::ToolAnswered {
            // sleep: the clock is paused
            tokio::time::sleep(Duration::from_mins(1)).await;
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn no_call_starts_if_the_store_used_up_the_time() {
    let tools = Arc::new(Tools::new().with(one_after_the_other(), echo));
    let agent = agent_with(&Scripted::new([three()]), &tools, timed())
        .with_clock(tokio_clock())
        .with_checkpoints(Arc::new(Slow));
    let (_, report) = ask(&agent, "go").await;
    assert_eq!(report.outcome, Outcome::Limited);
    let error = report.error.as_ref().unwrap();
    assert_eq!(error.kind, RunErrorKind::TimeLimit);
    assert_eq!(tools.called().len(), 1);
    let failures = failures(&report);
    // The finished call keeps its result. The others did not start.
    assert_eq!(failures[0], None);
    assert!(
        failures[1..]
            .iter()
            .all(|it| *it == Some(ToolFailure::Cancelled)),
        "{failures:?}"
    );
}

/// Runs the agent, and waits for an hour after each event that `at` accepts.
async fn after_an_hour(agent: &Agent, at: impl Fn(&RunEventKind) -> bool) -> Run {
    let mut run = agent.ask("go");
    while let Some(event) = run.next().await {
        if at(&event.kind) {
            // sleep: the clock is paused
            tokio::time::sleep(HOUR).await;
        }
    }
    run.into_run().unwrap()
}

#[tokio::test(start_paused = true)]
async fn no_call_starts_if_the_reader_used_up_the_time() {
    let tools = Arc::new(Tools::new().with(one_after_the_other(), echo));
    let agent = agent_with(&Scripted::new([three()]), &tools, timed()).with_clock(tokio_clock());
    let is_there = |kind: &RunEventKind| matches!(kind, RunEventKind::ModelCallFinished { .. });
    let run = after_an_hour(&agent, is_there).await;
    assert_eq!(run.outcome(), Some(Outcome::Limited));
    assert_eq!(tools.called(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn no_model_is_called_if_the_reader_used_up_the_time() {
    let model = Scripted::new([]);
    let agent = Agent::new(model.clone())
        .with_clock(tokio_clock())
        .with_options(timed());
    let is_there = |kind: &RunEventKind| matches!(kind, RunEventKind::ModelCallStarted { .. });
    let run = after_an_hour(&agent, is_there).await;
    assert_eq!(run.outcome(), Some(Outcome::Limited));
    assert_eq!(model.asked(), 0);
}

/// A host whose tool list never arrives.
struct Silent;

#[async_trait]
impl ToolHost for Silent {
    async fn list_tools(&self) -> ToolCatalog {
        pending().await
    }

    async fn call_tool(&self, _: ToolCall) -> Result<ToolOutput, ToolCallError> {
        panic!("it has none")
    }

    fn watch_changes(&self) -> ToolHostChanges {
        Box::pin(stream::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_limit_of_a_resumed_run_ends_the_wait_for_its_tools() {
    let kept = Shelf::keeping(Checkpoint::ModelAnswered);
    let agent = Agent::new(Scripted::new([three()]))
        .with_clock(tokio_clock())
        .with_options(timed());
    let first = agent
        .clone()
        .with_tools(echoing(&["do"]))
        .with_checkpoints(kept.clone());
    let mut run = first.ask("go");
    while let Some(event) = run.next().await {
        if matches!(event.kind, RunEventKind::ToolPlanned { .. }) {
            break;
        }
    }
    drop(run);
    let agent = agent.with_tools(Arc::new(Silent));
    let ended = tokio::time::timeout(HOUR, agent.resume_run(kept.run()).run_to_end()).await;
    let run = ended.expect("it ends after half a minute");
    assert_eq!(run.outcome(), Some(Outcome::Limited));
    let report = run.build_report().unwrap();
    assert_eq!(report.error.unwrap().kind, RunErrorKind::TimeLimit);
    assert_eq!(report.tool_calls.len(), 3);
}

/// A host whose server is ready only when the tools are listed for the second time.
struct Connecting(Tools, AtomicU32);

#[async_trait]
impl ToolHost for Connecting {
    async fn list_tools(&self) -> ToolCatalog {
        if self.1.fetch_add(1, Ordering::Relaxed) == 0 {
            return ToolCatalog::default();
        }
        self.0.list_tools().await
    }

    async fn call_tool(&self, call: ToolCall) -> Result<ToolOutput, ToolCallError> {
        self.0.call_tool(call).await
    }

    fn watch_changes(&self) -> ToolHostChanges {
        self.0.watch_changes()
    }
}

fn turn(n: usize) -> Vec<Message> {
    let step = |at: &str| {
        let id = format!("old{n}{at}");
        let input: JsonObject = json!({"n": n}).as_object().cloned().unwrap();
        let call = ToolUse::new(&id, "srv__do", input.into());
        [
            Message::new(Role::Assistant, [Part::ToolUse(call)]),
            Message::from_tool_results([ToolResult::text(&id, "srv__do", "word ".repeat(100))]),
        ]
    };
    let mut turn = vec![Message::user(format!("question {n}"))];
    turn.extend(step("a"));
    turn.extend(step("b"));
    turn.push(Message::assistant(format!("answer {n}")));
    turn
}

/// Omitted messages are stored by index. An example that is inserted before them later would shift
/// the indices.
#[tokio::test]
async fn late_examples_leave_the_history_consistent() {
    let recipe = json!({"name": "r", "examples": [{
        "user": "example question",
        "calls": [{"tool": "srv__do", "input": {"n": 1}, "result": "one"}],
        "answer": "example answer",
    }]});
    let recipe = Arc::new(Recipe::from_value(&recipe).unwrap());
    // Limits that the conversation exceeds and just meets.
    for max_tokens in [900, 1_640] {
        let mut options = RunOptions::default();
        options.history.max_tokens = Some(max_tokens);
        let away = Answer::Fails(ModelErrorKind::Interrupted, "away");
        let second = Scripted::named("second", ModelCapabilities::default(), [Answer::Says("ok")]);
        let tools = Tools::new().with(tool("do"), echo);
        let agent = agent_with(
            &Scripted::new([away]),
            &Arc::new(Connecting(tools, AtomicU32::new(0))),
            options,
        )
        .with_fallback(second.clone())
        .with_recipe(Arc::clone(&recipe));
        let mut messages: Vec<Message> = (0..5).flat_map(turn).collect();
        messages.push(Message::user("and now?"));
        let messages = messages.into_iter().map(Arc::new).collect();
        let (_, run) = played(agent.run(messages)).await;
        assert_eq!(run.outcome(), Some(Outcome::Completed));
        let sent = second.request(0).messages;
        assert_whole(&sent);
        let first = sent.iter().filter(|it| it.text() == "question 0");
        assert_eq!(first.count(), 1, "{max_tokens}");
    }
}
