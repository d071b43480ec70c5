//! Behaviours of a store on every database. Each behaviour gets a separate database.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "functions of tests: a failure ends the test"
)]

mod moving;
mod runs;
mod sessions;
mod sharing;

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use switchboard_domain::{
    Message, Principal, RunRecord, RunState, RunStore as _, Session, SessionId, SessionStore as _,
    StoredEvent,
};
use switchboard_sessions::{Store, StoreOptions};

/// An empty database.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) options: StoreOptions,
    /// The URL of the database. `None` for SQLite.
    pub(crate) url: Option<String>,
}

impl Place {
    /// Opens another instance, as another process would.
    pub(crate) async fn open(&self) -> Store {
        Store::open(self.options.clone()).await.unwrap()
    }
}

pub(crate) type Behaviour = fn(Place) -> Pin<Box<dyn Future<Output = ()> + Send>>;

macro_rules! behaviours {
    ($($module:ident: $($name:ident),+;)+) => {
        /// All behaviours with their names.
        #[allow(dead_code, reason = "the tests on one database name each")]
        pub(crate) const ALL: &[(&str, Behaviour)] =
            &[$($((stringify!($name), |place| Box::pin($module::$name(place)))),+),+];

        /// Defines a test for each behaviour. The argument creates its database.
        #[allow(unused_macros, reason = "the tests on the other database are one")]
        macro_rules! tests {
            ($place:expr) => {
                $($(
                    #[tokio::test]
                    async fn $name() {
                        let (place, _folder) = $place;
                        suite::run(stringify!($name), place).await;
                    }
                )+)+
            };
        }
        #[allow(unused_imports, reason = "as above")]
        pub(crate) use tests;
    };
}

behaviours! {
    sessions:
        sessions_are_listed_newest_first,
        a_session_is_renamed_and_deleted,
        messages_are_appended_by_one_writer,
        principals_do_not_see_each_other,
        old_sessions_are_removed,
        any_text_but_nul_is_kept,
        a_closed_store_refuses,
        the_key_of_ids_is_made_once,
        a_store_of_another_version_is_refused,
        a_store_of_an_earlier_form_is_refused_and_unchanged,
        a_store_of_version_1_is_read,
        a_store_of_version_2_is_read,
        audit_records_are_paged_and_forgotten,
        an_id_with_nul_is_found_nowhere,
        several_open_a_new_store_at_once;
    runs:
        a_run_is_begun_in_its_session,
        a_session_and_its_first_run_begin_together,
        a_run_that_replaces_an_answer_removes_the_old_messages,
        parameters_are_stored_with_their_run,
        unreadable_data_has_its_own_error,
        deeply_nested_json_is_not_stored,
        events_have_no_gaps,
        events_are_numbered_through_a_session,
        many_runs_write_at_once,
        many_appends_share_a_transaction,
        one_failure_does_not_undo_others,
        a_snapshot_is_replaced_from_a_position,
        a_run_is_let_go_of,
        events_and_what_follows_are_stored_together,
        a_run_is_taken_once,
        a_dead_process_interrupts_its_runs,
        a_closed_store_releases_its_runs,
        a_session_with_an_active_run_is_not_deleted;
    sharing:
        instances_share_runs,
        instances_count_tool_calls_together;
    moving:
        an_imported_export_is_exported_unchanged,
        an_export_of_one_session_holds_no_other,
        a_large_session_is_moved,
        large_messages_are_moved,
        an_import_ignores_approvals,
        existing_sessions_and_runs_are_not_imported_again,
        new_ids_make_another_session,
        an_invalid_export_changes_nothing,
        deeply_nested_json_is_not_imported,
        an_import_that_is_given_up_leaves_nothing;
}

#[allow(dead_code, reason = "the tests on the other database run them all")]
pub(crate) async fn run(name: &str, place: Place) {
    let (_, behaviour) = ALL.iter().find(|(known, _)| *known == name).unwrap();
    behaviour(place).await;
}

pub(crate) fn me() -> Principal {
    Principal {
        tenant: "acme".into(),
        user: "ada".into(),
    }
}

pub(crate) fn other() -> Principal {
    Principal {
        tenant: "acme".into(),
        user: "bob".into(),
    }
}

pub(crate) fn id(id: &str) -> SessionId {
    SessionId(id.into())
}

pub(crate) fn session(id: &str) -> Session {
    Session {
        id: SessionId(id.into()),
        title: format!("title of {id}"),
        created_at: "2026-11-21T20:00:00Z".into(),
        messages: 0,
    }
}

pub(crate) fn record(run: &str, session: &str) -> RunRecord {
    RunRecord {
        id: run.into(),
        session: id(session),
        state: RunState::Waiting,
        model: "offline/planner".into(),
        created_at: "2026-11-21T20:00:01Z".into(),
        updated_at: "never".into(),
        events_before: 99,
        last_event: 99,
        outcome: Some("nonsense".into()),
        parameters: Some(parameters()),
    }
}

pub(crate) fn parameters() -> serde_json::Value {
    serde_json::json!({"recipe": "careful", "parameters": {"z": 1e2, "a": [null, "é \u{0}"]}})
}

pub(crate) fn says(texts: &[&str]) -> Vec<Arc<Message>> {
    texts
        .iter()
        .map(|text| Message::user(*text).into())
        .collect()
}

pub(crate) fn events(seqs: std::ops::RangeInclusive<u64>) -> Vec<StoredEvent> {
    seqs.map(|seq| StoredEvent {
        seq,
        json: format!("{{\"seq\":{seq},\"text\":\"é \\n\"}}").into(),
    })
    .collect()
}

/// Creates a session with a run that `store` executes.
pub(crate) async fn at_work(store: &Store, session_id: &str, run: &str) {
    ok(store.create_session(&me(), &session(session_id))).await;
    ok(store.begin_run(&me(), &record(run, session_id), 0, &says(&["go"]))).await;
}

/// Returns the result of an operation that succeeds.
pub(crate) async fn ok<T, E: std::fmt::Debug>(operation: impl Future<Output = Result<T, E>>) -> T {
    operation.await.unwrap()
}

/// Releases a run without an outcome.
pub(crate) async fn release(
    store: &Store,
    run: &str,
    state: RunState,
    after: u64,
    messages: &[Arc<Message>],
) {
    let released = store.release_run(run, state, None, after, messages);
    released.await.unwrap();
}

pub(crate) async fn state(store: &Store, run: &str) -> RunState {
    store.find_run(&me(), run).await.unwrap().unwrap().state
}

/// Waits until a run is interrupted. A file lock ends with its process. An advisory lock ends when
/// the server detects the lost connection.
pub(crate) async fn until_interrupted(store: &Store, run: &str) {
    for _ in 0..2000 {
        if state(store, run).await == RunState::Interrupted {
            return;
        }
        // sleep: the server does not report that it has detected a lost connection
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("run {run} is still {:?}", state(store, run).await);
}

macro_rules! fails {
    ($result:expr, $pattern:pat $(if $guard:expr)?) => {
        match $result {
            Err($pattern) $(if $guard)? => {}
            other => panic!("expected {}, got {other:?}", stringify!($pattern)),
        }
    };
}
pub(crate) use fails;
