//! `chat --record` and `chat --replay`, over pipes.

use serde_json::json;
use switchboard_testkit::fake::{Answer, FakeModel, Say};

use crate::support::{Done, KEY, Place, WORDS, counted_server};

const MODEL: &str = "openai/gpt-4o-mini";
const FILE: &str = "talk.jsonl";

fn config() -> String {
    json!({"mcp_servers": {"shop": counted_server()}}).to_string()
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

fn value_of(customer: u32) -> Answer {
    let input = json!({"customer_id": customer});
    Answer::openai_chat([Say::call("a", "shop__calculate_account_value", input)])
}

async fn chat(place: &Place, args: &[&str], input: &str) -> Done {
    place
        .run_with_input([&["chat"], args].concat(), input)
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_is_replayed_for_the_same_input() {
    let fake = FakeModel::start().await.unwrap();
    fake.answer(value_of(42));
    fake.answer(Answer::openai_chat([Say::text("530.19 EUR\n")]));
    fake.answer(Answer::openai_chat([Say::text(format!(
        "I keep {WORDS}\n"
    ))]));
    fake.answer(Answer::openai_chat([Say::text("I am another one\n")]));
    let place = live(&fake);
    let input = format!(
        "What is customer 42 worth?\nMy key is {KEY}\n/model openai/gpt-other\nWho are you?\n"
    );
    let done = chat(&place, &["-m", MODEL, "--record", FILE], &input).await;
    assert_eq!(done.code, 0, "{done}");
    let said = format!("530.19 EUR\nI keep {WORDS}\nI am another one\n");
    assert_eq!(done.stdout, said, "{done}");
    assert_ne!(place.server_starts(), 0);
    let recorded = place.read_file(FILE);
    for secret in [KEY, WORDS] {
        assert!(!recorded.contains(secret), "{recorded}");
    }
    drop(fake);

    let other = elsewhere(&recorded);
    let done = chat(
        &other,
        &["--replay", FILE],
        &format!("{input}/tools shop\n"),
    )
    .await;
    assert_eq!(done.code, 0, "{done}");
    assert_eq!(done.stdout, said.replace(WORDS, "[redacted]"), "{done}");
    // The output still shows the recorded call.
    done.stderr_contains("calculate_account_value(customer_id");
    assert_eq!(other.server_starts(), 0);
    // The replayed conversation is stored like any other.
    let other = other.with_variable("PHRASE", WORDS);
    let sessions = other.run(["sessions", "-o", "json"]).await.json();
    assert_eq!(sessions[0]["title"], "What is customer 42 worth?");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unrecorded_input_is_an_error_and_the_conversation_continues() {
    let fake = FakeModel::start().await.unwrap();
    fake.answer(Answer::openai_chat([Say::text("It is Monday.\n")]));
    let place = live(&fake);
    let args = ["-m", MODEL, "--record", FILE];
    chat(&place, &args, "Which day is it?\n").await.exits(0);
    drop(fake);
    let other = elsewhere(&place.read_file(FILE));
    let replay = ["--replay", FILE];
    let done = chat(&other, &replay, "Which month is it?\n").await;
    assert_eq!((done.code, done.stdout.as_str()), (1, ""), "{done}");
    for said in [
        "ends with `\"Which month is it?\"`",
        "recorded `\"Which day is it?\"`",
        "--match order",
    ] {
        assert!(done.stderr.contains(said), "{said}: {done}");
    }
    let done = chat(
        &other,
        &replay,
        "Which month is it?\n/new\nWhich day is it?\n/new\nWhich day is it?\n",
    )
    .await;
    assert_eq!(done.stdout, "It is Monday.\n", "{done}");
    assert_eq!(done.code, 1, "each answer is given once: {done}");
    let order = ["--replay", FILE, "--match", "order"];
    let done = chat(&other, &order, "Which month is it?\n").await.exits(0);
    assert_eq!(done.stdout, "It is Monday.\n", "{done}");
}
