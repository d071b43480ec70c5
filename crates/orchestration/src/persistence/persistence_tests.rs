//! The order of the writes of a run, with ports that record their calls.

use std::sync::Mutex;

use futures_util::{FutureExt as _, StreamExt, stream};
use switchboard_domain::{
    FinishReason, MockChatModel, MockRunStore, MockSessionStore, ModelCapabilities, ModelEvent,
    ModelId, PartStart, Session,
};

use super::*;
use crate::RunEvent;

type Said = Arc<Mutex<Vec<String>>>;

fn model() -> Arc<MockChatModel> {
    let mut model = MockChatModel::new();
    model.expect_id().return_const(ModelId::new("p", "m"));
    let capabilities = ModelCapabilities::default();
    model.expect_capabilities().return_const(capabilities);
    model.expect_stream().returning(|_| {
        let events = [
            ModelEvent::PartStarted {
                index: 0,
                part: PartStart::Text,
            },
            ModelEvent::TextDelta {
                index: 0,
                text: "Hello.".into(),
            },
            ModelEvent::PartFinished { index: 0 },
            ModelEvent::Finished {
                reason: FinishReason::Stop,
                raw: None,
            },
        ];
        Ok(Box::pin(stream::iter(events.map(Ok))))
    });
    Arc::new(model)
}

fn sessions(messages: u64) -> Arc<MockSessionStore> {
    let mut sessions = MockSessionStore::new();
    let said = vec![Arc::new(Message::user("before"))];
    sessions
        .expect_messages()
        .returning(move |_, _, _| Ok(said.clone()));
    sessions.expect_get().returning(move |_, id| {
        Ok(Some(Session {
            id: id.clone(),
            title: String::new(),
            created_at: String::new(),
            messages,
        }))
    });
    Arc::new(sessions)
}

/// A store that records its calls.
fn runs(said: &Said) -> MockRunStore {
    with(MockRunStore::new(), said)
}

/// Adds the expectations of a recording store.
fn with(mut runs: MockRunStore, said: &Said) -> MockRunStore {
    let listener = |said: &Said| {
        let said = Arc::clone(said);
        move |what: String| -> Result<(), SessionStoreError> {
            said.lock().unwrap().push(what);
            Ok(())
        }
    };
    let hear = listener(said);
    runs.expect_begin()
        .returning(move |_, record, after, messages| {
            hear(format!("begin behind {after} with {}", messages.len()))?;
            Ok(record.clone())
        });
    let hear = listener(said);
    runs.expect_append_events()
        .returning(move |_, events| hear(kinds(events)));
    let hear = listener(said);
    runs.expect_save_with()
        .returning(move |_, events, snapshot| {
            let (new, from) = (snapshot.messages.len(), snapshot.from);
            hear(format!("{}, save {new} from {from}", kinds(events)))
        });
    let hear = listener(said);
    runs.expect_release_with()
        .returning(move |_, events, state, outcome, after, messages| {
            let new = messages.len();
            hear(format!(
                "{}, release {state:?} {outcome:?} behind {after} with {new}",
                kinds(events)
            ))
        });
    let hear = listener(said);
    runs.expect_release()
        .returning(move |_, state, outcome, after, messages| {
            hear(format!(
                "release {state:?} {outcome:?} behind {after} with {}",
                messages.len()
            ))
        });
    runs
}

fn kinds(events: &[StoredEvent]) -> String {
    let kinds = events.iter().map(|event| {
        let event: RunEvent = serde_json::from_str(&event.json).unwrap();
        let json = serde_json::to_value(&event.kind).unwrap();
        json["type"].as_str().unwrap().to_owned()
    });
    kinds.collect::<Vec<_>>().join(" ")
}

fn durable_runs(runs: MockRunStore) -> DurableRuns {
    DurableRuns::new(sessions(1), Arc::new(runs), Principal::default())
}

async fn begun(durable_runs: &DurableRuns) -> Result<PersistedRun, DurableRunError> {
    let agent = Agent::new(model());
    let session = SessionId("s".into());
    let message = vec![Arc::new(Message::user("hi"))];
    durable_runs.begin(&agent, &session, message).await
}

#[tokio::test]
async fn writes_are_stored_in_order() {
    let said = Said::default();
    let durable_runs = durable_runs(runs(&said));
    let shown: Vec<PersistedEvent> = begun(&durable_runs).await.unwrap().collect().await;
    assert_eq!(
        *said.lock().unwrap(),
        [
            "begin behind 1 with 1",
            "run_started, save 2 from 0",
            "model_call_started text_delta model_call_finished run_finished, release Finished Some(\"completed\") \
             behind 2 with 1",
        ]
    );
    assert_eq!(shown.len(), 5);
}

/// A store with one interrupted run without a snapshot.
fn with_an_interrupted_run(said: &Said) -> MockRunStore {
    let record = RunRecord {
        id: "r".into(),
        session: SessionId("s".into()),
        state: RunState::Interrupted,
        model: "acme/m".into(),
        created_at: String::new(),
        updated_at: String::new(),
        events_before: 0,
        last_event: 0,
        outcome: None,
        parameters: None,
    };
    let mut runs = runs(said);
    let known = record.clone();
    runs.expect_run()
        .returning(move |_, _| Ok(Some(known.clone())));
    runs.expect_take().returning(move |_, _| Ok(record.clone()));
    runs.expect_snapshot().returning(|_, _| Ok(None));
    runs
}

#[tokio::test]
async fn a_dropped_acquisition_releases_the_run() {
    let said = Said::default();
    let durable_runs = durable_runs(with_an_interrupted_run(&said));
    let mut taking = Box::pin(durable_runs.acquire("r"));
    // The caller is dropped during the acquisition.
    assert!(taking.as_mut().now_or_never().is_none());
    drop(taking);
    let let_go = async {
        while said.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    let limit = std::time::Duration::from_secs(30);
    tokio::time::timeout(limit, let_go).await.unwrap();
    let released = "release Interrupted None behind 1 with 0";
    assert_eq!(*said.lock().unwrap(), [released]);
}

#[tokio::test]
async fn a_run_that_an_unavailable_store_refused_is_not_released() {
    // The mock panics if it is asked to release a run.
    let mut runs = MockRunStore::new();
    runs.expect_begin()
        .times(1)
        .returning(|_, _, _, _| Err(unavailable()));
    let error = begun(&durable_runs(runs)).await.unwrap_err();
    assert!(matches!(
        error,
        DurableRunError::Store(SessionStoreError::Unavailable { .. })
    ));
}

#[tokio::test]
async fn a_run_repeats_writes_while_the_store_is_unavailable() {
    let said = Said::default();
    let mut store = MockRunStore::new();
    store
        .expect_save_with()
        .times(1)
        .returning(|_, _, _| Err(unavailable()));
    store
        .expect_release_with()
        .times(2)
        .returning(|_, _, _, _, _, _| Err(unavailable()));
    let durable_runs = durable_runs(with(store, &said));
    let end = begun(&durable_runs).await.unwrap().finish().await;
    assert!(matches!(end, PersistedRunEnd::Finished(_)), "{end:?}");
    let said = said.lock().unwrap();
    let last = said.last().unwrap();
    assert!(last.contains("release Finished"), "{said:?}");
}

fn unavailable() -> SessionStoreError {
    SessionStoreError::Unavailable {
        operation: "write",
        source: "the database is locked".into(),
    }
}

#[tokio::test]
async fn settings_of_a_run_without_a_stored_state_apply() {
    let said = Said::default();
    let durable_runs = durable_runs(with_an_interrupted_run(&said));
    let mut taken = durable_runs.acquire("r").await.unwrap();
    assert!(taken.has_only_conversation());
    taken.run_mut().limit_steps(0);
    let PersistedRunEnd::Finished(report) = durable_runs
        .resume(&Agent::new(model()), taken)
        .finish()
        .await
    else {
        panic!("it ends");
    };
    assert_eq!((report.outcome, report.steps), (Outcome::Limited, 0));
}
