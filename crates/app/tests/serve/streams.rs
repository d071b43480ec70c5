//! Clients that disconnect from an event stream and reconnect.

use serde_json::json;
use switchboard_testkit::fake::{Answer, FakeModel, Gate, Say};

use crate::serving::{Events, Serving, ids, kinds, no_servers, place, says, text};

/// Returns an answer in three words, with a gate before the second and one before the third.
fn slowly(first: &Gate, second: &Gate) -> Answer {
    let said = ["one ", "two ", "three"].map(Say::text);
    Answer::openai_chat(said)
        .gate_before(3, second)
        .gate_before(2, first)
}

#[tokio::test]
async fn a_reconnected_reader_misses_no_event() {
    let fake = FakeModel::start().await.unwrap();
    let (first, second) = (Gate::new(), Gate::new());
    fake.answer(slowly(&first, &second));
    let server = Serving::start_owned(place(&fake, &no_servers()), &[]).await;
    let (run, session) = server.begin(json!({"message": "Count."})).await;
    let path = format!("/runs/{run}/events");

    let mut reader = server.follow(&path).await;
    let seen = reader.until("text_delta").await;
    assert_eq!(text(&seen), "one ");
    assert_eq!(server.run(&run).await["run"]["state"], "running");
    drop(reader);
    first.open();

    // Another client reads the events from the beginning while the run is active.
    let mut other = server.follow(&path).await;
    other.until("text_delta").await;
    assert_eq!(text(&other.until("text_delta").await), "two ");

    // The first client reconnects as a browser does: with the header `Last-Event-ID` and the
    // original URL.
    let last = seen.last().unwrap().id;
    let back = server
        .request(reqwest::Method::GET, &path)
        .header("last-event-id", last);
    let mut reader = Events::of(back.send().await.unwrap()).await;
    let mut again = reader.until("text_delta").await;
    second.open();
    again.extend(reader.rest().await);
    assert_eq!(
        ids(&again),
        (last + 1..=again.last().unwrap().id).collect::<Vec<_>>()
    );
    assert_eq!(text(&again), "two three");
    assert_eq!(kinds(&again).last(), Some(&"run_finished"));
    let others = other.rest().await;
    assert_eq!(others.last().unwrap(), again.last().unwrap());

    // After the run, the stored events are the same, also after a given event number.
    let stored = server.follow(&path).await.rest().await;
    assert_eq!([seen, again].concat(), stored);
    let after = server
        .follow(&format!("{path}?after={last}"))
        .await
        .rest()
        .await;
    assert_eq!(after[..], stored[usize::try_from(last).unwrap()..]);
    let whole = server.session(&session).await;
    assert_eq!(whole["messages"][1]["parts"][0]["text"], "one two three");
}

#[tokio::test]
async fn a_stream_follows_all_runs_of_a_session() {
    let fake = FakeModel::start().await.unwrap();
    let gate = Gate::new();
    fake.answer(says("First."));
    fake.answer(Answer::openai_chat([Say::text("Sec"), Say::text("ond.")]).gate_before(2, &gate));
    fake.answer(says("Third."));
    let server = Serving::start_owned(place(&fake, &no_servers()), &[]).await;
    let session = server.post("/sessions", &json!({})).await.expect(201)["id"].clone();
    let path = format!("/sessions/{}/events", session.as_str().unwrap());
    let mut reader = server.follow(&path).await;

    let ask = |message: &str| json!({"message": message, "session_id": session});
    server.begin(ask("one")).await;
    let first = reader.until("run_finished").await;
    server.begin(ask("two")).await;
    let mut second = reader.until("text_delta").await;
    assert_eq!(text(&second), "Sec");
    // During the second run, another client continues from the middle of the first run.
    let mut other = server.follow(&format!("{path}?after=2")).await;
    gate.open();
    second.extend(reader.until("run_finished").await);
    assert_eq!(text(&second), "Second.");
    let all = [first.clone(), second].concat();
    assert_eq!(ids(&all), (1..=all.last().unwrap().id).collect::<Vec<_>>());
    let mut theirs = other.until("run_finished").await;
    theirs.extend(other.until("run_finished").await);
    assert_eq!(theirs[..], all[2..]);
    // The events of each run are numbered from 1.
    assert_eq!(all[first.len()].data["seq"], 1);

    // Both streams stay open for the third run.
    server.begin(ask("three")).await;
    assert_eq!(text(&reader.until("run_finished").await), "Third.");
    assert_eq!(text(&other.until("run_finished").await), "Third.");
    // The streams end when the session is deleted.
    assert_eq!(
        server.delete(&path.replace("/events", "")).await.status,
        204
    );
    assert_eq!(reader.next().await, None);
    assert_eq!(other.next().await, None);
}

#[tokio::test]
async fn a_disconnected_client_does_not_end_a_run() {
    let fake = FakeModel::start().await.unwrap();
    let gate = Gate::new();
    fake.answer(
        Answer::openai_chat([Say::text("still "), Say::text("here")]).gate_before(2, &gate),
    );
    let server = Serving::start_owned(place(&fake, &no_servers()), &[]).await;
    let session = server.post("/sessions", &json!({})).await.expect(201)["id"].clone();
    let path = format!("/sessions/{}", session.as_str().unwrap());
    let mut reader = server.follow(&format!("{path}/events")).await;

    let asked = json!({"message": "Are you there?", "session_id": session});
    let foreground = tokio::spawn(server.posting("/chat", &asked).send());
    reader.until("text_delta").await;
    foreground.abort();
    assert!(foreground.await.unwrap_err().is_cancelled());
    gate.open();
    let rest = reader.until("run_finished").await;
    assert_eq!(rest.last().unwrap().data["report"]["answer"], "still here");
    let shown = server.get(&path).await.expect(200);
    assert_eq!(shown["messages"][1]["parts"][0]["text"], "still here");
}

#[tokio::test]
async fn a_slow_reader_does_not_block_others() {
    const WORDS: usize = 4_000;
    let fake = FakeModel::start().await.unwrap();
    let word = "x".repeat(1_000);
    fake.answer(Answer::openai_chat(
        (0..WORDS).map(|n| Say::text(format!("{n} {word}\n"))),
    ));
    let server = Serving::start_owned(place(&fake, &no_servers()), &[]).await;
    let session = server.post("/sessions", &json!({})).await.expect(201)["id"].clone();
    let path = format!("/sessions/{}/events", session.as_str().unwrap());
    // The client reads only the head of the response while the server sends 4 MB.
    let stuck = server
        .request(reqwest::Method::GET, &path)
        .send()
        .await
        .unwrap();
    let asked = json!({"message": "Count.", "session_id": session});
    let report = server.post("/chat", &asked).await.expect(200);
    assert!(
        report["answer"]
            .as_str()
            .unwrap()
            .ends_with(&format!("{} {word}\n", WORDS - 1))
    );
    // The client then reads all events, although most of them are no longer in memory.
    let mut late = Events::of(stuck).await;
    let events = late.until("run_finished").await;
    assert_eq!(
        ids(&events),
        (1..=events.last().unwrap().id).collect::<Vec<_>>()
    );
    assert_eq!(text(&events), report["answer"].as_str().unwrap());
}

#[tokio::test]
async fn an_idle_stream_sends_keep_alive_comments() {
    let fake = FakeModel::start().await.unwrap();
    let gate = Gate::new();
    fake.answer(says("late").held_by(&gate));
    let mut config = no_servers();
    config["serve"] = json!({"keep_alive": 0.05});
    let server = Serving::start_owned(place(&fake, &config), &[]).await;
    let (run, _) = server.begin(json!({"message": "Hi"})).await;
    let mut reader = server.follow_run(&run).await;
    reader.until("model_call_started").await;
    let quiet = async {
        // Only comments arrive, no event.
        tokio::time::timeout(std::time::Duration::from_millis(400), reader.next()).await
    };
    assert!(quiet.await.is_err());
    assert!(reader.comments >= 2, "{}", reader.comments);
    gate.open();
    assert_eq!(text(&reader.until("run_finished").await), "late");
}

#[tokio::test]
async fn invalid_positions_are_refused() {
    let server = Serving::start_owned(crate::support::Place::new(), &["--no-tools"]).await;
    let (run, _) = server.begin(json!({"message": "Hi"})).await;
    let path = format!("/runs/{run}/events");
    for wrong in ["?after=-1", "?after=x", "?after=1&after=2"] {
        let refused = server.get(&format!("{path}{wrong}")).await;
        assert_eq!(refused.problem(400), "malformed", "{wrong}");
    }
    let header = server
        .request(reqwest::Method::GET, &path)
        .header("last-event-id", "x");
    let answered = crate::serving::read(header.send().await.unwrap()).await;
    assert_eq!(answered.problem(400), "malformed");
    let refused = server.get("/runs/none/events").await;
    assert_eq!(refused.problem(404), "not-found");
    let refused = server.get("/sessions/none/events").await;
    assert_eq!(refused.problem(404), "not-found");
}
