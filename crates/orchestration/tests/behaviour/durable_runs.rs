//! Durable runs: the order of writes, the content of sessions, and store errors.

use std::sync::{Arc, Mutex, atomic::Ordering};

use async_trait::async_trait;
use futures_util::{FutureExt, StreamExt};
use serde_json::json;
use switchboard_domain::{ApprovalDecision, Message, Principal, Role, RunState, SessionStoreError};
use switchboard_orchestration::{
    Agent, Outcome, Run, RunReport,
    persistence::checkpoint::{Checkpoint, CheckpointError, CheckpointStore},
    persistence::{DurableRunError, DurableRuns, PersistedEvent, PersistedRun, PersistedRunEnd},
    recipe::Recipe,
};

use crate::{
    crashes::durable_runs,
    limits::Endless,
    memory_store::{Disk, session_id},
    support::{Answer, Person, Scripted, Tools, allow_once, assert_whole, calls, echoing},
};

pub(crate) fn says(text: &str) -> Vec<Arc<Message>> {
    vec![Arc::new(Message::user(text))]
}

pub(crate) async fn begin(durable_runs: &DurableRuns, agent: &Agent, text: &str) -> PersistedRun {
    let begun = durable_runs
        .begin_run(agent, &session_id(), says(text), None)
        .await;
    begun.expect("it begins")
}

/// Returns all events of the run and its end.
pub(crate) async fn watched(mut run: PersistedRun) -> (Vec<PersistedEvent>, PersistedRunEnd) {
    let mut shown = Vec::new();
    while let Some(kept) = run.next().await {
        shown.push(kept);
    }
    (shown, run.run_to_end().await)
}

/// Returns all events of a run that finishes, and its report.
pub(crate) async fn completed(run: PersistedRun) -> (Vec<PersistedEvent>, RunReport) {
    let (shown, end) = watched(run).await;
    let PersistedRunEnd::Finished(report) = end else {
        panic!("{end:?}");
    };
    (shown, *report)
}

pub(crate) fn roles(disk: &Disk) -> Vec<(Role, String)> {
    let messages = disk.messages();
    assert_whole(&messages);
    messages.iter().map(|it| (it.role, it.text())).collect()
}

pub(crate) fn said(role: Role, text: &str) -> (Role, String) {
    (role, text.to_owned())
}

pub(crate) fn yes() -> Arc<Person> {
    Person::always(allow_once())
}

pub(crate) fn later() -> Arc<Person> {
    Person::always(ApprovalDecision::Later)
}

pub(crate) fn one(id: &'static str) -> Answer {
    calls(&[(id, "srv__do", json!({"n": 1}))])
}

pub(crate) fn doing() -> Arc<Tools> {
    echoing(&["do"])
}

/// Waits until the run has this state in the store.
pub(crate) async fn settled(disk: &Disk, state: RunState) {
    let settled = async {
        while disk.record().state != state {
            tokio::task::yield_now().await;
        }
    };
    let limit = std::time::Duration::from_secs(30);
    tokio::time::timeout(limit, settled)
        .await
        .expect("it hangs");
}

#[tokio::test]
async fn a_session_contains_the_conversation_without_instructions() {
    let disk = Disk::with_session([]);
    let durable_runs = durable_runs(&disk.process(None));
    let recipe: Recipe = serde_json::from_value(json!({
        "name": "kind",
        "instructions": "Be kind.",
        "examples": [{"user": "2 + 2?", "answer": "4"}],
    }))
    .unwrap();
    let model = Scripted::new([one("a"), Answer::Says("Done."), Answer::Says("Again.")]);
    let agent = Agent::new(model.clone())
        .with_tools(doing())
        .with_recipe(Arc::new(recipe));
    let (shown, report) = completed(begin(&durable_runs, &agent, "first").await).await;
    assert_eq!(report.answer, "Done.");
    assert_eq!(report.session_id.as_deref(), Some("s"));
    let first = disk.record();
    assert_eq!(first.outcome.as_deref(), Some("completed"));
    assert_eq!(first.model, "test/scripted");
    assert_eq!(first.last_event, shown.last().unwrap().event.seq);

    completed(begin(&durable_runs, &agent, "second").await).await;
    assert_eq!(
        roles(&disk),
        [
            said(Role::User, "first"),
            said(Role::Assistant, ""),
            said(Role::Tool, ""),
            said(Role::Assistant, "Done."),
            said(Role::User, "second"),
            said(Role::Assistant, "Again."),
        ]
    );
    let sent = model.request(2).messages;
    let sent: Vec<_> = sent.iter().map(|it| (it.role, it.text())).collect();
    assert!(sent[0].0 == Role::System && sent[0].1.starts_with("Be kind."));
    assert_eq!(sent[1], said(Role::User, "2 + 2?"));
    assert_eq!(sent[3], said(Role::User, "first"));
    assert_eq!(sent.last(), Some(&said(Role::User, "second")));
    assert_eq!(sent.len(), 1 + 2 + 5);
    assert_eq!(disk.record().events_before, first.last_event);
}

/// Records the names of checkpoints.
struct Points(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl CheckpointStore for Points {
    async fn save_checkpoint(&self, _: &Run, point: Checkpoint) -> Result<(), CheckpointError> {
        self.0.lock().unwrap().push(format!("{point:?}"));
        Ok(())
    }
}

#[tokio::test]
async fn a_checkpoint_contains_the_pending_events() {
    let happened = Arc::new(Mutex::new(Vec::new()));
    let agent = Agent::new(Scripted::new([one("a"), Answer::Says("ok")]))
        .with_tools(doing())
        .with_checkpoints(Arc::new(Points(happened.clone())));
    let mut run = agent.ask("go");
    while let Some(event) = run.next().await {
        let kind = serde_json::to_value(&event.kind).unwrap();
        let kind = kind["type"].as_str().unwrap().to_owned();
        happened.lock().unwrap().push(kind);
    }
    assert_eq!(
        *happened.lock().unwrap(),
        [
            "run_started",
            "Begun",
            "model_call_started",
            "tool_input_started",
            "tool_input_delta",
            "ModelAnswered",
            "model_call_finished",
            "tool_planned",
            "Leaving",
            "tool_started",
            "ToolAnswered",
            "tool_finished",
            "Settled",
            "model_call_started",
            "text_delta",
            "text_delta",
            "ModelAnswered",
            "model_call_finished",
            "Over",
            "run_finished",
        ]
    );
}

#[tokio::test]
async fn a_step_stores_only_its_new_messages() {
    let turns = (0..1_000).map(|n| match n % 2 {
        0 => Message::user("again"),
        _ => Message::assistant("and again"),
    });
    let disk = Disk::with_session(turns);
    let ids = ["a", "b", "c", "d", "e"];
    let answers = ids.map(one).into_iter().chain([Answer::Says("ok")]);
    let agent = Agent::new(Scripted::new(answers)).with_tools(doing());
    let durable_runs = durable_runs(&disk.process(None));
    completed(begin(&durable_runs, &agent, "go").await).await;
    // Each message is stored once. The last one goes directly to the session.
    assert_eq!(disk.written(), 1_001 + 2 * ids.len());
}

#[tokio::test]
async fn a_session_has_one_run_at_a_time_of_its_own_principal() {
    let disk = Disk::with_session([]);
    let process = disk.process(None);
    let durable_runs = durable_runs(&process);
    let agent = Agent::new(Scripted::new([Answer::Says("ok")]));
    let run = begin(&durable_runs, &agent, "first").await;
    let busy = durable_runs
        .begin_run(&agent, &session_id(), says("second"), None)
        .await;
    let busy = busy.unwrap_err();
    assert!(
        matches!(&busy, DurableRunError::Store(SessionStoreError::Busy { run: of, .. }) if of == run.id())
    );
    let taken = durable_runs.acquire_run(run.id()).await.unwrap_err();
    assert!(matches!(
        taken,
        DurableRunError::Store(SessionStoreError::Busy { .. })
    ));
    let id = run.id().to_owned();
    watched(run).await;
    assert_eq!(roles(&disk).len(), 2, "nothing of the second is there");

    let other = Principal {
        user: "other".into(),
        ..Principal::default()
    };
    let process = Arc::new(process);
    let others = DurableRuns::new(process.clone(), process, other);
    let error = others
        .begin_run(&agent, &session_id(), says("mine?"), None)
        .await;
    let error = error.unwrap_err();
    assert!(matches!(
        error,
        DurableRunError::Store(SessionStoreError::NotFound { .. })
    ));
    for error in [
        others.acquire_run(&id).await.unwrap_err(),
        others.abandon_run(&id).await.unwrap_err(),
        others.read_event_page(&id, 0, 10).await.unwrap_err(),
    ] {
        let is_none = matches!(
            error,
            DurableRunError::Store(SessionStoreError::NoSuchRun { .. })
        );
        assert!(is_none, "{error:?}");
    }
    assert!(
        !durable_runs
            .read_event_page(&id, 0, 10)
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn the_run_continues_during_a_write_up_to_a_limit() {
    let disk = Disk::with_session([]);
    let process = disk.process(None);
    let model = Arc::new(Endless::talking(5_000));
    let agent = Agent::new(model.clone());
    let mut run = begin(&durable_runs(&process), &agent, "go").await;
    let mut shown = 0;
    while shown < 2 {
        shown += run.next().await.unwrap().event.seq.min(1);
    }
    let appending = Arc::clone(&process.appending);
    let held = appending.write().await;
    let mut pending = 0;
    // Polls the run until it waits only for the store.
    while pending < 50 {
        match run.next().now_or_never() {
            Some(kept) => assert!(kept.is_some()),
            None => pending += 1,
        }
        tokio::task::yield_now().await;
    }
    let ahead = model.said.load(Ordering::Relaxed);
    let stored = usize::try_from(disk.record().last_event).unwrap();
    assert!(
        ahead > stored + 100,
        "{ahead} words, {stored} events stored"
    );
    assert!(
        ahead < stored + 2 * 512 + 64,
        "{ahead} words, {stored} events stored"
    );
    drop(held);
    let (_, report) = completed(run).await;
    assert_eq!(report.answer.len(), 5_000 * "word ".len());
    let numbers: Vec<_> = disk.events().iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
}

#[tokio::test]
async fn emitted_text_of_an_interrupted_answer_is_in_the_session() {
    let disk = Disk::with_session([]);
    let durable_runs = durable_runs(&disk.process(None));
    let model = Scripted::new([
        one("a"),
        Answer::Breaks("There are three of"),
        Answer::Says("them."),
    ]);
    let agent = Agent::new(model.clone()).with_tools(doing());
    let (_, report) = completed(begin(&durable_runs, &agent, "How many?").await).await;
    assert_eq!(report.outcome, Outcome::Failed);
    assert_eq!(disk.record().outcome.as_deref(), Some("failed"));
    watched(begin(&durable_runs, &agent, "Go on.").await).await;
    let sent = model.request(2).messages;
    assert_whole(&sent);
    let texts: Vec<_> = sent.iter().map(|message| message.text()).collect();
    assert_eq!(texts, ["How many?", "", "", "There are three of", "Go on."]);
}
