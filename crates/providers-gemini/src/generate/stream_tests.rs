use switchboard_domain::ChatResponse;
use switchboard_providers_common::assemble_response;

use super::*;

fn model() -> ModelId {
    ModelId::new("gemini", "gemini-3.8-flash")
}

fn decoder() -> GenerateDecoder {
    GenerateDecoder::new(
        model(),
        ToolChoiceOutcome::Native,
        Vec::new(),
        ToolUseIds::default(),
    )
}

/// Returns the events before the end or the error, and the error.
fn run(frames: &[Value]) -> (Vec<ModelEvent>, Result<(), ModelError>) {
    let (mut decoder, mut events) = (decoder(), Vec::new());
    for frame in frames {
        if let Err(error) = decoder.decode_frame("", &frame.to_string(), &mut events) {
            return (events, Err(error));
        }
    }
    let end = decoder.finish_decoding(&mut events);
    (events, end)
}

fn collected(events: &[ModelEvent]) -> ChatResponse {
    assemble_response("gemini", events).unwrap()
}

fn answer(frames: &[Value]) -> ChatResponse {
    let (events, end) = run(frames);
    end.unwrap();
    collected(&events)
}

fn transcript(name: &str) -> Vec<Value> {
    let stored = switchboard_testkit::transcripts::read(&format!("gemini/{name}.sse")).unwrap();
    let text = String::from_utf8(stored.bytes).unwrap();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

fn parts(parts: &Value, finish: &str) -> Value {
    json!({"candidates": [{"content": {"parts": parts, "role": "model"}, "finishReason": finish}]})
}

#[test]
fn case_08_an_answer_at_the_request_limit_goes_on_and_its_usage_is_summed() {
    let first = transcript("continuation");
    let continuation = Continuation::default();
    let mut decoder = decoder().with_continuation(continuation.clone());
    let mut events = Vec::new();
    // The continuation token may arrive before the finish reason.
    let early = json!({"candidates": [{"continuationToken": "b2xkZXI="}]});
    for frame in std::iter::once(&early).chain(&first) {
        decoder
            .decode_frame("", &frame.to_string(), &mut events)
            .unwrap();
    }
    let expected = Some("dG9rZW4tMQ==");
    assert_eq!(continuation.take_continuation_token().as_deref(), expected);
    for (text, finish) in [(" two", json!(null)), (".", json!("STOP"))] {
        let rest = json!({
            "candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": finish}],
            "usageMetadata": {"promptTokenCount": 50, "candidatesTokenCount": 7},
        });
        decoder
            .decode_frame("", &rest.to_string(), &mut events)
            .unwrap();
    }
    decoder.finish_decoding(&mut events).unwrap();
    let answer = collected(&events);
    assert_eq!(answer.message.parts, [Part::text("Chapter one, and two.")]);
    assert_eq!(answer.finish, FinishReason::Stop);
    assert_eq!(answer.usage.input_tokens, Some(92));
    assert_eq!(answer.usage.output_tokens, Some(12));
}

#[test]
fn an_answer_that_cannot_go_on_is_at_a_limit() {
    // The decoder cannot request the rest, because no response stream shares its state.
    let answer = answer(&transcript("continuation"));
    assert_eq!(answer.finish, FinishReason::Length);
    assert_eq!(answer.finish_raw.as_deref(), Some(CONTINUATION));
    // The chunk has no continuation token.
    let mut decoder = self::decoder().with_continuation(Continuation::default());
    let mut events = Vec::new();
    let frame = parts(&json!([{"text": "a"}]), CONTINUATION).to_string();
    decoder.decode_frame("", &frame, &mut events).unwrap();
    decoder.finish_decoding(&mut events).unwrap();
    assert_eq!(collected(&events).finish, FinishReason::Length);
    // The second response has the token that was used to request it.
    let continuation = Continuation::default();
    let mut decoder = self::decoder().with_continuation(continuation.clone());
    let frame = transcript("continuation").pop().unwrap().to_string();
    let mut events = Vec::new();
    decoder.decode_frame("", &frame, &mut events).unwrap();
    assert!(continuation.take_continuation_token().is_some());
    decoder.decode_frame("", &frame, &mut events).unwrap();
    assert_eq!(continuation.take_continuation_token(), None);
    decoder.finish_decoding(&mut events).unwrap();
    assert_eq!(collected(&events).finish, FinishReason::Length);
}

#[test]
fn a_blocked_prompt_is_reported_with_its_message() {
    let blocked = json!({"promptFeedback": {
        "blockReason": "SOMETHING_NEW", "blockReasonMessage": "Not here.",
    }});
    let answer = answer(&[blocked]);
    assert_eq!(answer.finish, FinishReason::ContentFilter);
    assert!(answer.warnings[0].message.contains("Not here."));
    // The prompt was rated but not blocked.
    let ratings = json!({"promptFeedback": {"safetyRatings": []}});
    let answer = self::answer(&[ratings, parts(&json!([{"text": "Hi"}]), "STOP")]);
    assert_eq!(answer.finish, FinishReason::Stop);
}

#[test]
fn an_answer_of_a_nameless_call_only_is_malformed() {
    let nameless = json!([{"functionCall": {"args": {}}}]);
    let answer = answer(&[parts(&nameless, "STOP")]);
    assert_eq!(answer.finish, FinishReason::MalformedToolCall);
}

#[test]
fn what_stands_beside_the_content_is_kept_as_it_was_last_said() {
    let chunk = |candidate: Value| json!({ "candidates": [candidate] });
    let pages = |names: &[&str]| {
        let pages = names.iter().map(|name| {
            json!({"retrievedUrl": format!("https://{name}.example"),
                   "urlRetrievalStatus": "URL_RETRIEVAL_STATUS_SUCCESS"})
        });
        json!({"urlMetadata": pages.collect::<Value>()})
    };
    let queries = json!({"webSearchQueries": ["a"]});
    let answer = answer(&[
        chunk(json!({"urlContextMetadata": pages(&["a"]), "groundingMetadata": queries})),
        chunk(json!({"urlContextMetadata": pages(&["a", "b"]), "groundingMetadata": {}})),
        parts(&json!([{"text": "Hi."}]), "STOP"),
    ]);
    let [_, Part::Opaque(grounding), Part::Opaque(read)] = &answer.message.parts[..] else {
        panic!("{:?}", answer.message.parts);
    };
    assert_eq!(grounding.kind, "groundingMetadata");
    let expected = json!({"groundingMetadata": queries});
    assert_eq!(grounding.provider_state.data, expected);
    assert_eq!(read.kind, "urlContextMetadata");
    assert_eq!(read.text, Some(pages(&["a", "b"]).to_string()));
    let kept = json!({"urlContextMetadata": pages(&["a", "b"])});
    assert_eq!(read.provider_state.data, kept);
}

#[test]
fn what_is_no_chunk_is_a_fault_of_the_wire() {
    for data in ["<html>", "3", "\"x\"", "[1]", "{\"candidates\":"] {
        let error = decoder()
            .decode_frame("", data, &mut Vec::new())
            .unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Protocol, "{data}");
    }
    for data in ["", " ", "[DONE]", "[]", "{}"] {
        let mut events = Vec::new();
        decoder().decode_frame("", data, &mut events).unwrap();
        assert!(events.is_empty(), "{data}");
    }
}
