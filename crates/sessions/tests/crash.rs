//! Checks that acknowledged writes survive `SIGKILL` at any time, and that no write is stored in
//! part.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "functions of tests: a failure ends the test"
)]

use std::{
    collections::HashMap,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
};

use serde_json::json;
use switchboard_domain::{
    Message, Principal, RunRecord, RunSnapshot, RunState, RunStore as _, Session, SessionId,
    SessionStore as _, StoredEvent,
};
use switchboard_sessions::{Store, StoreOptions};

/// Environment variables with the path of the database and a prefix for the ids of the child
/// process.
const DATABASE: &str = "SWITCHBOARD_CRASH_DATABASE";
const ROUND: &str = "SWITCHBOARD_CRASH_ROUND";

/// Beginning of the lines that the child process writes. Other lines are from the test runner.
const MARK: &str = "acknowledged ";

const WRITERS: usize = 4;
const STEPS: u64 = 3;

/// The child process, which is this test program again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "is the child process of the other test"]
async fn child_that_is_killed() {
    let Ok(path) = std::env::var(DATABASE) else {
        return;
    };
    let round = std::env::var(ROUND).unwrap();
    let store = Store::open(StoreOptions::sqlite(path)).await.unwrap();
    let writers: Vec<_> = (0..WRITERS)
        .map(|at| tokio::spawn(write(store.clone(), format!("{round}-{at}"))))
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
}

async fn write(store: Store, name: String) {
    let session = Session {
        id: SessionId(name.clone()),
        title: String::new(),
        created_at: "2026-11-21T20:00:00Z".into(),
        messages: 0,
    };
    store.create_session(&me(), &session).await.unwrap();
    // The child is killed long before it has done all rounds.
    for at in 0..100_000_u64 {
        let run = format!("{name}-{at}");
        let begun = store
            .begin_run(&me(), &record(&run, &name), at * 2, &says(&["question"]))
            .await;
        begun.unwrap();
        println!("{MARK}begun {run} 0");
        for step in 1..=STEPS {
            let events: Vec<_> = (step * 3 - 2..=step * 3).map(event).collect();
            store.append_events(&run, &events).await.unwrap();
            println!("{MARK}events {run} {}", step * 3);
            store.save_snapshot(&run, &snapshot(step)).await.unwrap();
            println!("{MARK}saved {run} {step}");
        }
        let outcome = Some("completed".to_owned());
        let answer = says(&["answer"]);
        let after = at * 2 + 1;
        let released = store
            .release_run(&run, RunState::Finished, outcome, after, &answer)
            .await;
        released.unwrap();
        println!("{MARK}released {run} 0");
    }
}

fn me() -> Principal {
    Principal::default()
}

fn says(texts: &[&str]) -> Vec<Arc<Message>> {
    texts
        .iter()
        .map(|text| Message::user(*text).into())
        .collect()
}

fn record(run: &str, session: &str) -> RunRecord {
    RunRecord {
        id: run.into(),
        session: SessionId(session.into()),
        state: RunState::Running,
        model: "m".into(),
        created_at: "2026-11-21T20:00:00Z".into(),
        updated_at: String::new(),
        events_before: 0,
        last_event: 0,
        outcome: None,
        parameters: None,
    }
}

fn event(seq: u64) -> StoredEvent {
    StoredEvent {
        seq,
        json: json!({ "seq": seq }).to_string().into(),
    }
}

/// Returns the snapshot of a step. It replaces the last message of the previous step and adds two
/// messages.
fn snapshot(step: u64) -> RunSnapshot {
    let from = (step - 1) * 2;
    let replaced = from.saturating_sub(1);
    let new: Vec<String> = (replaced..step * 2)
        .map(|at| format!("{at} of {step}"))
        .collect();
    let new: Vec<&str> = new.iter().map(String::as_str).collect();
    RunSnapshot {
        state: json!({ "step": step }).to_string().into(),
        from: replaced,
        messages: says(&new),
    }
}

/// Returns the whole conversation after a step.
fn conversation(step: u64) -> Vec<Arc<Message>> {
    let mut all = Vec::new();
    for step in 1..=step {
        let RunSnapshot { from, messages, .. } = snapshot(step);
        all.truncate(usize::try_from(from).unwrap());
        all.extend(messages);
    }
    all
}

/// The acknowledged state of a run.
#[derive(Debug, Default, Clone, Copy)]
struct Known {
    last_event: u64,
    step: u64,
    is_over: bool,
}

#[tokio::test]
async fn acknowledged_writes_survive_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let mut known = HashMap::new();
    // The child is killed after these numbers of lines: early, in the middle, and after checkpoints
    // of the write-ahead log.
    let lines = [
        0, 1, 2, 3, 4, 5, 6, 7, 9, 11, 13, 17, 23, 31, 50, 80, 130, 210, 340, 550, 900, 1500,
    ];
    for (round, lines) in lines.into_iter().enumerate() {
        kill_after(lines, round, &path, &mut known);
        // The store is opened immediately after the kill.
        let store = Store::open(StoreOptions::sqlite(&path)).await.unwrap();
        check(&store, &known, round).await;
        store.close().await;
    }
    assert!(known.values().filter(|run| run.is_over).count() > 100);
}

fn kill_after(lines: usize, round: usize, path: &Path, known: &mut HashMap<String, Known>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "child_that_is_killed",
            "--ignored",
            "--nocapture",
        ])
        .env(DATABASE, path)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut seen = 0;
    let mut is_killed = false;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        if seen >= lines && !is_killed {
            child.kill().unwrap();
            is_killed = true;
        }
        // An incomplete last line is not an acknowledgement.
        let line = line.unwrap();
        // The first line may begin with text of the test runner.
        let Some(at) = line.find(MARK) else { continue };
        let words: Vec<&str> = line[at + MARK.len()..].split(' ').collect();
        let &[what, run, number] = &words[..] else {
            continue;
        };
        let Ok(number) = number.parse() else { continue };
        seen += 1;
        let run: &mut Known = known.entry(run.to_owned()).or_default();
        match what {
            "begun" => {}
            "events" => run.last_event = number,
            "saved" => run.step = number,
            "released" => run.is_over = true,
            _ => panic!("{line}"),
        }
    }
    child.wait().unwrap();
    assert!(
        is_killed && seen >= lines,
        "the child ended by itself after {seen} lines"
    );
}

async fn check(store: &Store, known: &HashMap<String, Known>, round: usize) {
    let stored: HashMap<String, RunRecord> = store
        .list_runs(&me(), None, u32::MAX)
        .await
        .unwrap()
        .into_iter()
        .map(|run| (run.id.clone(), run))
        .collect();
    for (run, known) in known {
        let stored = stored
            .get(run)
            .unwrap_or_else(|| panic!("round {round}: {run} is gone"));
        assert!(
            stored.last_event >= known.last_event,
            "{stored:?} {known:?}"
        );
        assert!(
            !known.is_over || stored.state == RunState::Finished,
            "{stored:?} {known:?}"
        );
    }
    let mut messages: HashMap<&str, u64> = HashMap::new();
    for (id, run) in &stored {
        // Runs of earlier rounds were already checked.
        if !id.starts_with(&format!("{round}-")) {
            continue;
        }
        let known = known.get(id).copied().unwrap_or_default();
        // Each append has three events, and is stored completely or not at all.
        assert_eq!(run.last_event % 3, 0, "{run:?}");
        let events = store.load_events(&me(), id, 0, u32::MAX).await.unwrap();
        let expected: Vec<_> = (1..=run.last_event).map(event).collect();
        assert_eq!(events, expected);
        let snapshot = store.load_snapshot(&me(), id).await.unwrap();
        let count = messages.entry(&run.session.0).or_default();
        if run.state == RunState::Finished {
            assert_eq!(snapshot, None);
            assert_eq!(run.outcome.as_deref(), Some("completed"));
            *count += 2;
            continue;
        }
        *count += 1;
        assert_eq!(run.state, RunState::Interrupted);
        if let Some(snapshot) = snapshot {
            let state: serde_json::Value = serde_json::from_str(&snapshot.state).unwrap();
            let step = state["step"].as_u64().unwrap();
            assert!(step >= known.step, "{run:?} {known:?}");
            assert_eq!(snapshot.messages, conversation(step));
        } else {
            assert_eq!(known.step, 0, "{run:?}");
        }
        // The run can be continued.
        store.acquire_run(&me(), id).await.unwrap();
        store
            .append_events(id, &[event(run.last_event + 1)])
            .await
            .unwrap();
    }
    for session in store.list_sessions(&me(), u32::MAX).await.unwrap() {
        if let Some(count) = messages.get(session.id.0.as_str()) {
            assert_eq!(session.messages, *count, "{session:?}");
            let stored = store.load_messages(&me(), &session.id, 0).await.unwrap();
            assert_eq!(stored.len() as u64, *count);
        }
    }
}
