//! Settings that turn streaming off, and the setting for retries.

use serde_json::{Value, json};
use switchboard_testkit::fake::{Answer, FakeModel, Say};

use crate::support::{Done, Place};

/// A response in one document.
fn document() -> Answer {
    let answer = json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-4o-mini",
        "choices": [{
            "index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": "All at once."},
        }],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
    });
    Answer::json(200, &answer)
}

/// Asks with these files and options. Returns the request to the model.
async fn asked(
    answer: Answer,
    files: &[(&str, &str)],
    options: &[&str],
    model: &str,
) -> (Value, Done) {
    let fake = FakeModel::start().await.unwrap();
    fake.answer(answer);
    let mut place =
        Place::openai(&fake).with_variable("BASE_URL", &format!("{}/v1", fake.base_url()));
    for (name, text) in files {
        place = place.with_file(name, text);
    }
    let ask = ["ask", "--no-tools", "-o", "json", "-m", model, "Hi"];
    let done = place.run(ask.iter().chain(options)).await.exits(0);
    (fake.request(0).await.json().clone(), done)
}

const MODEL: &str = "openai/gpt-4o-mini";
const LOCAL: &str = "providers: {local: {base_url: '${BASE_URL}', stream: false}}";

#[tokio::test]
async fn every_setting_turns_streaming_off() {
    let recipe = ("whole.yaml", "name: whole\nstream: false\n");
    let streaming = ("switchboard.yaml", "stream: true\n");
    for (files, options, model) in [
        (&[][..], &["--no-stream"][..], MODEL),
        (&[("switchboard.yaml", "stream: false\n")], &[], MODEL),
        (&[recipe], &["--recipe", "whole.yaml"], MODEL),
        // The recipe overrides the configuration, and the option overrides both.
        (&[recipe, streaming], &["--recipe", "whole.yaml"], MODEL),
        (&[streaming], &["--no-stream"], MODEL),
        // This provider cannot stream.
        (&[("switchboard.yaml", LOCAL)], &[], "local/any"),
    ] {
        let (request, done) = asked(document(), files, options, model).await;
        assert_eq!(request["stream"], false, "{files:?} {options:?}: {request}");
        assert_eq!(done.json()["answer"], "All at once.", "{done}");
    }
}

#[tokio::test]
async fn an_unstreamed_answer_is_printed_like_a_streamed_one() {
    let fake = FakeModel::start().await.unwrap();
    fake.answer(document());
    let args = ["ask", "--no-tools", "--no-stream", "-m", MODEL, "Hi"];
    let done = Place::openai(&fake).run(args).await.exits(0);
    assert_eq!(done.stdout, "All at once.\n", "{done}");
}

#[tokio::test]
async fn answers_are_streamed_by_default() {
    let recipe = ("piecewise.yaml", "name: piecewise\nstream: true\n");
    let whole = ("switchboard.yaml", "stream: false\n");
    for (files, options) in [
        (&[][..], &[][..]),
        (&[recipe, whole], &["--recipe", "piecewise.yaml"]),
    ] {
        let streamed = Answer::openai_chat([Say::text("Bit by bit.")]);
        let (request, done) = asked(streamed, files, options, MODEL).await;
        assert_eq!(request["stream"], true, "{files:?}: {request}");
        assert_eq!(done.json()["answer"], "Bit by bit.", "{done}");
    }
}

#[tokio::test]
async fn the_number_of_attempts_is_configured() {
    for attempts in [1, 4] {
        let fake = FakeModel::start().await.unwrap();
        fake.otherwise(|_, _| Answer::new(503));
        let retry = format!("{{max_attempts: {attempts}, min_delay: 0.001, max_delay: 0.001}}");
        let config = format!("providers: {{openai: {{retry: {retry}}}}}");
        let place = Place::openai(&fake).with_file("switchboard.yaml", &config);
        let done = place.run(["ask", "--no-tools", "-m", MODEL, "Hi"]).await;
        done.exits(1);
        assert_eq!(fake.requests().len(), attempts);
    }
}
