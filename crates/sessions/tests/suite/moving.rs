use futures_util::StreamExt as _;
use serde_json::Value;
use switchboard_domain::{
    Principal, RunSnapshot, RunState, RunStore as _, SessionId, SessionStore as _,
    SessionStoreError as Error, StoredEvent,
};
use switchboard_sessions::{ImportError, ImportIdPolicy, Store};

use super::{
    Place, at_work, events, fails, id, me, ok, other, parameters, record, release, says, session,
};

/// Creates sessions with every kind of content.
async fn fill(store: &Store) {
    ok(store.create_session(&me(), &session("empty"))).await;
    store.create_session(&me(), &session("s")).await.unwrap();
    let mut messages = 0;
    for (run, outcome) in [("a", "completed"), ("b", "failed")] {
        let begun = store
            .begin_run(&me(), &record(run, "s"), messages, &says(&["q"]))
            .await;
        begun.unwrap();
        store.append_events(run, &events(1..=3)).await.unwrap();
        store.append_events(run, &events(4..=4)).await.unwrap();
        let outcome = Some(outcome.to_owned());
        let answer = says(&["\u{1f600} \"]}"]);
        ok(store.release_run(run, RunState::Finished, outcome, messages + 1, &answer)).await;
        messages += 2;
    }
    at_work(store, "w", "waiting").await;
    let snapshot = RunSnapshot {
        state: "{ \"b\" : 1.0, \"a\":1e2}".into(),
        from: 0,
        messages: says(&["m", "n"]),
    };
    store.save_snapshot("waiting", &snapshot).await.unwrap();
    release(store, "waiting", RunState::Waiting, 1, &[]).await;
    at_work(store, "x", "working").await;
    ok(store.append_events("working", &events(1..=1))).await;
}

async fn export(store: &Store, owner: &Principal, session: Option<&SessionId>) -> String {
    let pieces: Vec<_> = store.export(owner, session).collect().await;
    pieces.into_iter().map(Result::unwrap).collect()
}

async fn import(
    store: &Store,
    text: &str,
    ids: ImportIdPolicy,
) -> Result<Vec<SessionId>, ImportError> {
    let imported = store.import(&other(), text.as_bytes(), ids).await;
    imported.map(|imported| imported.sessions)
}

/// Returns the records of an export without the header, which contains the time of the export.
fn records(text: &str) -> Vec<Value> {
    let records = text.lines().map(serde_json::from_str);
    let mut records: Vec<Value> = records.map(Result::unwrap).collect();
    let header = records.remove(0);
    assert_eq!(header["header"]["format"], "switchboard-sessions");
    assert_eq!(header["header"]["version"], 1);
    records
}

pub(crate) async fn an_imported_export_is_exported_unchanged(place: Place) {
    let store = place.open().await;
    fill(&store).await;
    let first = export(&store, &me(), None).await;
    for name in ["empty", "s", "w"] {
        store.delete_session(&me(), &id(name)).await.unwrap();
    }
    release(&store, "working", RunState::Interrupted, 1, &[]).await;
    store.delete_session(&me(), &id("x")).await.unwrap();
    assert_eq!(records(&export(&store, &me(), None).await).len(), 1);
    let imported = import(&store, &first, ImportIdPolicy::Keep).await.unwrap();
    assert_eq!(imported, ["empty", "s", "w", "x"].map(id));
    let second = export(&store, &other(), None).await;
    // Both exports are equal, except for the first line and the unfinished runs.
    let over = |text: &str| {
        let (_, body) = text.split_once('\n').unwrap();
        let (over, _) = body.split_once("{\"session\":{\"id\":\"w\"").unwrap();
        over.to_owned()
    };
    assert_eq!(over(&first), over(&second));
    let run = store.find_run(&other(), "a").await.unwrap().unwrap();
    assert_eq!(run.parameters, Some(parameters()));
    // New runs follow the imported events and messages.
    let begun = ok(store.begin_run(&other(), &record("next", "s"), 4, &[])).await;
    assert_eq!(begun.events_before, 8);
    let begun = ok(store.begin_run(&other(), &record("after", "x"), 1, &[])).await;
    assert_eq!(begun.events_before, 1);
}

/// Checks that an import ignores the approvals in the state of a run, because the file may have
/// been changed.
pub(crate) async fn an_import_ignores_approvals(place: Place) {
    let store = place.open().await;
    fill(&store).await;
    let text = export(&store, &me(), Some(&id("w"))).await;
    store.delete_session(&me(), &id("w")).await.unwrap();
    let state = "{ \"b\" : 1.0, \"a\":1e2}";
    let allowed = "{\"id\":\"working\",\"calls\":[{\"state\":{\"ready\":\"rm\"}}]}";
    assert!(text.contains(state) && text.contains("\"state\":\"waiting\""));
    for stands in ["waiting", "interrupted", "running"] {
        for ids in [ImportIdPolicy::Keep, ImportIdPolicy::New] {
            let doctored = text
                .replace(state, allowed)
                .replace("\"state\":\"waiting\"", &format!("\"state\":\"{stands}\""));
            let imported = store.import(&other(), doctored.as_bytes(), ids).await;
            let imported = imported.unwrap();
            let session = &imported.sessions[0];
            let runs = store.list_runs(&other(), Some(session), 9).await.unwrap();
            let [run] = runs.as_slice() else {
                panic!("{runs:?}");
            };
            assert_eq!(imported.cancelled, std::slice::from_ref(&run.id));
            assert_eq!(run.state, RunState::Finished);
            assert_eq!(run.outcome.as_deref(), Some("cancelled"));
            // The imported run cannot be continued.
            assert_eq!(store.load_snapshot(&other(), &run.id).await.unwrap(), None);
            let taken = store.acquire_run(&other(), &run.id).await;
            fails!(taken, Error::RunConflict { .. });
            // The messages are imported, and the session accepts a new run.
            let held = store.load_messages(&other(), session, 0).await.unwrap();
            assert_eq!(held, says(&["go"]));
            let (owner, next) = (other(), record("n", &session.0));
            store.begin_run(&owner, &next, 1, &[]).await.unwrap();
            let end = store.release_run("n", RunState::Finished, None, 1, &[]);
            end.await.unwrap();
            store.delete_session(&other(), session).await.unwrap();
        }
    }
    // A finished run must not have a state.
    let over = text.replace("\"state\":\"waiting\"", "\"state\":\"finished\"");
    let refused = import(&store, &over, ImportIdPolicy::Keep).await;
    fails!(refused, ImportError::Malformed { .. });
}

pub(crate) async fn large_messages_are_moved(place: Place) {
    const SIZE: usize = 3 << 19;
    let store = place.open().await;
    store.create_session(&me(), &session("s")).await.unwrap();
    let long = "y".repeat(SIZE);
    let messages = says(&["short", &long, &long, "short", &long, "short", "short"]);
    ok(store.begin_run(&me(), &record("r", "s"), 0, &messages)).await;
    // The events are appended with one call, so they are in one row.
    let event = |seq| StoredEvent {
        seq,
        json: format!("{{\"seq\":{seq},\"text\":\"{long}\"}}").into(),
    };
    let events: Vec<_> = (1..=4).map(event).collect();
    store.append_events("r", &events).await.unwrap();
    let snapshot = RunSnapshot {
        state: "{}".into(),
        from: 0,
        messages: messages.clone(),
    };
    store.save_snapshot("r", &snapshot).await.unwrap();
    release(&store, "r", RunState::Waiting, 7, &[]).await;
    let pieces: Vec<_> = store.export(&me(), None).collect().await;
    let pieces: Vec<String> = pieces.into_iter().map(Result::unwrap).collect();
    // Each message and each event is one line of the export.
    let sizes: Vec<usize> = pieces.iter().map(String::len).collect();
    assert_eq!(
        sizes.iter().filter(|size| **size > SIZE).count(),
        10,
        "{sizes:?}"
    );
    assert!(sizes.iter().all(|size| *size < SIZE + 200), "{sizes:?}");
    store.delete_session(&me(), &id("s")).await.unwrap();
    let text = pieces.concat();
    import(&store, &text, ImportIdPolicy::Keep).await.unwrap();
    let read = store.load_messages(&other(), &id("s"), 0).await.unwrap();
    assert_eq!(read, messages);
    let read = store.load_events(&other(), "r", 0, 9).await.unwrap();
    assert_eq!(read, events);
    let again = export(&store, &other(), None).await;
    let event_lines = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.contains("\"event\":"));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(event_lines(&again), event_lines(&text));
}

pub(crate) async fn an_export_of_one_session_holds_no_other(place: Place) {
    let store = place.open().await;
    fill(&store).await;
    let text = export(&store, &me(), Some(&id("s"))).await;
    let records = records(&text);
    let sessions: Vec<&Value> = records
        .iter()
        .filter_map(|record| record.get("session"))
        .collect();
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0]["id"], "s");
    assert_eq!(records.last().unwrap()["end"]["sessions"], 1);
    let strangers = export(&store, &other(), None).await;
    assert!(!strangers.contains("\"session\":"), "{strangers}");
    let mut pieces = store.export(&other(), Some(&id("s")));
    let mut last = None;
    while let Some(piece) = pieces.next().await {
        last = Some(piece);
    }
    fails!(last.unwrap(), Error::NotFound { .. });
}

pub(crate) async fn a_large_session_is_moved(place: Place) {
    let store = place.open().await;
    store.create_session(&me(), &session("s")).await.unwrap();
    let long = "y".repeat(20_000);
    let texts: Vec<&str> = vec![&long; 300];
    let messages = says(&texts);
    ok(store.begin_run(&me(), &record("r", "s"), 0, &messages)).await;
    for batch in 0..200 {
        let first = batch * 5 + 1;
        ok(store.append_events("r", &events(first..=first + 4))).await;
    }
    let mut pieces = 0;
    let mut largest = 0;
    let mut text = String::new();
    let mut export = store.export(&me(), None);
    while let Some(piece) = export.next().await {
        let piece = piece.unwrap();
        largest = largest.max(piece.len());
        text.push_str(&piece);
        pieces += 1;
    }
    assert!(
        pieces > 8 && largest < 2 << 20,
        "{pieces} pieces of at most {largest} bytes"
    );
    let imported = import(&store, &text, ImportIdPolicy::New).await.unwrap();
    let read = ok(store.load_messages(&other(), &imported[0], 0)).await;
    assert_eq!(read, messages);
    let runs = store.list_runs(&other(), None, 9).await.unwrap();
    assert_eq!(runs[0].last_event, 1000);
}

pub(crate) async fn existing_sessions_and_runs_are_not_imported_again(place: Place) {
    let store = place.open().await;
    fill(&store).await;
    let text = export(&store, &me(), None).await;
    store.delete_session(&me(), &id("empty")).await.unwrap();
    // The first session does not exist, but nothing is imported, because another one exists.
    let refused = import(&store, &text, ImportIdPolicy::Keep).await;
    fails!(refused, ImportError::Exists { id } if id.0 == "s");
    assert!(store.list_sessions(&other(), 9).await.unwrap().is_empty());
    ok(store.create_session(&me(), &session("empty"))).await;
    // A run of another session has the id of a run in the export.
    let one = export(&store, &me(), Some(&id("s"))).await;
    store.delete_session(&me(), &id("s")).await.unwrap();
    store.create_session(&me(), &session("y")).await.unwrap();
    ok(store.begin_run(&me(), &record("b", "y"), 0, &[])).await;
    let refused = import(&store, &one, ImportIdPolicy::Keep).await;
    fails!(refused, ImportError::RunExists { run } if run == "b");
    assert!(store.list_sessions(&other(), 9).await.unwrap().is_empty());
    store.create_session(&me(), &session("s")).await.unwrap();
}

pub(crate) async fn new_ids_make_another_session(place: Place) {
    let store = place.open().await;
    fill(&store).await;
    let text = export(&store, &me(), None).await;
    let before = records(&text);
    let imported = import(&store, &text, ImportIdPolicy::New).await.unwrap();
    assert_eq!(imported.len(), 4);
    assert_eq!(records(&export(&store, &me(), None).await), before);
    let s = &imported[1];
    let messages = store.load_messages(&other(), s, 0).await.unwrap();
    assert_eq!(
        messages,
        store.load_messages(&me(), &id("s"), 0).await.unwrap()
    );
    let runs = store.list_runs(&other(), Some(s), 9).await.unwrap();
    assert_eq!(runs.len(), 2);
    assert_eq!((runs[0].events_before, runs[0].last_event), (4, 4));
    let stored = ok(store.load_events(&other(), &runs[0].id, 0, 9)).await;
    assert_eq!(stored, events(1..=4));
    // Unfinished runs are imported as cancelled.
    for session in &imported[2..] {
        let runs = store.list_runs(&other(), Some(session), 9).await.unwrap();
        assert_eq!(runs[0].state, RunState::Finished);
        assert_eq!(runs[0].outcome.as_deref(), Some("cancelled"));
        assert_eq!(
            store.load_snapshot(&other(), &runs[0].id).await.unwrap(),
            None
        );
    }
}

pub(crate) async fn deeply_nested_json_is_not_imported(place: Place) {
    let store = place.open().await;
    fill(&store).await;
    let text = export(&store, &me(), Some(&id("s"))).await;
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let (event, answer) = ("{\"seq\":1,", "\"\u{1f600} \\\"]}\"");
    assert!(text.contains(event) && text.contains(answer), "{text}");
    for (levels, fits) in [(80, true), (96, false), (126, false)] {
        let deep_event = format!("{event}\"deep\":{},", nested(levels));
        let deep_text = format!("{answer},\"deep\":{}", nested(levels));
        for changed in [
            text.replacen(event, &deep_event, 1),
            text.replacen(answer, &deep_text, 1),
        ] {
            let imported = import(&store, &changed, ImportIdPolicy::New).await;
            assert_eq!(imported.is_ok(), fits, "{levels}: {imported:?}");
            if let Err(error) = imported {
                let message = error.to_string();
                assert!(
                    message.contains("nested more than 96 levels deep"),
                    "{message}"
                );
            }
        }
    }
}

pub(crate) async fn an_invalid_export_changes_nothing(place: Place) {
    let store = place.open().await;
    fill(&store).await;
    let text = export(&store, &me(), None).await;
    for name in ["empty", "s", "w"] {
        store.delete_session(&me(), &id(name)).await.unwrap();
    }
    release(&store, "working", RunState::Interrupted, 1, &[]).await;
    store.delete_session(&me(), &id("x")).await.unwrap();
    // The file is cut off after each number of lines.
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for end in 0..lines.len() {
        let cut = lines[..end].concat();
        let refused = import(&store, &cut, ImportIdPolicy::Keep).await;
        fails!(refused, ImportError::Malformed { .. });
    }
    // One record is missing or occurs twice.
    let closing = lines.len() - 1;
    for at in 0..closing {
        for copies in [0, 2] {
            let mut changed = lines.clone();
            changed.splice(at..=at, std::iter::repeat_n(lines[at], copies));
            let changed = changed.concat();
            let refused = import(&store, &changed, ImportIdPolicy::Keep).await;
            assert!(refused.is_err(), "line {at} {copies} times: {refused:?}");
        }
    }
    let newer = text.replacen("\"version\":1", "\"version\":2", 1);
    let newer = newer.replace("\"run\":", "\"march\":");
    let refused = import(&store, &newer, ImportIdPolicy::Keep).await;
    fails!(refused, ImportError::UnknownVersion { found: 2, known: 1 });
    for text in [
        "",
        "null",
        "{}",
        "{\"header\":{\"format\":\"x\",\"version\":1}}",
    ] {
        let refused = import(&store, text, ImportIdPolicy::Keep).await;
        fails!(refused, ImportError::Malformed { .. });
    }
    let earlier = "[{\"header\":{\"format\":\"switchboard-sessions\",\"version\":1}}\n]";
    let refused = import(&store, earlier, ImportIdPolicy::Keep)
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("f008d49"), "{refused}");
    let no_message = text.replace("\"role\":\"user\"", "\"role\":\"nobody\"");
    let refused = import(&store, &no_message, ImportIdPolicy::Keep).await;
    fails!(refused, ImportError::Malformed { .. });
    assert!(store.list_sessions(&other(), 9).await.unwrap().is_empty());
    // The failed imports left nothing, so the complete file can be imported.
    import(&store, &text, ImportIdPolicy::Keep).await.unwrap();
    assert_eq!(store.list_sessions(&other(), 9).await.unwrap().len(), 4);
}

pub(crate) async fn an_import_that_is_given_up_leaves_nothing(place: Place) {
    let store = place.open().await;
    store.create_session(&me(), &session("s")).await.unwrap();
    let long = "z".repeat(3 << 20);
    ok(store.append_messages(&me(), &id("s"), 0, &says(&[&long, "end"]))).await;
    let text = export(&store, &me(), None).await;
    store.delete_session(&me(), &id("s")).await.unwrap();
    let (mut sender, receiver) = tokio::io::duplex(1 << 20);
    let importing = {
        let store = store.clone();
        tokio::spawn(async move { store.import(&other(), receiver, ImportIdPolicy::Keep).await })
    };
    let most = text.len() - 10;
    tokio::io::AsyncWriteExt::write_all(&mut sender, &text.as_bytes()[..most])
        .await
        .unwrap();
    // The import waits for the rest of the file. Parts that are already written are not visible.
    assert!(store.list_sessions(&other(), 9).await.unwrap().is_empty());
    assert!(store.list_sessions(&me(), 9).await.unwrap().is_empty());
    importing.abort();
    assert!(importing.await.unwrap_err().is_cancelled());
    // After the queued writes, the id is not used.
    store.create_session(&me(), &session("s")).await.unwrap();
    assert!(ok(store.load_messages(&me(), &id("s"), 0)).await.is_empty());
}
