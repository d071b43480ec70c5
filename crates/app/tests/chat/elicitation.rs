//! A server that requests information during a tool call.

use serde_json::json;
use switchboard_testkit::fake::{Answer, FakeModel, Say};

use crate::{
    asking_server::config,
    conversation::{chat_with, of_model},
    support::Place,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_form_is_filled_in_line_by_line() {
    let fake = FakeModel::start().await.unwrap();
    for call in ["call_1", "call_2"] {
        let order = Say::call(call, "shop__order", json!({}));
        fake.answer(Answer::openai_chat([order]));
        fake.answer(Answer::openai_chat([Say::text("So it is.")]));
    }
    let place = Place::new().with_file("switchboard.json", &config().to_string());
    let args = ["--model", "openai/gpt-test"];
    let mut chat = chat_with(&place, &args, of_model(&fake), (45, 90));
    chat.wait_for_prompt();
    chat.line("Order boots");
    chat.asks("? shop asks: Which boots?");
    chat.keys("99\r");
    chat.asks("greater than the maximum of 50");
    chat.keys("42\r");
    chat.asks("Colour");
    chat.keys("red\r");
    chat.shows(r#"got {"action":"accept","content":{"size":42,"colour":"red"}}"#);
    chat.answers("So it is.");

    // A server whose question is declined gets no data.
    chat.line("Order more boots");
    chat.wait_for("the form again", |screen| {
        screen.matches("shop asks").count() == 2 && screen.ends_with('›')
    });
    chat.keys(":decline\r");
    chat.answers(r#"got {"action":"decline"}"#);
    chat.quit();
}
