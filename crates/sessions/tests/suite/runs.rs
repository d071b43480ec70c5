use std::{collections::HashSet, sync::Arc};

use serde_json::json;
use switchboard_domain::{
    MAX_RUN_PARAMETERS_BYTES, Message, SessionStoreError as Error, ToolResult,
};
use switchboard_domain::{
    RunRecord, RunSnapshot, RunState, RunStore as _, SessionStore as _, StoredEvent,
};
use switchboard_sessions::Store;

use super::sessions::raw;
use super::{
    Place, at_work, events, fails, id, me, ok, other, parameters, record, release, says, session,
    state, until_interrupted,
};

pub(crate) async fn a_run_is_begun_in_its_session(place: Place) {
    let store = place.open().await;
    store.create_session(&me(), &session("s")).await.unwrap();
    let new_run = record("r", "s");
    fails!(
        store.begin_run(&me(), &new_run, 1, &[]).await,
        Error::Conflict { actual: 0, .. }
    );
    let begun = ok(store.begin_run(&me(), &new_run, 0, &says(&["go", "on"]))).await;
    let expected = RunRecord {
        state: RunState::Running,
        updated_at: begun.updated_at.clone(),
        events_before: 0,
        last_event: 0,
        outcome: None,
        ..new_run.clone()
    };
    assert_eq!(begun, expected);
    assert_eq!(store.find_run(&me(), "r").await.unwrap().unwrap(), begun);
    assert_eq!(
        store.load_messages(&me(), &id("s"), 0).await.unwrap(),
        says(&["go", "on"])
    );
    let second = store.begin_run(&me(), &record("q", "s"), 2, &[]).await;
    fails!(second, Error::Busy { run, .. } if run == "r");
    let append = store
        .append_messages(&me(), &id("s"), 2, &says(&["x"]))
        .await;
    fails!(append, Error::Busy { run, .. } if run == "r");
    // The id of a run cannot be used again, also not in another session. The message of the refused
    // run is not stored.
    store.create_session(&me(), &session("t")).await.unwrap();
    let same_id = store
        .begin_run(&me(), &record("r", "t"), 0, &says(&["lost"]))
        .await;
    fails!(same_id, Error::RunConflict { .. });
    assert!(ok(store.load_messages(&me(), &id("t"), 0)).await.is_empty());
    let nowhere = store.begin_run(&me(), &record("n", "none"), 0, &[]).await;
    fails!(nowhere, Error::NotFound { .. });
    assert_eq!(store.find_run(&me(), "none").await.unwrap(), None);
}

pub(crate) async fn a_session_and_its_first_run_begin_together(place: Place) {
    let store = place.open().await;
    let said = says(&["go", "on"]);
    let try_both = |session_id: &str, run: &str| {
        let (store, said) = (store.clone(), said.clone());
        let (of, run) = (session(session_id), record(run, session_id));
        async move {
            store
                .begin_run_in_new_session(&me(), &of, &run, &said)
                .await
        }
    };
    let begun = try_both("s", "r").await.unwrap();
    assert_eq!(
        (begun.state, begun.events_before, begun.last_event),
        (RunState::Running, 0, 0)
    );
    assert_eq!(store.find_run(&me(), "r").await.unwrap().unwrap(), begun);
    let made = store.find_session(&me(), &id("s")).await.unwrap().unwrap();
    assert_eq!((made.title.as_str(), made.messages), ("title of s", 2));
    assert_eq!(store.load_messages(&me(), &id("s"), 0).await.unwrap(), said);
    // The session and the run are created together or not at all.
    fails!(try_both("s", "q").await, Error::Exists { id: there } if there == id("s"));
    assert_eq!(store.find_run(&me(), "q").await.unwrap(), None);
    fails!(try_both("t", "r").await, Error::RunConflict { .. });
    assert_eq!(store.find_session(&me(), &id("t")).await.unwrap(), None);
    let (of, run) = (session("t"), record("q", "s"));
    let elsewhere = store
        .begin_run_in_new_session(&me(), &of, &run, &said)
        .await;
    fails!(elsewhere, Error::RunConflict { .. });
    assert_eq!(store.find_session(&me(), &id("t")).await.unwrap(), None);
    // Another principal cannot create a session with this id, and cannot read the existing one.
    let theirs = (session("s"), record("n", "s"));
    let theirs = store
        .begin_run_in_new_session(&other(), &theirs.0, &theirs.1, &said)
        .await;
    fails!(theirs, Error::Exists { .. });
    assert_eq!(store.find_session(&other(), &id("s")).await.unwrap(), None);
    // The run behaves like a run in an existing session.
    store.append_events("r", &events(1..=2)).await.unwrap();
    release(&store, "r", RunState::Finished, 2, &says(&["done"])).await;
    let next = ok(store.begin_run(&me(), &record("q", "s"), 3, &[])).await;
    assert_eq!(next.events_before, 2);
}

pub(crate) async fn a_run_that_replaces_an_answer_removes_the_old_messages(place: Place) {
    let store = place.open().await;
    at_work(&store, "s", "r").await;
    store.append_events("r", &events(1..=2)).await.unwrap();
    let over = (RunState::Finished, Some("completed".to_owned()));
    let answer = says(&["first answer", "more of it"]);
    ok(store.release_run("r", over.0, over.1, 1, &answer)).await;
    let again = |run: &str, keep: u64, after: u64, said: &[&str]| {
        let (store, run, said) = (store.clone(), record(run, "s"), says(said));
        async move {
            store
                .begin_run_after_truncation(&me(), &run, keep, after, &said)
                .await
        }
    };
    // No message is removed unless the run begins.
    fails!(
        again("q", 1, 2, &[]).await,
        Error::Conflict { actual: 3, .. }
    );
    fails!(
        again("q", 4, 3, &[]).await,
        Error::Conflict { actual: 3, .. }
    );
    fails!(again("r", 1, 3, &[]).await, Error::RunConflict { .. });
    let said = |from: u64| {
        let store = store.clone();
        async move { store.load_messages(&me(), &id("s"), from).await.unwrap() }
    };
    assert_eq!(said(0).await, says(&["go", "first answer", "more of it"]));

    let begun = again("q", 1, 3, &[]).await.unwrap();
    assert_eq!((begun.state, begun.events_before), (RunState::Running, 2));
    assert_eq!(said(0).await, says(&["go"]));
    let stored = store.find_session(&me(), &id("s")).await.unwrap().unwrap();
    assert_eq!(stored.messages, 1);
    // The events of the first run are kept.
    let expected = events(1..=2);
    assert_eq!(store.load_events(&me(), "r", 0, 9).await.unwrap(), expected);
    assert_eq!(state(&store, "r").await, RunState::Finished);
    let answer = says(&["second answer"]);
    let over = store.release_run("q", RunState::Finished, None, 1, &answer);
    over.await.unwrap();
    assert_eq!(said(0).await, says(&["go", "second answer"]));
    // All messages are replaced by others.
    again("p", 0, 2, &["other", "words"]).await.unwrap();
    assert_eq!(said(0).await, says(&["other", "words"]));
}

pub(crate) async fn parameters_are_stored_with_their_run(place: Place) {
    let store = place.open().await;
    at_work(&store, "s", "r").await;
    let stored = |run: Option<RunRecord>| run.unwrap().parameters.unwrap();
    let expected = parameters();
    assert_eq!(stored(store.find_run(&me(), "r").await.unwrap()), expected);
    let listed = store.list_runs(&me(), None, 9).await.unwrap();
    assert_eq!(stored(listed.into_iter().next()), parameters());
    // Another process continues the run and finishes it.
    store.close().await;
    let second = place.open().await;
    let expected = parameters();
    assert_eq!(stored(second.acquire_run(&me(), "r").await.ok()), expected);
    release(&second, "r", RunState::Finished, 1, &[]).await;
    let expected = parameters();
    assert_eq!(stored(second.find_run(&me(), "r").await.unwrap()), expected);
    // Missing parameters and `null` are equal.
    for (run, none) in [("q", None), ("p", Some(serde_json::Value::Null))] {
        let plain = RunRecord {
            parameters: none,
            ..record(run, "s")
        };
        let begun = second.begin_run(&me(), &plain, 1, &[]).await.unwrap();
        assert_eq!(begun.parameters, None);
        assert_eq!(
            ok(second.find_run(&me(), run)).await.unwrap().parameters,
            None
        );
        release(&second, run, RunState::Finished, 1, &[]).await;
    }
    let large = RunRecord {
        parameters: Some("x".repeat(MAX_RUN_PARAMETERS_BYTES - 1).into()),
        ..record("o", "s")
    };
    let refused = second.begin_run(&me(), &large, 1, &says(&["lost"])).await;
    fails!(
        refused,
        Error::TooLarge {
            actual: 65_537,
            most: 65_536,
            ..
        }
    );
    assert_eq!(second.find_run(&me(), "o").await.unwrap(), None);
    assert_eq!(
        second.load_messages(&me(), &id("s"), 0).await.unwrap(),
        says(&["go"])
    );
}

/// Checks that the store can read everything that it writes.
pub(crate) async fn deeply_nested_json_is_not_stored(place: Place) {
    let store = place.open().await;
    at_work(&store, "s", "r").await;
    let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    let message = |levels: usize| {
        let mut result = ToolResult::text("1", "t", "text");
        result.structured = Some(nested(levels).into());
        vec![Arc::new(Message::from_tool_results([result]))]
    };
    let snapshot = |state: usize, messages: usize| RunSnapshot {
        state: nested(state).to_string().into(),
        from: 0,
        messages: message(messages),
    };
    let event = |levels: usize| {
        [StoredEvent {
            seq: 1,
            json: nested(levels).to_string().into(),
        }]
    };
    for (what, refused) in [
        ("an event", store.append_events("r", &event(97)).await),
        (
            "the state of a run",
            store.save_snapshot("r", &snapshot(97, 1)).await,
        ),
        (
            "a message",
            store.save_snapshot("r", &snapshot(1, 97)).await,
        ),
        (
            "a message",
            store
                .release_run("r", RunState::Finished, None, 1, &message(97))
                .await,
        ),
    ] {
        let message = refused.unwrap_err().to_string();
        let expected = format!("{what} has 97 levels; the maximum is 96");
        assert_eq!(message, expected);
    }
    store.append_events("r", &event(96)).await.unwrap();
    store.save_snapshot("r", &snapshot(96, 64)).await.unwrap();
    let read = store.load_snapshot(&me(), "r").await.unwrap().unwrap();
    assert_eq!(read, snapshot(96, 64));
    release(&store, "r", RunState::Finished, 1, &message(64)).await;
    let read = store.load_messages(&me(), &id("s"), 1).await.unwrap();
    assert_eq!(read, message(64));
}

/// Checks that unreadable data is reported differently from a failing disk, so that the run can
/// still be finished.
pub(crate) async fn unreadable_data_has_its_own_error(place: Place) {
    let store = place.open().await;
    at_work(&store, "s", "r").await;
    let saved = RunSnapshot {
        state: "{}".into(),
        from: 0,
        messages: says(&["a", "b"]),
    };
    store.save_snapshot("r", &saved).await.unwrap();
    raw(
        &place,
        "UPDATE run_messages SET message = '{\"role\":\"oracle\",\"parts\":[]}' WHERE position = 1",
    )
    .await;
    fails!(
        store.load_snapshot(&me(), "r").await,
        Error::Unreadable {
            operation: "read the state of a run",
            ..
        }
    );
    // Other data can be read, and the run can be finished.
    assert_eq!(
        store.load_messages(&me(), &id("s"), 0).await.unwrap(),
        says(&["go"])
    );
    release(&store, "r", RunState::Finished, 1, &[]).await;
    raw(&place, "UPDATE messages SET message = 'nothing'").await;
    fails!(
        store.load_messages(&me(), &id("s"), 0).await,
        Error::Unreadable { .. }
    );
    // The messages can still be counted, and the session can be deleted.
    assert_eq!(
        ok(store.find_session(&me(), &id("s")))
            .await
            .unwrap()
            .messages,
        1
    );
    store.delete_session(&me(), &id("s")).await.unwrap();
}

pub(crate) async fn events_have_no_gaps(place: Place) {
    let store = place.open().await;
    at_work(&store, "s", "r").await;
    store.append_events("r", &events(1..=3)).await.unwrap();
    store.append_events("r", &[]).await.unwrap();
    store.append_events("r", &events(4..=4)).await.unwrap();
    for wrong in [4..=5, 3..=6, 6..=6] {
        fails!(
            store.append_events("r", &events(wrong)).await,
            Error::RunConflict { .. }
        );
    }
    let [first, .., last] = &events(5..=7)[..] else {
        unreachable!()
    };
    let with_gap = [first.clone(), last.clone()];
    fails!(
        store.append_events("r", &with_gap).await,
        Error::RunConflict { .. }
    );
    fails!(
        store.append_events("none", &events(1..=1)).await,
        Error::NoSuchRun { .. }
    );
    store.append_events("r", &events(5..=10)).await.unwrap();
    // Line breaks between the values of an event do not split the event.
    at_work(&store, "lines", "lines").await;
    let with_lines = |json: &str| StoredEvent {
        seq: 1,
        json: json.into(),
    };
    let event = [with_lines("{\"a\":\r\n1}")];
    store.append_events("lines", &event).await.unwrap();
    let read = store.load_events(me_static(), "lines", 0, 9).await.unwrap();
    assert_eq!(read, [with_lines("{\"a\":  1}")]);
    let read = |after, limit| store.load_events(me_static(), "r", after, limit);
    assert_eq!(read(0, 100).await.unwrap(), events(1..=10));
    assert_eq!(read(0, u32::MAX).await.unwrap(), events(1..=10));
    for after in 0..=11 {
        for limit in 0..5 {
            let expected: Vec<_> = events(1..=10)
                .into_iter()
                .filter(|event| event.seq > after && event.seq <= after + u64::from(limit))
                .collect();
            assert_eq!(
                read(after, limit).await.unwrap(),
                expected,
                "{after} {limit}"
            );
        }
    }
    assert!(read(u64::MAX, 9).await.unwrap().is_empty());
    let run = store.find_run(&me(), "r").await.unwrap().unwrap();
    assert_eq!(run.last_event, 10);
    assert!(run.updated_at > run.created_at);
    ok(store.release_run("r", RunState::Finished, Some("completed".into()), 1, &[])).await;
    fails!(
        store.append_events("r", &events(11..=11)).await,
        Error::RunConflict { .. }
    );
    assert_eq!(read(0, 100).await.unwrap(), events(1..=10));
}

fn me_static() -> &'static switchboard_domain::Principal {
    static ME: std::sync::LazyLock<switchboard_domain::Principal> = std::sync::LazyLock::new(me);
    &ME
}

pub(crate) async fn events_are_numbered_through_a_session(place: Place) {
    let store = place.open().await;
    store.create_session(&me(), &session("s")).await.unwrap();
    let mut before = 0;
    for (run, count) in [("a", 3), ("b", 0), ("c", 2), ("d", 1)] {
        let begun = ok(store.begin_run(&me(), &record(run, "s"), 0, &[])).await;
        assert_eq!(begun.events_before, before, "{run}");
        if count > 0 {
            store.append_events(run, &events(1..=count)).await.unwrap();
        }
        release(&store, run, RunState::Finished, 0, &[]).await;
        before += count;
    }
    let all = store.list_runs(&me(), Some(&id("s")), 9).await.unwrap();
    let order: Vec<(&str, u64)> = all
        .iter()
        .map(|run| (run.id.as_str(), run.last_event))
        .collect();
    assert_eq!(order, [("d", 1), ("c", 2), ("b", 0), ("a", 3)]);
    assert_eq!(store.list_runs(&me(), None, 2).await.unwrap(), all[..2]);
}

pub(crate) async fn many_runs_write_at_once(place: Place) {
    let store = place.open().await;
    let write = |at: usize| {
        let store = store.clone();
        tokio::spawn(async move {
            let (session_id, run) = (format!("s{at}"), format!("r{at}"));
            at_work(&store, &session_id, &run).await;
            for batch in 0..5_u64 {
                let first = batch * 3 + 1;
                ok(store.append_events(&run, &events(first..=first + 2))).await;
                if batch == 2 {
                    let snapshot = snapshot(0, &["a", "b"]);
                    store.save_snapshot(&run, &snapshot).await.unwrap();
                }
            }
            let outcome = Some("completed".to_owned());
            let answer = says(&["done"]);
            ok(store.release_run(&run, RunState::Finished, outcome, 1, &answer)).await;
        })
    };
    let writers: Vec<_> = (0..120).map(write).collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let again = place.open().await;
    for at in 0..120 {
        let run = format!("r{at}");
        assert_eq!(
            again.load_events(&me(), &run, 0, 99).await.unwrap(),
            events(1..=15)
        );
        let session_id = id(&format!("s{at}"));
        let messages = again.load_messages(&me(), &session_id, 0).await.unwrap();
        assert_eq!(messages, says(&["go", "done"]));
    }
}

pub(crate) async fn many_appends_share_a_transaction(place: Place) {
    let store = place.open().await;
    for at in 0..300 {
        at_work(&store, &format!("s{at}"), &format!("r{at}")).await;
    }
    let appends = (0..300).map(|at| {
        let store = store.clone();
        async move { store.append_events(&format!("r{at}"), &events(1..=2)).await }
    });
    let done = futures_util::future::join_all(appends).await;
    assert!(done.iter().all(Result::is_ok));
    // All writes of a transaction have the same time, so the number of times is the number of
    // transactions.
    let runs = store.list_runs(&me(), None, 300).await.unwrap();
    let times: HashSet<_> = runs.iter().map(|run| &run.updated_at).collect();
    assert_eq!(runs.len(), 300);
    assert!(times.len() <= 20, "{} transactions", times.len());
}

pub(crate) async fn one_failure_does_not_undo_others(place: Place) {
    let store = place.open().await;
    for at in 0..40 {
        at_work(&store, &format!("s{at}"), &format!("r{at}")).await;
    }
    // All writes are queued before the writer thread performs the first one, so they are in one
    // transaction.
    let appends: Vec<_> = (0..40)
        .map(|at| {
            let store = store.clone();
            async move {
                // Some appends have a gap, and some name an unknown run.
                let from = if at % 7 == 3 { 2 } else { 1 };
                let run = if at % 11 == 5 {
                    "none".to_owned()
                } else {
                    format!("r{at}")
                };
                store.append_events(&run, &events(from..=4)).await
            }
        })
        .collect();
    let results = futures_util::future::join_all(appends).await;
    for (at, result) in results.iter().enumerate() {
        let fits = at % 7 != 3 && at % 11 != 5;
        assert_eq!(result.is_ok(), fits, "{at}: {result:?}");
        let stored = ok(store.load_events(&me(), &format!("r{at}"), 0, 9)).await;
        assert_eq!(stored, if fits { events(1..=4) } else { vec![] }, "{at}");
    }
    // Two concurrent appends to the same run, with other writes between them.
    let (fifth, sixth, session_id) = (events(5..=5), events(6..=6), id("s0"));
    let (a, b, c, d) = tokio::join!(
        store.append_events("r0", &fifth),
        store.append_events("r0", &sixth),
        store.append_messages(me_static(), &session_id, 1, &[]),
        store.release_run("r0", RunState::Waiting, None, 1, &[]),
    );
    a.unwrap();
    b.unwrap();
    fails!(c, Error::Busy { .. });
    d.unwrap();
    assert_eq!(
        store.load_events(&me(), "r0", 0, 9).await.unwrap(),
        events(1..=6)
    );
}

fn snapshot(from: u64, texts: &[&str]) -> RunSnapshot {
    RunSnapshot {
        state: format!("{{\"from\":{from}}}").into(),
        from,
        messages: says(texts),
    }
}

pub(crate) async fn a_snapshot_is_replaced_from_a_position(place: Place) {
    let store = place.open().await;
    at_work(&store, "s", "r").await;
    assert_eq!(store.load_snapshot(&me(), "r").await.unwrap(), None);
    fails!(
        store.load_snapshot(&me(), "none").await,
        Error::NoSuchRun { .. }
    );
    fails!(
        store.save_snapshot("r", &snapshot(1, &["x"])).await,
        Error::RunConflict { .. }
    );
    fails!(
        store.save_snapshot("none", &snapshot(0, &[])).await,
        Error::NoSuchRun { .. }
    );
    let mut expected: Vec<Arc<Message>> = Vec::new();
    let steps: [(u64, &[&str]); 6] = [
        (0, &["a", "b"]),
        (2, &["c", "d", "e"]),
        (4, &["f"]),
        (5, &[]),
        (1, &[]),
        (1, &["g", "h"]),
    ];
    for (from, texts) in steps {
        ok(store.save_snapshot("r", &snapshot(from, texts))).await;
        expected.truncate(usize::try_from(from).unwrap());
        expected.extend(says(texts));
        let stored = store.load_snapshot(&me(), "r").await.unwrap().unwrap();
        assert_eq!(&*stored.state, format!("{{\"from\":{from}}}"));
        assert_eq!((stored.from, stored.messages), (0, expected.clone()));
    }
    // A snapshot with a gap changes nothing.
    fails!(
        store.save_snapshot("r", &snapshot(4, &["x"])).await,
        Error::RunConflict { .. }
    );
    let stored = store.load_snapshot(&me(), "r").await.unwrap().unwrap();
    assert_eq!((&*stored.state, stored.messages.len()), ("{\"from\":1}", 3));
    // A waiting run keeps its snapshot, and a finished run loses it.
    release(&store, "r", RunState::Waiting, 1, &[]).await;
    assert_eq!(
        store.load_snapshot(&me(), "r").await.unwrap().unwrap(),
        stored
    );
    fails!(
        store.save_snapshot("r", &snapshot(0, &[])).await,
        Error::RunConflict { .. }
    );
    store.acquire_run(&me(), "r").await.unwrap();
    release(&store, "r", RunState::Finished, 1, &[]).await;
    assert_eq!(store.load_snapshot(&me(), "r").await.unwrap(), None);
}

pub(crate) async fn a_run_is_let_go_of(place: Place) {
    let store = place.open().await;
    at_work(&store, "s", "r").await;
    ok(store.save_snapshot("r", &snapshot(0, &["a"]))).await;
    let done = says(&["answer"]);
    let running = store
        .release_run("r", RunState::Running, None, 1, &done)
        .await;
    fails!(running, Error::RunConflict { .. });
    // A wrong message count changes neither the run nor its session.
    let outcome = Some("completed".to_owned());
    let wrong = store
        .release_run("r", RunState::Finished, outcome.clone(), 0, &done)
        .await;
    fails!(wrong, Error::Conflict { expected: 0, actual: 1, id } if id.0 == "s");
    assert_eq!(state(&store, "r").await, RunState::Running);
    assert!(store.load_snapshot(&me(), "r").await.unwrap().is_some());
    release(&store, "r", RunState::Waiting, 1, &done).await;
    assert_eq!(state(&store, "r").await, RunState::Waiting);
    let twice = store
        .release_run("r", RunState::Waiting, None, 2, &[])
        .await;
    fails!(twice, Error::RunConflict { .. });
    store.acquire_run(&me(), "r").await.unwrap();
    release(&store, "r", RunState::Interrupted, 2, &[]).await;
    assert_eq!(state(&store, "r").await, RunState::Interrupted);
    // The run is not finished, so the session accepts no other run.
    fails!(
        store.begin_run(&me(), &record("q", "s"), 2, &[]).await,
        Error::Busy { .. }
    );
    store.acquire_run(&me(), "r").await.unwrap();
    ok(store.release_run("r", RunState::Finished, outcome, 2, &says(&["b"]))).await;
    let run = store.find_run(&me(), "r").await.unwrap().unwrap();
    let expected = (RunState::Finished, Some("completed"));
    assert_eq!((run.state, run.outcome.as_deref()), expected);
    fails!(
        store.acquire_run(&me(), "r").await,
        Error::RunConflict { .. }
    );
    let messages = store.load_messages(&me(), &id("s"), 0).await.unwrap();
    assert_eq!(messages, says(&["go", "answer", "b"]));
    assert_eq!(
        ok(store.find_session(&me(), &id("s")))
            .await
            .unwrap()
            .messages,
        3
    );
    ok(store.begin_run(&me(), &record("q", "s"), 3, &[])).await;
    let gone = store
        .release_run("none", RunState::Waiting, None, 0, &[])
        .await;
    fails!(gone, Error::NoSuchRun { .. });
}

pub(crate) async fn events_and_what_follows_are_stored_together(place: Place) {
    let store = place.open().await;
    at_work(&store, "s", "r").await;
    let first = snapshot(0, &["a"]);
    ok(store.save_snapshot_with_events("r", &events(1..=2), &first)).await;
    let is_as_before = || async {
        assert_eq!(all_events(&store, "r").await, events(1..=2));
        assert_eq!(
            store.load_snapshot(&me(), "r").await.unwrap().unwrap(),
            first.clone()
        );
        assert_eq!(state(&store, "r").await, RunState::Running);
        let said = store.load_messages(&me(), &id("s"), 0).await.unwrap();
        assert_eq!(said, says(&["go"]));
    };
    is_as_before().await;
    // If the events or the snapshot are refused, neither is stored.
    let (late, next) = (events(4..=4), events(3..=3));
    let gap = store
        .save_snapshot_with_events("r", &late, &snapshot(0, &["b"]))
        .await;
    fails!(gap, Error::RunConflict { .. });
    is_as_before().await;
    let gap = store
        .save_snapshot_with_events("r", &next, &snapshot(5, &["b"]))
        .await;
    fails!(gap, Error::RunConflict { .. });
    is_as_before().await;
    let over = async |events: &[StoredEvent], after: u64| {
        let (to, outcome) = (RunState::Finished, Some("completed".to_owned()));
        let answer = says(&["answer"]);
        store
            .release_run_with_events("r", events, to, outcome, after, &answer)
            .await
    };
    let last = events(3..=4);
    fails!(over(&late, 1).await, Error::RunConflict { .. });
    is_as_before().await;
    fails!(over(&last, 0).await, Error::Conflict { actual: 1, .. });
    is_as_before().await;
    over(&last, 1).await.unwrap();
    assert_eq!(all_events(&store, "r").await, events(1..=4));
    let run = store.find_run(&me(), "r").await.unwrap().unwrap();
    assert_eq!((run.state, run.last_event), (RunState::Finished, 4));
    let said = store.load_messages(&me(), &id("s"), 0).await.unwrap();
    assert_eq!(said, says(&["go", "answer"]));
}

async fn all_events(store: &Store, run: &str) -> Vec<StoredEvent> {
    store.load_events(&me(), run, 0, 99).await.unwrap()
}

pub(crate) async fn a_run_is_taken_once(place: Place) {
    let stores = [place.open().await, place.open().await, place.open().await];
    at_work(&stores[0], "s", "r").await;
    for store in &stores {
        assert_eq!(state(store, "r").await, RunState::Running);
        fails!(store.acquire_run(&me(), "r").await, Error::Busy { run, .. } if run == "r");
    }
    for _ in 0..10 {
        let owner = owner(&stores).await;
        ok(stores[owner].release_run("r", RunState::Waiting, None, 1, &[])).await;
        let all = stores
            .iter()
            .map(|store| store.acquire_run(me_static(), "r"));
        let taken = futures_util::future::join_all(all).await;
        let winners = taken.iter().filter(|take| take.is_ok()).count();
        assert_eq!(winners, 1, "{taken:?}");
        for refused in taken.into_iter().filter(Result::is_err) {
            fails!(refused, Error::Busy { .. });
        }
    }
    // An instance cannot write to a run that it has released.
    let owner = owner(&stores).await;
    let stranger = &stores[(owner + 1) % 3];
    let last = ok(stores[owner].find_run(&me(), "r"))
        .await
        .unwrap()
        .last_event;
    let more = events(last + 1..=last + 1);
    fails!(
        stranger.append_events("r", &more).await,
        Error::RunConflict { .. }
    );
    fails!(
        stranger.save_snapshot("r", &snapshot(0, &[])).await,
        Error::RunConflict { .. }
    );
    let release = stranger
        .release_run("r", RunState::Finished, None, 1, &[])
        .await;
    fails!(release, Error::RunConflict { .. });
}

/// Returns the instance that can append an event to the run. Appends this event.
async fn owner(stores: &[Store]) -> usize {
    let last = ok(stores[0].find_run(&me(), "r")).await.unwrap().last_event;
    let mut owner = None;
    for (at, store) in stores.iter().enumerate() {
        if store
            .append_events("r", &events(last + 1..=last + 1))
            .await
            .is_ok()
        {
            assert_eq!(owner, None);
            owner = Some(at);
        }
    }
    owner.unwrap()
}

pub(crate) async fn a_dead_process_interrupts_its_runs(place: Place) {
    let survivor = place.open().await;
    let dying = place.open().await;
    at_work(&dying, "s", "r").await;
    at_work(&dying, "t", "q").await;
    dying.append_events("r", &events(1..=2)).await.unwrap();
    ok(dying.save_snapshot("r", &snapshot(0, &["a"]))).await;
    fails!(survivor.acquire_run(&me(), "r").await, Error::Busy { .. });
    // The store is dropped without closing, as after a kill of the process.
    drop(dying);
    until_interrupted(&survivor, "r").await;
    let listed = survivor.list_runs(&me(), None, 9).await.unwrap();
    assert!(listed.iter().all(|run| run.state == RunState::Interrupted));
    // The session accepts no new run until the interrupted run is continued and finished.
    fails!(
        survivor.begin_run(&me(), &record("n", "s"), 1, &[]).await,
        Error::Busy { .. }
    );
    let reopened = place.open().await;
    assert_eq!(state(&reopened, "q").await, RunState::Interrupted);
    let taken = survivor.acquire_run(&me(), "r").await.unwrap();
    assert_eq!((taken.state, taken.last_event), (RunState::Running, 2));
    fails!(reopened.acquire_run(&me(), "r").await, Error::Busy { .. });
    let stored = survivor.load_snapshot(&me(), "r").await.unwrap().unwrap();
    assert_eq!(stored, snapshot(0, &["a"]));
    survivor.append_events("r", &events(3..=3)).await.unwrap();
    release(&survivor, "r", RunState::Finished, 1, &[]).await;
    // A session with an interrupted run can be deleted.
    reopened.delete_session(&me(), &id("t")).await.unwrap();
    assert_eq!(survivor.find_run(&me(), "q").await.unwrap(), None);
}

pub(crate) async fn a_closed_store_releases_its_runs(place: Place) {
    let store = place.open().await;
    at_work(&store, "s", "r").await;
    let watching = place.open().await;
    store.close().await;
    assert_eq!(state(&watching, "r").await, RunState::Interrupted);
    watching.acquire_run(&me(), "r").await.unwrap();
}

pub(crate) async fn a_session_with_an_active_run_is_not_deleted(place: Place) {
    let (store, second) = (place.open().await, place.open().await);
    at_work(&store, "s", "r").await;
    for one in [&store, &second] {
        fails!(one.delete_session(&me(), &id("s")).await, Error::Busy { run, .. } if run == "r");
    }
    release(&store, "r", RunState::Waiting, 1, &[]).await;
    second.delete_session(&me(), &id("s")).await.unwrap();
    assert_eq!(store.find_run(&me(), "r").await.unwrap(), None);
    fails!(store.acquire_run(&me(), "r").await, Error::NoSuchRun { .. });
}
