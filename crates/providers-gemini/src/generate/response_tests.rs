use switchboard_domain::{
    FinishReason, ModelErrorKind, ModelId, ResponseAccumulator, ToolChoiceOutcome,
};
use switchboard_testkit::transcripts;

use super::*;
use crate::generate::LocalIds;

fn decoder() -> GenerateDecoder {
    GenerateDecoder::new(
        ModelId::new("gemini", "gemini-3.8-flash"),
        ToolChoiceOutcome::Native,
        Vec::new(),
        LocalIds::default(),
    )
}

fn read(body: &str) -> Result<ChatResponse, ModelError> {
    from_body("gemini", decoder(), body)
}

fn streamed(text: &str) -> Result<ChatResponse, ModelError> {
    let (mut decoder, mut events) = (decoder(), Vec::new());
    for data in text.lines().filter_map(|it| it.strip_prefix("data: ")) {
        decoder.frame("", data, &mut events)?;
    }
    decoder.end(&mut events)?;
    let mut answer = ResponseAccumulator::default();
    for event in &events {
        answer.push(event).unwrap();
    }
    Ok(answer.finish().unwrap())
}

#[test]
fn an_answer_is_the_same_whole_and_streamed() {
    let text = |stored: &transcripts::Transcript| String::from_utf8(stored.bytes.clone()).unwrap();
    let all = transcripts::all().unwrap();
    let of = |form| move |it: &&transcripts::Transcript| it.wire == "gemini" && it.form == form;
    let mut twins = 0;
    for whole in all.iter().filter(of(transcripts::Form::Json)) {
        let mut streams = all.iter().filter(of(transcripts::Form::Sse));
        let Some(stream) = streams.find(|it| it.stem == whole.stem) else {
            continue;
        };
        twins += 1;
        match (read(&text(whole)), streamed(&text(stream))) {
            (Ok(whole), Ok(streamed)) => assert_eq!(whole, streamed, "{}", stream.stem),
            (Err(whole), Err(streamed)) => assert_eq!(whole.kind, streamed.kind),
            (whole, streamed) => panic!("{}: {whole:?}, {streamed:?}", stream.stem),
        }
    }
    assert!(twins >= 12, "{twins}");
}

#[test]
fn a_list_of_chunks_is_an_answer() {
    let stored = transcripts::read("gemini/list-of-chunks.json").unwrap();
    let answer = read(std::str::from_utf8(&stored.bytes).unwrap()).unwrap();
    assert_eq!(answer.message.text(), "It is 12 °C.");
    assert_eq!(answer.usage.output_tokens, Some(9));
}

#[test]
fn a_whole_answer_needs_no_reason() {
    let body = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]}}]}"#;
    let answer = read(body).unwrap();
    assert_eq!(
        (answer.finish, answer.finish_raw),
        (FinishReason::ToolUse, None)
    );
}

#[test]
fn what_is_no_answer_is_never_taken_for_one() {
    for body in [
        "",
        "{}",
        "[]",
        r#"{"hello":1}"#,
        r#"{"usageMetadata":{}}"#,
        "<html>",
    ] {
        let error = read(body).unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Protocol, "{body}");
    }
    let error = read(r#"{"error":{"status":"NOT_FOUND","message":"No such model."}}"#).unwrap_err();
    assert_eq!(error.message(), "No such model.");
    assert_eq!(error.kind, ModelErrorKind::NotFound);
}
