//! Runs that the user stops, and runs whose process was killed.

use switchboard_testkit::fake::{Answer, FakeModel, Gate, Say};

use crate::{
    conversation::chat_with_model,
    support::{Place, texts},
    terminal::Terminal,
};

/// Starts a chat, asks a question and waits until the first words of the answer are shown. The gate
/// holds the rest of the answer. The model gives `next` as its second answer.
async fn begin_answer(place: &Place, args: &[&str], next: &str) -> (FakeModel, Gate, Terminal) {
    let fake = FakeModel::start().await.unwrap();
    let gate = Gate::new();
    let held = Answer::openai_chat([Say::text("The beginning of"), Say::text(" the answer.")]);
    fake.answer(held.gate_before(2, &gate));
    fake.answer(Answer::openai_chat([Say::text(next)]));
    let chat = chat_with_model(place, &fake, args);
    chat.wait_for_prompt();
    chat.line("Tell me");
    gate.reached().await;
    chat.shows("The beginning of");
    (fake, gate, chat)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_c_stops_an_answer_and_keeps_its_text() {
    let place = Place::new();
    let (fake, _gate, mut chat) = begin_answer(&place, &[], "Gladly.").await;
    chat.keys("\u{3}");
    chat.answers("note: interrupted");
    fake.request(0).await.client_gone().await;
    chat.line("Go on then");
    chat.answers("Gladly.");
    chat.quit();
    let request = fake.request(1).await;
    let messages = &request.json()["messages"];
    assert_eq!(texts(messages, "/role")[..3], ["user", "assistant", "user"]);
    let said = texts(messages, "/content");
    assert_eq!((said[0], said[2]), ("Tell me", "Go on then"));
    assert!(said[1].contains("The beginning of"), "{said:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_typed_during_an_answer_is_the_next_question() {
    let place = Place::new();
    let (_fake, gate, mut chat) = begin_answer(&place, &[], "Second answer.").await;
    chat.keys("typed ahead");
    gate.open();
    chat.shows("❯ typed ahead");
    let screen = chat.screen();
    assert_eq!(screen.matches("typed ahead").count(), 1, "{screen}");
    assert!(screen.contains("The beginning of the answer."), "{screen}");
    chat.keys("\r");
    chat.answers("Second answer.");
    chat.quit();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_of_a_killed_process_is_resumed() {
    let place = Place::new();
    let (fake, _gate, mut chat) = begin_answer(&place, &[], "The whole answer at last.").await;
    chat.kill();

    let mut chat = chat_with_model(&place, &fake, &["--resume"]);
    chat.shows("the last run of this session was interrupted");
    chat.asks("[c]ontinue, [a]bandon");
    chat.keys("c\r");
    chat.answers("The whole answer at last.");
    chat.line("/usage");
    chat.answers("1 answer");
    chat.quit();
    assert_eq!(fake.requests().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_of_a_killed_process_is_discarded() {
    let place = Place::new();
    let mine = ["--session", "mine"];
    let (fake, _gate, mut chat) = begin_answer(&place, &mine, "Something else.").await;
    chat.kill();

    // A command without a terminal fails with an explanation and the command that continues the
    // run.
    let ask = "ask --session mine --model offline/planner x".split(' ');
    let done = place.run(ask).await.exits(2);
    done.stderr_contains("session `mine` has a run that was interrupted");
    done.stderr_contains("switchboard chat --session mine");

    let mut chat = chat_with_model(&place, &fake, &mine);
    chat.asks("[a]bandon");
    chat.keys("a\r");
    chat.answers("the run is discarded");
    chat.line("Another thing");
    chat.answers("Something else.");
    chat.quit();
}
