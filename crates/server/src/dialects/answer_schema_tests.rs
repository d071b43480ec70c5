//! Answers with a schema that the client requested, the error format of each dialect, and calls of
//! an AG-UI client's own tools.

use serde_json::{Value, json};
use switchboard_domain::ModelErrorKind;
use switchboard_orchestration::strategy::formatter::AnswerSchema;

use super::*;
use crate::dialects::response::run_failure::RunFailure;

fn form() -> AnswerSchema {
    AnswerSchema::new(json!({
        "type": "object",
        "properties": {"sum": {"type": "integer"}},
        "required": ["sum"],
    }))
    .unwrap()
}

/// Plays a run whose answer must match a schema. `tries` are the answers that the model gives one
/// after another.
fn formed(tries: &[&'static str]) -> Vec<RunEvent> {
    let mut turns = vec![finishes(vec![
        Piece::Thought("Two of them."),
        Piece::Text("I look it up."),
        Piece::Call("desk__look", "call_1", r#"{"n":1}"#),
    ])];
    let tries = tries
        .iter()
        .map(|input| finishes(vec![Piece::Call("response_formatter", "call_2", input)]));
    turns.extend(tries);
    Script::of(turns).played_with(Box::new(|agent| agent.with_answer_schema(&form())))
}

fn in_form() -> ResponseState {
    ResponseState {
        answer_form: Some(std::sync::Arc::new(form())),
        ..ResponseState::default()
    }
}

fn whole(events: &[RunEvent], terms: ResponseState) -> CollectedResponse {
    let mut whole = SequencedEncoder::new(CollectedResponse::new(terms));
    let mut out = SseFrames::default();
    for event in events {
        whole.encode_event(event, &mut out);
    }
    whole.encoder
}

#[test]
fn an_answer_in_a_form_is_all_that_is_said() {
    let events = formed(&[r#"{"sum":3}"#]);
    let answer = &report(&events).answer;
    assert_eq!(
        serde_json::from_str::<Value>(answer).unwrap(),
        json!({"sum": 3})
    );
    let said = told(OpenAiChatStream::new(None, false, in_form()), &events);
    assert_eq!(client_rules::chat(&said).as_ref(), Ok(answer));
    let said = told(AnthropicMessagesStream::new(None, in_form()), &events);
    assert_eq!(
        client_rules::messages(&said).as_deref(),
        Ok(std::slice::from_ref(answer))
    );
    let said = whole(&events, in_form());
    assert_eq!(said.state.run_failure(report(&events)), None);
    assert_eq!(&said.text, answer);
    // The text before the answer is reasoning.
    assert!(said.reasoning.contains("I look it up."));
}

#[test]
fn an_answer_that_is_not_in_its_form_is_an_error() {
    let events = formed(&[r#"{"sum":"three"}"#, r#"{"total":3}"#]);
    assert_eq!(report(&events).outcome, Outcome::Failed);
    assert!(report(&events).answer.contains("total"));
    let said = told(OpenAiChatStream::new(None, false, in_form()), &events);
    assert_eq!(
        client_rules::chat(&said),
        Err("malformed_answer".to_owned())
    );
    let said = told(AnthropicMessagesStream::new(None, in_form()), &events);
    assert_eq!(client_rules::messages(&said), Err("api_error".to_owned()));
    let said = whole(&events, in_form());
    let failure = said.state.run_failure(report(&events)).unwrap();
    assert_eq!(failure.status, 502);
    // An answer that was repaired is not an error.
    let mended = formed(&[r#"{"sum":"three"}"#, r#"{"sum":3}"#]);
    let said = told(OpenAiChatStream::new(None, false, in_form()), &mended);
    assert!(client_rules::chat(&said).is_ok());
}

/// Returns the last error of a stream, in the format of the dialect.
fn error(frames: &[client_rules::Frame]) -> Value {
    let mut errors = frames
        .iter()
        .filter_map(|frame| frame.data.as_ref()?.get("error"));
    errors.next_back().unwrap().clone()
}

#[test]
fn an_error_in_a_stream_is_the_one_of_a_whole_answer() {
    let failed = |kind: ModelErrorKind| {
        let turn = Turn {
            pieces: Vec::new(),
            end: End::Fails(kind),
        };
        Script::of(vec![turn]).played()
    };
    let invalid = ModelErrorKind::InvalidRequest { field: None };
    for (kind, openai, code, anthropic) in [
        (
            invalid,
            "invalid_request_error",
            "invalid_request",
            "invalid_request_error",
        ),
        (
            ModelErrorKind::RateLimited { retry_after: None },
            "rate_limit_error",
            "rate_limited",
            "rate_limit_error",
        ),
        (
            ModelErrorKind::Overloaded { retry_after: None },
            "server_error",
            "overloaded",
            "overloaded_error",
        ),
    ] {
        let events = failed(kind);
        let failure = RunFailure::from_report(report(&events)).unwrap();
        let streamed = error(&told(chat(None, false), &events));
        assert_eq!(streamed["type"], json!(openai));
        assert_eq!(streamed["code"], json!(code));
        assert_eq!(failure.code, code);
        let streamed = error(&told(messages(None), &events));
        assert_eq!(streamed["type"], anthropic);
        let ag_ui = told(AgUiStream::new("t", "r", "t"), &events);
        assert_eq!(ag_ui.last().unwrap().data.as_ref().unwrap()["code"], code);
    }
}

/// Checks a run of AG-UI in which the client executes a call: the events before the call, and the
/// events after it.
#[test]
fn a_call_of_an_ag_ui_client_ends_its_run_with_success() {
    let mut script = Script::of(vec![
        finishes(vec![
            Piece::Text("I ask you."),
            Piece::Call("desk__change", "call_1", r#"{"n":1}"#),
            Piece::Call("desk__look", "call_2", r#"{"n":2}"#),
        ]),
        finishes(vec![Piece::Text("It is 7.")]),
    ]);
    script.asks = true;
    script.people = vec![3];
    let events = as_clients(script.played(), "call_1");
    let mut responses = Vec::new();
    told_in_pieces(
        &events,
        || AgUiStream::new("thread", "client", "thread"),
        |frames, _| responses.push(frames.to_vec()),
    );
    let [before, rest] = &responses[..] else {
        panic!("{} responses", responses.len());
    };
    let of = |frames: &[client_rules::Frame], kind: &str| -> Vec<Value> {
        let events = frames.iter().filter_map(|frame| frame.data.clone());
        events.filter(|event| event["type"] == kind).collect()
    };
    let begun = of(before, "TOOL_CALL_START");
    assert_eq!(begun[0]["toolCallId"], "call_1");
    let ended = before.last().unwrap().data.as_ref().unwrap();
    assert_eq!(
        ended["outcome"],
        json!({"type": "success", "pendingToolCallIds": ["call_1"]})
    );
    // The events contain no result of the client's call, because the client already has it.
    let results = [of(before, "TOOL_CALL_RESULT"), of(rest, "TOOL_CALL_RESULT")].concat();
    let of_calls: Vec<_> = results.iter().map(|it| &it["toolCallId"]).collect();
    assert_eq!(of_calls, ["call_2"]);
    assert_eq!(
        rest.last().unwrap().data.as_ref().unwrap()["result"]["answer"],
        "It is 7."
    );
}
