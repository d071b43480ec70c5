//! A run keeps its parameters when another process resumes it.

use std::path::{Path, PathBuf};

use futures_util::FutureExt as _;
use serde_json::{Value, json};
use switchboard_domain::{
    Principal, RunRecord, RunState, RunStore as _, Session, SessionId, SessionStore as _,
};
use switchboard_sessions::{Store, StoreOptions};
use switchboard_testkit::fake::{FakeModel, Gate};

use crate::{
    serving::{MODEL, Serving, call_left, place, says, with_server},
    slow_server::SlowServer,
    support::Place,
};

fn ask() -> Value {
    json!({"approve": "ask", "max_steps": 3, "temperature": 0.25})
}

fn tools_of(request: &Value) -> usize {
    request["tools"].as_array().map_or(0, Vec::len)
}

/// Returns the path of the session database that the program created.
pub(crate) fn database(folder: &Path) -> PathBuf {
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
            } else if entry.file_name() == "sessions.db" {
                return entry.path();
            }
        }
    }
    panic!("no sessions are kept");
}

/// Stores a run as a process does that ends before the first step of the run.
async fn begun_and_gone(place: &Place, parameters: Option<Value>) -> String {
    let options = StoreOptions::sqlite(database(place.path()));
    let store = Store::open(options).await.unwrap();
    let (owner, now) = (Principal::default(), "2026-11-21T12:00:00Z".to_owned());
    let run = format!("bare-{}", parameters.is_some());
    let session = Session {
        id: SessionId(format!("of-{run}")),
        title: String::new(),
        created_at: now.clone(),
        messages: 0,
    };
    store.create_session(&owner, &session).await.unwrap();
    let record = RunRecord {
        id: run.clone(),
        session: session.id,
        state: RunState::Running,
        model: MODEL.to_owned(),
        created_at: now.clone(),
        updated_at: now,
        events_before: 0,
        last_event: 0,
        outcome: None,
        parameters,
    };
    let said = switchboard_domain::Message::user("Look.").into();
    store.begin_run(&owner, &record, 0, &[said]).await.unwrap();
    store.close().await;
    run
}

/// Returns the parameters that the program stored with a run.
async fn parameters_of(place: &Place, run: &str) -> Option<Value> {
    let options = StoreOptions::sqlite(database(place.path()));
    let store = Store::open(options).await.unwrap();
    let record = store.find_run(&Principal::default(), run).await.unwrap();
    store.close().await;
    record.unwrap().parameters
}

async fn continued(server: &Serving, run: &str) {
    let path = format!("/runs/{run}/continue");
    let going = server.post(&path, &json!({})).await.expect(202);
    assert_eq!(going["state"], "running");
}

/// Checks that the run waits for a decision and that the tool was not called.
async fn is_asked(server: &Serving, slow: &mut SlowServer, run: &str) {
    let mut reader = server.follow_run(run).await;
    reader.until("tool_awaiting_approval").await;
    let word = json!({"decision": "deny", "reason": "no"});
    let path = format!("/runs/{run}/approvals/a");
    server.post(&path, &word).await.expect(202);
    let report = server.report(run).await;
    assert_eq!(report["tool_calls"][0]["failure"], "denied", "{report}");
    // The run has ended, so a call would have arrived by now.
    let called = slow.called().now_or_never();
    assert!(called.is_none(), "{called:?}");
}

#[tokio::test]
async fn a_resumed_run_keeps_its_approvals_and_its_lack_of_tools() {
    let mut slow = SlowServer::start().await;
    let fake = FakeModel::start().await.unwrap();
    let mut config = with_server(&slow);
    config["approve"] = json!("all");
    let place = place(&fake, &config);
    let server = Serving::start(&place, &[]).await;
    // Both runs are stored with their parameters before the model is called.
    let held = Gate::new();
    fake.answer(says("Done.").held_by(&held));
    let without = json!({"message": "Look.", "parameters": {"tools": false}});
    let (without, _) = server.begin(without).await;
    assert_eq!(tools_of(fake.request(0).await.json()), 0);
    fake.answer(call_left().held_by(&held));
    let with_approvals = json!({"message": "Look.", "parameters": ask()});
    let (with_approvals, _) = server.begin(with_approvals).await;
    assert_eq!(tools_of(fake.request(1).await.json()), 2);
    server.kill().await;

    let server = Serving::start(&place, &[]).await;
    fake.answer(says("Done."));
    continued(&server, &without).await;
    assert_eq!(server.report(&without).await["answer"], "Done.");
    let request = fake.request(2).await;
    assert_eq!(tools_of(request.json()), 0, "{}", request.json());
    fake.answer(call_left());
    fake.answer(says("Done."));
    continued(&server, &with_approvals).await;
    is_asked(&server, &mut slow, &with_approvals).await;
    assert_eq!(fake.request(3).await.json()["temperature"], 0.25);
}

#[tokio::test]
async fn a_run_without_steps_restarts_with_its_original_parameters() {
    let mut slow = SlowServer::start().await;
    let fake = FakeModel::start().await.unwrap();
    let mut config = with_server(&slow);
    config["approve"] = json!("all");
    let place = place(&fake, &config);
    // Parameters as the server stored them, for each set.
    let mut wishes = Vec::new();
    let server = Serving::start(&place, &[]).await;
    for parameters in [json!({"tools": false}), ask()] {
        fake.answer(says("Done."));
        let asked = json!({"message": "Look.", "parameters": parameters});
        let report = server.post("/chat", &asked).await.expect(200);
        let run = report["run_id"].as_str().unwrap().to_owned();
        let shown = server.run(&run).await;
        assert!(shown["run"].get("parameters").is_none(), "{shown}");
        wishes.push(run);
    }
    server.kill().await;
    let (without, with_approvals) = (
        parameters_of(&place, &wishes[0]).await,
        parameters_of(&place, &wishes[1]).await,
    );
    assert!(
        !with_approvals
            .as_ref()
            .unwrap()
            .to_string()
            .contains("sk-secret")
    );

    let bare = begun_and_gone(&place, without).await;
    let server = Serving::start(&place, &[]).await;
    assert_eq!(server.run(&bare).await["run"]["state"], "interrupted");
    fake.answer(says("Done."));
    continued(&server, &bare).await;
    assert_eq!(server.report(&bare).await["answer"], "Done.");
    let request = fake.request(2).await;
    assert_eq!(tools_of(request.json()), 0, "{}", request.json());
    let shown = server.get("/sessions/of-bare-true").await.expect(200);
    assert_eq!(shown["messages"].as_array().unwrap().len(), 2, "{shown}");
    assert_eq!(server.delete("/sessions/of-bare-true").await.status, 204);
    server.kill().await;

    // The stored run has no parameters, because another version wrote it. It is not resumed,
    // because its approval settings are unknown.
    let unknown = begun_and_gone(&place, None).await;
    let bare = begun_and_gone(&place, with_approvals).await;
    let server = Serving::start(&place, &[]).await;
    let path = format!("/runs/{unknown}");
    let refused = server.post(&format!("{path}/continue"), &json!({})).await;
    assert_eq!(refused.problem(409), "conflict");
    let detail = refused.json()["detail"].to_string();
    assert!(
        detail.contains("/cancel") && detail.contains("parameters are unknown"),
        "{detail}"
    );
    assert_eq!(server.run(&unknown).await["run"]["state"], "interrupted");
    let ended = server.post(&format!("{path}/cancel"), &json!({})).await;
    assert_eq!(ended.expect(202)["state"], "finished");

    fake.answer(call_left());
    fake.answer(says("Done."));
    continued(&server, &bare).await;
    is_asked(&server, &mut slow, &bare).await;
    let request = fake.request(3).await;
    assert_eq!(request.json()["temperature"], 0.25, "{}", request.json());
}

/// The terminal resumes runs of the server and vice versa, because they share one store.
#[tokio::test]
async fn the_terminal_resumes_a_run_with_its_original_parameters() {
    let slow = SlowServer::start().await;
    let fake = FakeModel::start().await.unwrap();
    let place = place(&fake, &with_server(&slow));
    fake.answer(says("Done."));
    let ask = [
        "ask",
        "--session",
        "first",
        "--no-tools",
        "--max-steps",
        "3",
        "Look.",
    ];
    place.run(ask).await.exits(0);
    assert_eq!(tools_of(fake.request(0).await.json()), 0);
    let server = Serving::start(&place, &[]).await;
    let shown = server.get("/sessions/first").await.expect(200);
    let run = shown["runs"][0]["id"].as_str().unwrap().to_owned();
    server.kill().await;
    let parameters = parameters_of(&place, &run).await;
    assert_eq!(parameters.as_ref().unwrap()["without_tools"], true);
    assert_eq!(
        parameters.as_ref().unwrap()["options"]["limits"]["max_steps"],
        3
    );

    begun_and_gone(&place, parameters).await;
    fake.answer(says("Done."));
    let chat = ["chat", "--session", "of-bare-true"];
    let talked = place.run_with_input(chat, "/continue\n").await.exits(0);
    assert!(talked.stdout.contains("Done."), "{talked}");
    let request = fake.request(1).await;
    assert_eq!(tools_of(request.json()), 0, "{}", request.json());
    begun_and_gone(&place, None).await;
    let chat = ["chat", "--session", "of-bare-false"];
    let talked = place.run_with_input(chat, "/continue\n/abandon\n").await;
    talked.stderr_contains("its parameters are unknown");
    assert!(talked.stderr.contains("the run is discarded"), "{talked}");
}
