//! `chat --record` and `chat --replay`, over pipes.

use serde_json::json;
use switchboard_testkit::fake::{Answer, FakeModel, Say};

use crate::support::{Done, Place, program};

const MODEL: &str = "openai/gpt-4o-mini";
/// A secret with the form of a key.
const KEY: &str = "sk-proj-0123456789abcdefghij";
/// Reads like nothing, and is a secret since it fills in a variable.
const WORDS: &str = "correct horse battery staple";
const FILE: &str = "talk.jsonl";

/// The bundled server, which writes a file when it starts.
fn config() -> String {
    let script = "echo started >> started; exec \"$0\" mcp-server customer-service";
    let shop = json!({"command": "sh", "args": ["-c", script, program()], "env": {"PASSPHRASE": "${PHRASE}"}});
    json!({"mcp_servers": {"shop": shop}}).to_string()
}

fn live(fake: &FakeModel) -> Place {
    Place::new()
        .with_variable("OPENAI_API_KEY", KEY)
        .with_variable("OPENAI_BASE_URL", &format!("{}/v1", fake.base_url()))
        .with_variable("PHRASE", WORDS)
        .with_file("switchboard.json", &config())
}

/// Where nothing of the other place is but the recording: no key, no address, no passphrase.
fn elsewhere(recording: &str) -> Place {
    Place::new()
        .with_file("switchboard.json", &config())
        .with_file(FILE, recording)
}

fn recording(place: &Place) -> String {
    std::fs::read_to_string(place.path().join(FILE)).unwrap()
}

fn is_started(place: &Place) -> bool {
    place.path().join("started").exists()
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
    assert!(is_started(&place));
    let recorded = recording(&place);
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
    // What there was can still be looked at.
    done.stderr_contains("calculate_account_value(customer_id");
    assert!(!is_started(&other));
    // It is kept as any other conversation.
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
    let other = elsewhere(&recording(&place));
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
