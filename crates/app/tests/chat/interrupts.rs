//! Runs that are stopped, and runs whose process was.

use switchboard_testkit::fake::{Answer, FakeModel, Gate, Say};

use crate::{
    conversation::{chat_with_model, is_ready},
    support::Place,
};

/// An answer that begins and stays open.
fn held(gate: &Gate) -> Answer {
    Answer::openai_chat([Say::text("The beginning of"), Say::text(" the answer.")])
        .gate_before(2, gate)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_c_stops_an_answer_and_keeps_its_text() {
    let fake = FakeModel::start().await.unwrap();
    let gate = Gate::new();
    fake.answer(held(&gate));
    fake.answer(Answer::openai_chat([Say::text("Gladly.")]));
    let place = Place::new();
    let mut chat = chat_with_model(&place, &fake, &[]);
    chat.wait_for("prompt", is_ready);
    chat.line("Tell me");
    gate.reached().await;
    chat.shows("The beginning of");
    chat.keys("\u{3}");
    chat.shows("note: interrupted");
    chat.wait_for("prompt", is_ready);
    fake.request(0).await.client_gone().await;
    chat.line("Go on then");
    chat.shows("Gladly.");
    chat.wait_for("prompt", is_ready);
    chat.quit();
    let request = fake.request(1).await;
    let said: Vec<(&str, &str)> = request.json()["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            (
                it["role"].as_str().unwrap(),
                it["content"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(said[0], ("user", "Tell me"));
    assert_eq!(said[1].0, "assistant");
    assert!(said[1].1.contains("The beginning of"), "{said:?}");
    assert_eq!(said[2], ("user", "Go on then"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_typed_during_an_answer_is_the_next_question() {
    let fake = FakeModel::start().await.unwrap();
    let gate = Gate::new();
    fake.answer(held(&gate));
    fake.answer(Answer::openai_chat([Say::text("Second answer.")]));
    let place = Place::new();
    let mut chat = chat_with_model(&place, &fake, &[]);
    chat.wait_for("prompt", is_ready);
    chat.line("first");
    gate.reached().await;
    chat.shows("The beginning of");
    chat.keys("typed ahead");
    gate.open();
    chat.shows("❯ typed ahead");
    let screen = chat.screen();
    assert_eq!(screen.matches("typed ahead").count(), 1, "{screen}");
    assert!(screen.contains("The beginning of the answer."), "{screen}");
    chat.keys("\r");
    chat.shows("Second answer.");
    chat.wait_for("prompt", is_ready);
    chat.quit();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_of_a_killed_process_is_resumed() {
    let fake = FakeModel::start().await.unwrap();
    let gate = Gate::new();
    fake.answer(held(&gate));
    fake.answer(Answer::openai_chat([Say::text(
        "The whole answer at last.",
    )]));
    let place = Place::new();
    let mut chat = chat_with_model(&place, &fake, &[]);
    chat.wait_for("prompt", is_ready);
    chat.line("Tell me");
    gate.reached().await;
    chat.shows("The beginning of");
    chat.kill();

    let mut chat = chat_with_model(&place, &fake, &["--resume"]);
    chat.shows("the last run of this session was interrupted");
    chat.shows("[c]ontinue, [a]bandon");
    chat.shows("›");
    chat.keys("c\r");
    chat.shows("The whole answer at last.");
    chat.wait_for("prompt", is_ready);
    chat.line("/usage");
    chat.shows("1 answer");
    chat.wait_for("prompt", is_ready);
    chat.quit();
    assert_eq!(fake.requests().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_of_a_killed_process_is_discarded() {
    let fake = FakeModel::start().await.unwrap();
    let gate = Gate::new();
    fake.answer(held(&gate));
    fake.answer(Answer::openai_chat([Say::text("Something else.")]));
    let place = Place::new();
    let mut chat = chat_with_model(&place, &fake, &["--session", "mine"]);
    chat.wait_for("prompt", is_ready);
    chat.line("Tell me");
    gate.reached().await;
    chat.shows("The beginning of");
    chat.kill();

    // A script is told what the matter is.
    let done = place
        .run("ask --session mine --model offline/planner x".split(' '))
        .await;
    assert_eq!(done.code, 2, "{done}");
    done.stderr_contains("session `mine` has a run that was interrupted");
    done.stderr_contains("switchboard chat --session mine");

    let mut chat = chat_with_model(&place, &fake, &["--session", "mine"]);
    chat.shows("[a]bandon");
    chat.shows("›");
    chat.keys("a\r");
    chat.shows("the run is discarded");
    chat.wait_for("prompt", is_ready);
    chat.line("Another thing");
    chat.shows("Something else.");
    chat.wait_for("prompt", is_ready);
    chat.quit();
}
