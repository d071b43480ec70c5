//! `--record` and `--replay`.

use serde_json::json;
use switchboard_testkit::fake::{Answer, FakeModel, Say};

use crate::support::{Done, KEY, Place, WORDS, calls, counted_server, program};

const MODEL: &str = "openai/gpt-4o-mini";

fn config() -> String {
    json!({"mcp_servers": {"shop": counted_server()}}).to_string()
}

fn live(fake: &FakeModel) -> Place {
    Place::with_secrets(fake).with_file("switchboard.json", &config())
}

/// A working folder with only the recording: no key, no address.
fn elsewhere(recording: &str) -> Place {
    Place::new()
        .with_variable("PHRASE", WORDS)
        .with_file("switchboard.json", &config())
        .with_file("run.jsonl", recording)
}

fn recording(place: &Place) -> String {
    place.read_file("run.jsonl")
}

fn value_of(customer: u32) -> Say {
    let input = json!({"customer_id": customer});
    Say::call("a", "shop__calculate_account_value", input)
}

async fn ask(place: &Place, args: &[&str]) -> Done {
    place.run([&["ask", "-o", "json"], args].concat()).await
}

#[cfg(unix)]
#[tokio::test]
async fn a_run_is_replayed_without_network_key_and_servers() {
    let fake = FakeModel::start().await.unwrap();
    fake.answer(Answer::openai_chat([value_of(42)]));
    let text = format!("530.19 EUR. Do not tell {KEY} and {WORDS}.");
    fake.answer(Answer::openai_chat([Say::text(text)]));
    let place = live(&fake);
    let question = format!("What is customer 42 worth? My key is {KEY}.");
    let args = ["-m", MODEL, "--record", "run.jsonl", &question];
    let done = ask(&place, &args).await.exits(0);
    let first = done.json();
    assert_eq!((fake.requests().len(), place.server_starts()), (2, 1));

    let text = recording(&place);
    assert!(text.contains("530.19"));
    for secret in [KEY, WORDS] {
        assert!(!text.contains(secret), "{text}");
    }
    let mode = std::fs::metadata(place.path().join("run.jsonl")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&mode.permissions());
    assert_eq!(mode & 0o077, 0, "nobody else reads it");

    let other = elsewhere(&recording(&place));
    let done = ask(&other, &["--replay", "run.jsonl", &question]).await;
    assert_eq!(done.code, 0, "{done}");
    let again = done.json();
    assert_eq!(again["model"], MODEL);
    assert_eq!(calls(&again), calls(&first));
    assert_eq!(again["usage"], first["usage"]);
    assert_eq!(
        again["answer"],
        "530.19 EUR. Do not tell [redacted] and [redacted]."
    );
    assert_eq!((fake.requests().len(), other.server_starts()), (2, 0));
}

#[tokio::test]
async fn injected_arguments_are_not_recorded() {
    let fake = FakeModel::start().await.unwrap();
    let node = json!({"nodes": [{"id": "a:1", "label": "A", "type": "Thing"}]});
    fake.answer(Answer::openai_chat([Say::call(
        "a",
        "graph__add_nodes",
        node,
    )]));
    fake.answer(Answer::openai_chat([Say::text("It is there.")]));
    let config = |conversation: &str| {
        json!({
            "mcp_servers": {"graph": {"command": program(), "args": ["mcp-server", "graph"]}},
            "context": {"databaseContext": {"conversationId": conversation, "accessToken": "tok1"}},
        })
        .to_string()
    };
    let place = live(&fake).with_file("switchboard.json", &config("conv-77"));
    let done = ask(&place, &["-m", MODEL, "--record", "run.jsonl", "Add A"]).await;
    assert_eq!(done.code, 0, "{done}");
    assert!(!calls(&done.json())[0].3, "{done}");
    let text = recording(&place);
    assert!(text.contains("a:1"), "{text}");
    for hidden in ["conv-77", "tok1"] {
        assert!(!text.contains(hidden), "{hidden}: {text}");
    }
    // The replay may use another one.
    let other = Place::new()
        .with_file("switchboard.json", &config("conv-88"))
        .with_file("run.jsonl", &text);
    let done = ask(&other, &["--replay", "run.jsonl", "Add A"]).await;
    assert_eq!(
        (done.code, done.json()["answer"].as_str()),
        (0, Some("It is there.")),
        "{done}"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn an_unmatched_request_is_reported_with_a_remedy() {
    let fake = FakeModel::start().await.unwrap();
    fake.answer(Answer::openai_chat([Say::text("It is Monday.")]));
    let place = live(&fake);
    let done = ask(
        &place,
        &["-m", MODEL, "--record", "run.jsonl", "Which day is it?"],
    )
    .await;
    assert_eq!(done.code, 0, "{done}");
    let other = elsewhere(&recording(&place));
    let done = ask(&other, &["--replay", "run.jsonl", "Which month is it?"]).await;
    assert_eq!(done.code, 1, "{done}");
    for said in [
        "ends with `\"Which month is it?\"`",
        "recorded `\"Which day is it?\"`",
        "--match order",
    ] {
        assert!(done.stderr.contains(said), "{said}: {done}");
    }
    let order = [
        "--replay",
        "run.jsonl",
        "--match",
        "order",
        "Which month is it?",
    ];
    let done = ask(&other, &order).await;
    assert_eq!(done.code, 0);
    assert_eq!(done.json()["answer"].as_str(), Some("It is Monday."));
    for (args, said) in [
        (
            &["--replay", "run.jsonl", "-m", "acme/one", "?"][..],
            "Available: openai/gpt-4o-mini",
        ),
        (
            &["--replay", "gone.jsonl", "?"],
            "cannot replay gone.jsonl: file or folder not found",
        ),
        (
            &["--replay", "switchboard.json", "?"],
            "the file is not a recording",
        ),
        (
            &["--replay", "a", "--record", "b", "?"],
            "cannot be used with",
        ),
        (
            &["--record", "no/such/folder", "?"],
            "cannot record to no/such/folder",
        ),
    ] {
        let done = ask(&other, args).await;
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{done}");
        assert!(done.stderr.contains(said), "{said}: {done}");
    }
    assert_eq!(other.server_starts(), 0);
}

#[tokio::test]
async fn a_usage_error_leaves_a_recording_unchanged() {
    let place = Place::new().with_file("run.jsonl", "precious");
    for args in [
        &["-m", "acme/one", "--record", "run.jsonl", "?"][..],
        &["--recipe", "nothing", "--record", "run.jsonl", "?"],
        &["--record", "run.jsonl", "  "],
    ] {
        ask(&place, args).await.exits(2);
    }
    assert_eq!(recording(&place), "precious");
}

#[cfg(unix)]
#[tokio::test]
async fn a_replay_needs_no_variables_of_servers() {
    let fake = FakeModel::start().await.unwrap();
    fake.answer(Answer::openai_chat([value_of(42)]));
    fake.answer(Answer::openai_chat([Say::text("530.19")]));
    let place = live(&fake);
    let args = ["-m", MODEL, "--record", "run.jsonl", "Worth of 42?"];
    ask(&place, &args).await.exits(0);
    // `PHRASE`, which both files need, is not set.
    let servers = json!({"mcpServers": {"far": {"url": "${FAR_ADDRESS}"}}}).to_string();
    let recorded = recording(&place);
    let bare = || {
        Place::new()
            .with_file("switchboard.json", &config())
            .with_file("mcp.json", &servers)
            .with_file("run.jsonl", &recorded)
    };
    let done = ask(
        &bare(),
        &[
            "--mcp-config",
            "mcp.json",
            "--replay",
            "run.jsonl",
            "Worth of 42?",
        ],
    )
    .await;
    assert_eq!(done.code, 0, "{done}");
    assert_eq!(done.json()["answer"].as_str(), Some("530.19"), "{done}");
    // Commands that start servers need them.
    for args in [
        &["--no-tools", "-m", "offline/planner", "?"][..],
        &["--mcp-config", "mcp.json", "-m", "offline/planner", "?"],
    ] {
        let done = ask(&bare(), args).await.exits(2);
        assert!(done.stderr.contains("`PHRASE` is not set"), "{done}");
    }
}
