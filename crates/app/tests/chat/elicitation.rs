//! A server that requests information during a tool call.

use serde_json::json;
use switchboard_testkit::fake::{Answer, FakeModel, Say};

use crate::{
    asking_server::config,
    conversation::{chat_with, is_ready, of_model},
    support::Place,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_form_is_filled_in_line_by_line() {
    let fake = FakeModel::start().await.unwrap();
    for call in ["call_1", "call_2"] {
        fake.answer(Answer::openai_chat([Say::call(
            call,
            "shop__order",
            json!({}),
        )]));
        fake.answer(Answer::openai_chat([Say::text("So it is.")]));
    }
    let place = Place::new().with_file("switchboard.json", &config().to_string());
    let args = ["--model", "openai/gpt-test"];
    let mut chat = chat_with(&place, &args, of_model(&fake), (45, 90));
    chat.wait_for("prompt", is_ready);
    chat.line("Order boots");
    chat.shows("? shop asks: Which boots?");
    chat.wait_for("first field", |screen| screen.ends_with('›'));
    chat.keys("99\r");
    chat.shows("greater than the maximum of 50");
    chat.wait_for("first field again", |screen| screen.ends_with('›'));
    chat.keys("42\r");
    chat.wait_for("second field", |screen| {
        screen.contains("Colour") && screen.ends_with('›')
    });
    chat.keys("red\r");
    chat.shows(r#"got {"action":"accept","content":{"size":42,"colour":"red"}}"#);
    chat.shows("So it is.");
    chat.wait_for("prompt", is_ready);

    // Nothing is told to a server that is refused.
    chat.line("Order more boots");
    chat.wait_for("the form again", |screen| {
        screen.matches("shop asks").count() == 2 && screen.ends_with('›')
    });
    chat.keys(":decline\r");
    chat.shows(r#"got {"action":"decline"}"#);
    chat.wait_for("prompt", is_ready);
    chat.quit();
}
