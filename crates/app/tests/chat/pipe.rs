//! `chat` with pipes as standard input and output, as scripts use it.

use serde_json::Value;
use switchboard_testkit::fake::{Answer, FakeModel, Say};

use crate::support::Place;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_answers_are_on_standard_output() {
    let fake = FakeModel::start().await.unwrap();
    fake.answer(Answer::openai_chat([Say::text("It is **one**.\n")]));
    fake.answer(Answer::openai_chat([Say::text("| two |")]));
    let place = Place::new()
        .with_variable("OPENAI_API_KEY", "k")
        .with_variable("OPENAI_BASE_URL", &format!("{}/v1", fake.base_url()));
    let args = [
        "chat",
        "--no-tools",
        "--model",
        "openai/gpt-test",
        "--session",
        "s1",
    ];
    let input = "first\\\nquestion\n\n/usage\n/nonsense\nsecond question\n/help\n";
    let done = place.run_with_input(args, input).await;
    assert_eq!(done.stdout, "It is **one**.\n| two |\n", "{done}");
    assert_eq!(done.code, 0, "{done}");
    assert!(done.stderr.contains("> second question"), "{done}");
    assert!(done.stderr.contains("1 answer, 1 model call"), "{done}");
    assert!(done.stderr.contains("unknown command /nonsense"), "{done}");
    let request = fake.request(1).await;
    let messages = request.json()["messages"].as_array().unwrap();
    assert_eq!(messages[0]["content"], "first\nquestion");
    assert_eq!(messages.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_printed_as_json_or_event_lines() {
    let place = Place::new();
    let question = "What is the account value of customer 42?\n";
    let done = place
        .run_with_input(["chat", "-o", "jsonl", "--session", "s1"], question)
        .await;
    assert_eq!(done.code, 0, "{done}");
    let events = done.lines();
    let report = &events.last().unwrap()["report"];
    assert_eq!(report["session_id"], "s1");
    let done = place
        .run_with_input(["chat", "-o", "json", "--session", "s1"], question)
        .await;
    assert_eq!(done.json()["outcome"], "completed", "{done}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_chats_of_one_user_reach_a_limit_per_minute_together() {
    let limits = "limits: {max_calls_per_minute: 1}\n";
    let place = Place::new().with_file("switchboard.yaml", limits);
    let question = "What is the account value of customer 42?\n";
    let mut failures = Vec::new();
    for session in ["s1", "s2"] {
        let chat = ["chat", "-o", "json", "--session", session];
        let report = place.run_with_input(chat, question).await.json();
        failures.push(report["tool_calls"][0]["failure"].clone());
    }
    assert_eq!(failures, [Value::Null, "limit_reached".into()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_answer_decides_the_exit_code() {
    let fake = FakeModel::start().await.unwrap();
    fake.answer(Answer::json(
        401,
        &serde_json::json!({"error": {"message": "no"}}),
    ));
    let place = Place::new()
        .with_variable("OPENAI_API_KEY", "k")
        .with_variable("OPENAI_BASE_URL", &format!("{}/v1", fake.base_url()));
    let args = ["chat", "--no-tools", "--model", "openai/gpt-test"];
    let done = place.run_with_input(args, "hello\n").await.exits(1);
    assert_eq!(done.stdout, "");
    let done = place.run_with_input(["chat", "--session", "a b"], "").await;
    assert_eq!(done.code, 2, "{done}");
}
