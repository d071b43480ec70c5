//! Durable runs whose process ends at any write, once or twice. Other processes resume or abandon
//! them.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use futures_util::StreamExt;
use serde_json::{Value, json};
use switchboard_domain::{
    ApprovalDecision, ApprovalRequest, ApprovalScope, Approver, ChatModel, ChatRequest, Message,
    ModelCapabilities, ModelError, ModelId, ModelStream, Principal, Role, RunState,
    SessionStoreError,
};
use switchboard_orchestration::{
    Agent, ApprovalPolicy, RunEvent, RunEventKind, RunOptions, ToolFailure,
    persistence::{DurableRunError, DurableRuns, PersistedEvent, PersistedRun, PersistedRunEnd},
    strategy::{GatherFormat, Strategy, formatter},
};

use crate::{
    memory_store::{Disk, Process, Wall, session_id},
    support::{Answer, Tools, answered, assert_whole, calls, echo, reading, tool},
};

const QUESTION: &str = "What now?";
/// The messages of the session before the run.
const BEFORE: [&str; 2] = ["hello", "hi"];

/// A model that derives its next response from the request, so it also works in a restarted
/// process.
pub(crate) struct Knowing {
    id: ModelId,
    capabilities: ModelCapabilities,
    answers: Vec<Answer>,
    form: Value,
    pub(crate) asked: AtomicUsize,
}

impl Knowing {
    fn new(answers: Vec<Answer>) -> Arc<Self> {
        Arc::new(Self {
            id: ModelId::new("test", "knowing"),
            capabilities: ModelCapabilities::default(),
            answers,
            form: json!({"conversation": [{"type": "text", "content": "All is done."}]}),
            asked: AtomicUsize::new(0),
        })
    }
}

#[async_trait]
impl ChatModel for Knowing {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn capabilities(&self) -> &ModelCapabilities {
        &self.capabilities
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ModelStream, ModelError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let formats = request
            .tools
            .iter()
            .any(|tool| tool.name == formatter::TOOL);
        let answer = if formats {
            calls(&[("form", formatter::TOOL, self.form.clone())])
        } else {
            let mut since = request.messages.iter().rev();
            let since = since.by_ref().take_while(|it| it.text() != QUESTION);
            let said = since.filter(|it| it.role == Role::Assistant).count();
            self.answers[said].clone()
        };
        let events = answered(answer)?;
        // The stream is pending between its events, so that other events can come in between.
        let events = futures_util::stream::iter(events).then(|event| async {
            tokio::task::yield_now().await;
            event
        });
        Ok(Box::pin(events))
    }
}

/// An approver that allows every call. It may postpone its first decision.
struct Person {
    sleeps_on_it: bool,
}

#[async_trait]
impl Approver for Person {
    async fn decide(&self, request: &ApprovalRequest) -> ApprovalDecision {
        if self.sleeps_on_it {
            return ApprovalDecision::Later;
        }
        match request.tool_use.id.as_str() {
            "no" => ApprovalDecision::Deny {
                reason: None,
                scope: ApprovalScope::Once,
            },
            _ => ApprovalDecision::Allow {
                input: None,
                scope: ApprovalScope::Once,
            },
        }
    }
}

/// The properties of a run.
#[derive(Debug, Clone, Copy)]
struct Scenario {
    gathers: bool,
    /// Whether the person decides only in another process.
    waits: bool,
}

impl Scenario {
    fn answers() -> Vec<Answer> {
        let n = |n: u32| json!({"n": n});
        let together = vec![
            ("a", "srv__look", n(1)),
            ("b", "srv__write", n(2)),
            ("c", "srv__look", n(3)),
            ("d", "srv__write", n(4)),
            ("bad", "srv__write", json!({"n": "x"})),
            ("gone", "srv__nothing", n(5)),
        ];
        let then = vec![("e", "srv__solo", n(6)), ("no", "srv__write", n(7))];
        vec![
            Answer::Calls("NEED MORE DATA: let me see.", together),
            Answer::Calls("NEED MORE DATA: and more.", then),
            Answer::Says("All is done."),
        ]
    }

    fn agent(self, is_first: bool) -> (Agent, Arc<Tools>, Arc<Knowing>) {
        let slowly = |name: &str, rounds: u32| {
            let definition = if name == "look" {
                reading(name)
            } else {
                tool(name)
            };
            (definition, rounds)
        };
        let mut tools = Tools::new();
        for (definition, rounds) in [slowly("look", 3), slowly("write", 1)] {
            tools = tools.with_async(definition, move |call| async move {
                for _ in 0..rounds {
                    tokio::task::yield_now().await;
                }
                echo(call)
            });
        }
        let mut solo = tool("solo");
        solo.sequential = true;
        let tools = Arc::new(tools.with(solo, echo));
        let model = Knowing::new(Self::answers());
        let mut options = RunOptions {
            approval: ApprovalPolicy::Ask.into(),
            ..RunOptions::default()
        };
        if self.gathers {
            options.strategy = Strategy::GatherFormat(GatherFormat::default());
        }
        let sleeps_on_it = self.waits && is_first;
        let agent = Agent::new(model.clone())
            .with_tools(tools.clone())
            .with_instructions("Be kind.")
            .with_approver(Arc::new(Person { sleeps_on_it }))
            .with_options(options);
        (agent, tools, model)
    }
}

pub(crate) fn durable_runs(process: &Process) -> DurableRuns {
    let process = Arc::new(process.clone());
    DurableRuns::new(process.clone(), process, Principal::default())
}

/// The observations in one process.
#[derive(Default)]
struct Life {
    seen: Vec<PersistedEvent>,
    end: Option<PersistedRunEnd>,
    called: Vec<(String, Value)>,
    asked: usize,
}

/// What a process does with the run.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Does {
    Begins,
    GoesOn,
    Abandons,
}

/// Runs a process until its run ends or its last allowed store operation is used.
async fn live(disk: &Disk, process: &Process, scenario: Scenario, does: Does) -> Life {
    let (agent, tools, model) = scenario.agent(does == Does::Begins);
    let durable_runs = durable_runs(process);
    let mut life = Life::default();
    let begun = async {
        if does == Does::Begins {
            let question = vec![Arc::new(Message::user(QUESTION))];
            return durable_runs
                .begin_run(&agent, &session_id(), question, None)
                .await;
        }
        let taken = durable_runs.acquire_run(&disk.record().id).await?;
        Ok(durable_runs.resume_run(&agent, taken))
    };
    if does == Does::Abandons {
        let id = disk.record().id;
        tokio::select! {
            biased;
            () = process.stuck() => {}
            abandoned = durable_runs.abandon_run(&id) => life.seen = over_already(abandoned),
        }
    } else {
        let kept: Option<PersistedRun> = tokio::select! {
            biased;
            () = process.stuck() => None,
            begun = begun => match begun {
                Ok(kept) => Some(kept),
                Err(error) => {
                    over_already::<()>(Err(error));
                    None
                }
            },
        };
        if let Some(mut kept) = kept {
            loop {
                tokio::select! {
                    biased;
                    () = process.stuck() => break,
                    next = kept.next() => match next {
                        Some(shown) => {
                            assert!(disk.record().last_event >= shown.event.seq);
                            life.seen.push(shown);
                        }
                        None => break,
                    },
                }
            }
            life.end = Some(kept).and_then(|kept| {
                let is_over = kept.run_end().is_some();
                is_over.then(|| ended(kept))
            });
        }
    }
    life.called.clone_from(&tools.called.lock().unwrap());
    life.asked = model.asked.load(Ordering::Relaxed);
    life
}

/// Returns the default value if the store reports that the run is already over: an earlier process
/// ended before it got the confirmation.
fn over_already<T: Default>(done: Result<T, DurableRunError>) -> T {
    match done {
        Ok(done) => done,
        Err(DurableRunError::Store(SessionStoreError::RunConflict { .. })) => T::default(),
        Err(error) => panic!("{error:?}"),
    }
}

fn ended(kept: PersistedRun) -> PersistedRunEnd {
    use futures_util::FutureExt;
    kept.run_to_end().now_or_never().expect("it is over")
}

/// Returns the tool names and inputs of the finished calls.
fn finished(events: &[RunEvent]) -> HashSet<(String, String)> {
    let mut planned = HashMap::new();
    let mut finished = HashSet::new();
    for event in events {
        match &event.kind {
            RunEventKind::ToolPlanned {
                id, tool, input, ..
            } => {
                planned.insert(id.clone(), (format!("srv__{tool}"), input.to_string()));
            }
            RunEventKind::ToolFinished { id, .. } => {
                finished.insert(planned[id].clone());
            }
            _ => {}
        }
    }
    finished
}

fn answered_steps(events: &[RunEvent]) -> usize {
    let answered = |event: &&RunEvent| matches!(event.kind, RunEventKind::ModelCallFinished { .. });
    events.iter().filter(answered).count()
}

/// Asserts the consistency of all emitted events.
fn assert_log(events: &[RunEvent]) {
    let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    let mut planned = HashSet::new();
    let mut ended = HashSet::new();
    let mut steps = HashSet::new();
    for (at, event) in events.iter().enumerate() {
        let is_last = at + 1 == events.len();
        match &event.kind {
            RunEventKind::ToolPlanned { id, .. } => {
                planned.insert(id);
                assert!(!ended.contains(&id), "{id} is planned after its result");
            }
            RunEventKind::ToolStarted { id } => {
                assert!(planned.contains(&id));
                assert!(!ended.contains(&id), "{id} starts after its result");
            }
            RunEventKind::ToolFinished { id, .. } => {
                assert!(planned.contains(&id), "{id} was never planned");
                assert!(ended.insert(id), "{id} ends twice");
            }
            RunEventKind::ModelCallFinished { step, .. } => {
                assert!(steps.insert(step), "step {step} ends twice");
            }
            RunEventKind::RunFinished { .. } => assert!(is_last),
            _ => assert!(!is_last, "{event:?}"),
        }
    }
    assert_eq!(planned, ended);
}

/// Asserts the consistency of the stored data.
fn assert_kept(
    scenario: Scenario,
    disk: &Disk,
    seen: &[PersistedEvent],
    called: &[(String, Value)],
    does: Does,
) {
    let events = disk.events();
    assert_log(&events);
    // The emitted events are the stored events.
    for kept in seen {
        let stored = &events[usize::try_from(kept.event.seq).unwrap() - 1];
        assert_eq!(stored, &*kept.event);
        assert_eq!(
            serde_json::from_str::<RunEvent>(&kept.json).unwrap(),
            *stored
        );
    }
    let messages = disk.messages();
    assert_whole(&messages);
    assert!(messages.iter().all(|it| it.role != Role::System));
    assert!(!disk.has_state(), "a finished run needs no state");
    let mut harmful = called.iter().filter(|(name, _)| name != "srv__look");
    let mut once = HashSet::new();
    assert!(harmful.all(|(name, input)| once.insert((name, input.to_string()))));
    if does != Does::Abandons {
        assert_eq!(disk.record().outcome.as_deref(), Some("completed"));
        let last = messages.last().unwrap();
        assert_eq!(
            (last.role, last.text().as_str()),
            (Role::Assistant, "All is done.")
        );
        // Two assistant messages with their tool results, one answer, and one formatted answer.
        let said = if scenario.gathers { 6 } else { 5 };
        assert_eq!(messages.len(), BEFORE.len() + 1 + said);
        let Some(RunEventKind::RunFinished { report }) = events.last().map(|event| &event.kind)
        else {
            panic!("{events:#?}");
        };
        assert_eq!(report.tool_calls.len(), 8);
        for call in &report.tool_calls {
            let expected: &[_] = match (call.id.as_str(), call.tool.as_str()) {
                ("bad", _) => &[Some(ToolFailure::InvalidInput)],
                ("gone", _) => &[Some(ToolFailure::UnknownTool)],
                ("no", _) => &[Some(ToolFailure::Denied)],
                (_, "look") => &[None],
                _ => &[None, Some(ToolFailure::Interrupted)],
            };
            assert!(expected.contains(&call.failure), "{call:?}");
        }
    }
}

async fn is_kept(scenario: Scenario, walls: &[(usize, Wall)], does: Does) -> bool {
    let [asked, said] = BEFORE;
    let disk = Disk::with_session([Message::user(asked), Message::assistant(said)]);
    let mut seen: Vec<PersistedEvent> = Vec::new();
    let mut called: Vec<(String, Value)> = Vec::new();
    let mut walls = walls.iter().copied();
    let mut wall = walls.next();
    let mut now = Does::Begins;
    let mut was_stuck = false;
    let mut ends = 0;
    loop {
        let at_first = disk.events();
        let (was_finished, answered) = (finished(&at_first), answered_steps(&at_first));
        let process = disk.process(wall);
        let life = Box::pin(live(&disk, &process, scenario, now)).await;
        wall = process.left();
        if process.is_stuck() {
            was_stuck = true;
            wall = walls.next();
        }
        process.ends();
        for (name, input) in &life.called {
            let call = (name.clone(), input.to_string());
            assert!(!was_finished.contains(&call), "{call:?} runs again");
        }
        let steps = if scenario.gathers { 4 } else { 3 };
        assert!(
            life.asked + answered <= steps,
            "an answer is asked for again"
        );
        called.extend(life.called);
        seen.extend(life.seen);
        let is_seen_over = seen
            .last()
            .is_some_and(|last| matches!(last.event.kind, RunEventKind::RunFinished { .. }));
        if is_seen_over {
            let last = disk.messages().pop().unwrap();
            let is_there = does == Does::Abandons || last.text() == "All is done.";
            assert!(is_there, "its messages are in the session: {last:?}");
            assert_eq!(disk.record().state, RunState::Finished);
        }
        match &life.end {
            Some(PersistedRunEnd::Failed(error)) => panic!("{error:?}"),
            Some(PersistedRunEnd::Waiting(waiting)) => {
                assert!(!waiting.is_empty());
                assert_eq!(disk.record().state, RunState::Waiting);
            }
            _ => {}
        }
        let records = disk.records();
        match records.first().map(|record| record.state) {
            // The run was never stored.
            None => {
                assert_eq!(disk.messages().len(), BEFORE.len());
                return was_stuck;
            }
            Some(RunState::Finished) => break,
            Some(_) => {}
        }
        ends += 1;
        assert!(ends < 10, "it never ends");
        now = match does {
            Does::Begins => Does::GoesOn,
            does => does,
        };
    }
    assert_kept(scenario, &disk, &seen, &called, does);
    was_stuck
}

fn scenarios() -> impl Iterator<Item = Scenario> {
    [(false, false), (false, true), (true, false), (true, true)]
        .into_iter()
        .map(|(gathers, waits)| Scenario { gathers, waits })
}

#[tokio::test]
async fn after_a_crash_at_any_write_a_durable_run_resumes_without_repeated_actions() {
    for scenario in scenarios() {
        for wall in [Wall::Before, Wall::Behind] {
            let mut at = 0;
            while is_kept(scenario, &[(at, wall)], Does::GoesOn).await {
                at += 1;
            }
            assert!(at > 20, "{scenario:?}: {at} writes");
        }
    }
}

#[tokio::test]
async fn after_a_crash_at_any_write_a_durable_run_can_be_abandoned() {
    for scenario in scenarios() {
        for wall in [Wall::Before, Wall::Behind] {
            let mut at = 0;
            while is_kept(scenario, &[(at, wall)], Does::Abandons).await {
                // The process that abandons the run may crash too.
                let then = at % 4;
                is_kept(scenario, &[(at, wall), (then, wall)], Does::Abandons).await;
                at += 1;
            }
        }
    }
}

#[tokio::test]
async fn a_run_resumes_after_a_second_crash() {
    let scenario = Scenario {
        gathers: true,
        waits: false,
    };
    let mut at = 0;
    while is_kept(scenario, &[(at, Wall::Before)], Does::GoesOn).await {
        for then in (at % 3..24).step_by(3) {
            is_kept(
                scenario,
                &[(at, Wall::Before), (then, Wall::Behind)],
                Does::GoesOn,
            )
            .await;
        }
        at += 2;
    }
}
