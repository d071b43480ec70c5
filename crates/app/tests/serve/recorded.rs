//! `serve --record` and `serve --replay`: concurrent clients, replay without a model, secrets, and
//! the end of the server.
#![cfg(unix)]

use std::io::Write as _;

use serde_json::{Value, json};
use switchboard_testkit::fake::{Answer, FakeModel, Gate, Request, Say};

use crate::{
    serving::{Answered, Events, MODEL, Serving, no_servers, place, says, text},
    support::{KEY, Place, WORDS, counted_server},
};

/// Access token of the client. It does not look like a secret.
const TOKEN: &str = "ann.may.come.in.again";
const FILE: &str = "served.jsonl";

fn config() -> String {
    let serve = json!({"tokens": [{"token": TOKEN, "user": "ann"}], "drain_time": 0.1});
    json!({"mcp_servers": {"shop": counted_server()}, "serve": serve}).to_string()
}

fn live(fake: &FakeModel) -> Place {
    Place::with_secrets(fake).with_file("switchboard.json", &config())
}

/// Creates a working folder with only the recording: no key, no address, no passphrase.
fn elsewhere(recording: &str) -> Place {
    Place::new()
        .with_file("switchboard.json", &config())
        .with_file(FILE, recording)
}

async fn serving(place: &Place, options: &[&str]) -> Serving {
    Serving::start(place, options).await.with_token(TOKEN)
}

async fn replaying(place: &Place) -> Serving {
    serving(place, &["--replay", FILE]).await
}

/// A model that creates a ticket in the same way for each client and repeats the result of the
/// call. It answers only after two clients have sent a request.
fn clerk(gate: Gate) -> impl Fn(usize, &Request) -> Answer + Send + Sync + 'static {
    move |number, request| {
        let messages = request.json()["messages"].as_array().unwrap().clone();
        let last = messages.last().unwrap();
        let said = last["content"].as_str().unwrap_or_default();
        let ticket = json!({"customer_id": 7, "subject": "Late", "description": "It is late.", "priority": "high"});
        let answer = if last["role"] == "tool" {
            Answer::openai_chat([Say::text("I made "), Say::text(said)])
        } else if said.contains("ticket") {
            let call = format!("call_{number}");
            Answer::openai_chat([Say::call(call, "shop__create_support_ticket", ticket)])
        } else {
            Answer::openai_chat([Say::text(format!("You said: {said}"))])
        };
        answer.held_by(&gate)
    }
}

fn ag_ui(thread: &str, said: &[(&str, &str)]) -> Value {
    let messages = said.iter().enumerate().map(|(at, (role, content))| {
        json!({"id": format!("{thread}-{at}"), "role": role, "content": content})
    });
    json!({
        "threadId": thread, "runId": said.len().to_string(), "messages": messages.collect::<Vec<_>>(),
        "tools": [], "context": [], "state": {}, "forwardedProps": {},
    })
}

/// Returns the text in the events of AG-UI.
fn ag_ui_text(answered: &Answered) -> String {
    assert_eq!(answered.status, 200, "{answered:?}");
    let data = answered.text.lines();
    let data = data.filter_map(|line| line.strip_prefix("data: "));
    let events = data.map(|data| serde_json::from_str::<Value>(data).unwrap());
    let deltas = events.filter(|event| event["type"] == "TEXT_MESSAGE_CONTENT");
    deltas
        .map(|event| event["delta"].as_str().unwrap().to_owned())
        .collect()
}

async fn by_ag_ui(server: &Serving, body: &Value) -> String {
    ag_ui_text(&server.post("/ag-ui", body).await)
}

async fn by_openai(server: &Serving, question: &str) -> String {
    let messages = json!([{"role": "user", "content": question}]);
    let body = json!({"model": "gpt-4o-mini", "messages": messages});
    let answered = server.post("/v1/chat/completions", &body).await.expect(200);
    let message = &answered["choices"][0]["message"];
    message["content"].as_str().unwrap().to_owned()
}

async fn by_chat(server: &Serving, question: &str) -> String {
    let answered = server.post("/chat", &json!({"message": question})).await;
    answered.expect(200)["answer"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn concurrent_conversations_are_replayed() {
    let fake = FakeModel::start().await.unwrap();
    let gate = Gate::new();
    fake.otherwise(clerk(gate.clone()));
    let place = live(&fake);
    let server = serving(&place, &["-m", MODEL, "--record", FILE]).await;
    let (for_ann, for_bob) = ("A ticket for Ann", "A ticket for Bob");
    let thread = ag_ui("thread", &[("user", for_ann)]);
    let both_asked = async {
        fake.request(1).await;
        gate.open();
    };
    let (ann, bob, ()) = tokio::join!(
        by_ag_ui(&server, &thread),
        by_openai(&server, for_bob),
        both_asked
    );
    assert_ne!(ann, bob, "each has a ticket of its own");
    // One conversation continues, and other clients send the same questions.
    let then = [
        ("user", for_ann),
        ("assistant", ann.as_str()),
        ("user", "Thanks"),
    ];
    let thanked = by_ag_ui(&server, &ag_ui("thread", &then)).await;
    assert_eq!(thanked, "You said: Thanks");
    let (same, other) = ("A ticket", "Just a ticket");
    let tickets = [
        by_chat(&server, same).await,
        by_openai(&server, same).await,
        by_chat(&server, other).await,
    ];
    let secrets = format!("My token is {TOKEN}, my key {KEY}; {WORDS}");
    let transcript = by_chat(&server, &secrets).await;
    assert!(
        transcript.contains(TOKEN) && transcript.contains(WORDS),
        "{transcript}"
    );
    server.terminate();
    let (code, said) = server.ended().await;
    assert_eq!(code, 0, "{said}");
    assert_eq!(place.server_starts(), 1);
    let recorded = place.read_file(FILE);
    for secret in [TOKEN, KEY, WORDS] {
        assert!(!recorded.contains(secret), "{secret}: {recorded}");
    }
    assert!(recorded.ends_with('\n'));
    drop(fake);

    let other_place = elsewhere(&recorded);
    let server = replaying(&other_place).await;
    let models = server.get("/v1/models").await.expect(200);
    assert!(models.to_string().contains(MODEL), "{models}");
    let tools = server.get("/mcp/tools").await.expect(200);
    assert!(tools.to_string().contains("shop__create_support_ticket"));
    // The replay gets the requests in another order, and two of them at the same time.
    assert_eq!(by_chat(&server, other).await, tickets[2]);
    let (bob_again, ann_again) =
        tokio::join!(by_openai(&server, for_bob), by_ag_ui(&server, &thread));
    assert_eq!((ann_again, bob_again), (ann.clone(), bob));
    let thanked_again = by_ag_ui(&server, &ag_ui("thread", &then)).await;
    assert_eq!(thanked_again, thanked);
    // Equal questions get the recorded answers in the recorded order, independent of the client.
    assert_eq!(by_openai(&server, same).await, tickets[0]);
    assert_eq!(by_chat(&server, same).await, tickets[1]);
    let secrets = "My token is another, my key mine; open sesame";
    let transcript = by_chat(&server, secrets).await;
    assert!(transcript.contains("[redacted]"), "{transcript}");
    // A recorded answer is returned only once. The error for an unknown question quotes the
    // question.
    for (question, why) in [
        (same, "restart the replay"),
        ("A cake", "ends with `\"A cake\"`"),
    ] {
        let refused = server.post("/chat", &json!({"message": question})).await;
        let text = refused.text.replace("\\\"", "\"");
        for said in ["already used", why] {
            assert!(text.contains(said), "{said}: {text}");
        }
    }
    assert_eq!(other_place.server_starts(), 0);
    server.terminate();
    assert_eq!(server.ended().await.0, 0);
}

#[tokio::test]
async fn a_killed_server_leaves_the_finished_recordings() {
    let fake = FakeModel::start().await.unwrap();
    let gate = Gate::new();
    fake.answer(says("All of it."));
    fake.answer(
        Answer::openai_chat([Say::text("The first half"), Say::text(" and the second.")])
            .gate_before(2, &gate),
    );
    let place = live(&fake);
    let server = serving(&place, &["-m", MODEL, "--record", FILE]).await;
    by_chat(&server, "First").await;
    let (run, _) = server.begin(json!({"message": "Second"})).await;
    let mut reader = server.follow_run(&run).await;
    reader.until("text_delta").await;
    server.kill().await;
    let recorded = place.read_file(FILE);
    let lines: Vec<&str> = recorded.lines().collect();
    assert!(recorded.ends_with('\n') && lines.len() > 3, "{recorded}");
    // The recording ends within a line, as after a kill of the server.
    let half = &lines[lines.len() - 1][..40];
    let place = elsewhere(&format!("{recorded}{half}"));
    let server = replaying(&place).await;
    let without_tools = json!({"message": "First", "parameters": {"tools": false}});
    let refused = server.post("/chat", &without_tools).await.text;
    assert!(refused.contains("differs in tools"), "{refused}");
    assert_eq!(by_chat(&server, "First").await, "All of it.");
    let refused = server.post("/chat", &json!({"message": "Second"})).await;
    assert!(refused.text.contains("the recording has no response from"));
}

#[tokio::test]
async fn a_stopped_server_leaves_the_partial_recording() {
    let fake = FakeModel::start().await.unwrap();
    let gate = Gate::new();
    fake.answer(
        Answer::openai_chat([Say::text("The first half"), Say::text(" and the second.")])
            .gate_before(2, &gate),
    );
    let place = live(&fake);
    let server = serving(&place, &["-m", MODEL, "--record", FILE]).await;
    let (run, _) = server.begin(json!({"message": "Tell"})).await;
    let mut reader = server.follow_run(&run).await;
    reader.until("text_delta").await;
    server.terminate();
    let (code, said) = server.ended().await;
    assert_eq!(code, 0, "{said}");
    let place = elsewhere(&place.read_file(FILE));
    let server = replaying(&place).await;
    let (run, _) = server.begin(json!({"message": "Tell"})).await;
    let response = server.request(reqwest::Method::GET, &format!("/runs/{run}/events"));
    let events = Events::of(response.send().await.unwrap())
        .await
        .rest()
        .await;
    assert_eq!(text(&events), "The first half");
    let end = events.last().unwrap().data.to_string();
    assert!(end.contains("the recording ends here"), "{end}");
}

#[tokio::test]
async fn recording_errors_appear_before_the_server_listens() {
    let fake = FakeModel::start().await.unwrap();
    fake.answer(says("Yes."));
    let place = place(&fake, &no_servers()).with_file("notes.txt", "precious");
    let server = Serving::start(&place, &["--record", FILE]).await;
    by_chat(&server, "Are you there?").await;
    let before = place.read_file(FILE);
    for (args, said) in [
        (&["--record", FILE][..], "another run is recording to it"),
        (
            &["--record", "notes.txt"],
            "the file exists and is not a recording",
        ),
        (&["--record", "no/such/folder"], "cannot record to"),
        (&["--record", "a", "--replay", FILE], "cannot be used with"),
        (&["--replay", "gone.jsonl"], "file or folder not found"),
        (&["--replay", "notes.txt"], "the file is not a recording"),
        (
            &["--replay", FILE, "-m", "acme/one"],
            "no responses from acme/one",
        ),
    ] {
        let args = [&["serve", "--bind", "127.0.0.1:0"], args].concat();
        let done = place.run(args).await;
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{done}");
        assert!(done.stderr.contains(said), "{said}: {done}");
        assert!(!done.stderr.contains("listening on"), "{done}");
    }
    let notes = place.read_file("notes.txt");
    assert_eq!(notes, "precious");
    assert_eq!(place.read_file(FILE), before);
    server.terminate();
    assert_eq!(server.ended().await.0, 0);
    // An earlier recording is kept until the first response of the new recording.
    let before = place.read_file(FILE);
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(place.path().join(FILE))
        .unwrap();
    file.write_all(b"\n").unwrap();
    let server = Serving::start(&place, &["--record", FILE]).await;
    server.terminate();
    assert_eq!(server.ended().await.0, 0);
    assert_eq!(place.read_file(FILE), format!("{before}\n"));
}

#[tokio::test]
async fn a_failed_recording_is_reported_and_runs_continue() {
    let fake = FakeModel::start().await.unwrap();
    fake.answer(says("Yes."));
    fake.answer(says("Still."));
    let place = place(&fake, &no_servers());
    let pipe = place.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    // Opening one end of the pipe blocks until the other end is opened.
    let opened = tokio::task::spawn_blocking(|| std::fs::File::open(pipe).unwrap());
    let server = Serving::start(&place, &["--record", "pipe"]).await;
    drop(opened.await.unwrap());
    assert_eq!(by_chat(&server, "Are you there?").await, "Yes.");
    assert_eq!(by_chat(&server, "And now?").await, "Still.");
    server.terminate();
    let (code, said) = server.ended().await;
    assert_eq!(code, 1, "{said}");
    let warnings = said.matches("recording to pipe").count();
    assert_eq!(warnings, 1, "{said}");
    assert!(said.contains("cannot write the recording"), "{said}");
}
