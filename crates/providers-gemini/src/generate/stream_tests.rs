use switchboard_domain::{ChatResponse, Media, Reasoning, ResponseAccumulator, Text, ToolInput};

use super::*;

fn model() -> ModelId {
    ModelId::new("gemini", "gemini-3.8-flash")
}

fn decoder() -> GenerateDecoder {
    GenerateDecoder::new(
        model(),
        ToolChoiceOutcome::Native,
        Vec::new(),
        LocalIds::default(),
    )
}

/// What came before the end or the error, and whether it was one.
fn run(frames: &[Value]) -> (Vec<ModelEvent>, Result<(), ModelError>) {
    let (mut decoder, mut events) = (decoder(), Vec::new());
    for frame in frames {
        if let Err(error) = decoder.frame("", &frame.to_string(), &mut events) {
            return (events, Err(error));
        }
    }
    let end = decoder.end(&mut events);
    (events, end)
}

fn collected(events: &[ModelEvent]) -> ChatResponse {
    let mut answer = ResponseAccumulator::default();
    for event in events {
        answer.push(event).unwrap();
    }
    answer.finish().unwrap()
}

fn answer(frames: &[Value]) -> ChatResponse {
    let (events, end) = run(frames);
    end.unwrap();
    collected(&events)
}

fn failure(frames: &[Value]) -> ModelError {
    let (events, end) = run(frames);
    let is_finish = |event: &ModelEvent| matches!(event, ModelEvent::Finished { .. });
    assert!(!events.iter().any(is_finish), "{events:?}");
    end.unwrap_err()
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

#[expect(clippy::unnecessary_wraps, reason = "as it stands in a part")]
fn signed(state: Value) -> Option<ProviderState> {
    Some(ProviderState::minted_by(&model(), state))
}

const FIRST: &str = "CpQBAdHtim9kZWVwIHRob3VnaHQtMQ==";
const SECOND: &str = "EqkCCqYCAdHtim8tYW5vdGhlcg==";

#[test]
fn the_first_event_says_who_answers_and_what_was_not_as_asked() {
    let warning = Warning::new(WarningKind::OptionDropped, "no seed");
    let outcome = ToolChoiceOutcome::Relaxed {
        why: "because".into(),
    };
    let mut decoder = GenerateDecoder::new(
        model(),
        outcome.clone(),
        vec![warning.clone()],
        LocalIds::default(),
    );
    let mut events = Vec::new();
    decoder.frame("", "{}", &mut events).unwrap();
    assert!(events.is_empty());
    let chunk = &transcript("text")[0];
    decoder.frame("", &chunk.to_string(), &mut events).unwrap();
    assert_eq!(
        events[..2],
        [
            ModelEvent::Started {
                response_id: Some("resp-1".into()),
                model: Some("gemini-3.8-flash".into()),
                tool_choice: outcome,
            },
            ModelEvent::Warning { warning },
        ]
    );
}

#[test]
fn case_01_stop_with_a_call_is_tool_use() {
    let answer = answer(&transcript("call"));
    assert_eq!(answer.finish, FinishReason::ToolUse);
    assert_eq!(answer.finish_raw.as_deref(), Some("STOP"));
    let call = answer.message.tool_uses().next().unwrap();
    assert_eq!(
        (call.id.as_str(), call.name.as_str()),
        ("hx7k2p9q", "get_weather")
    );
    let state = json!({"id": "hx7k2p9q", "thoughtSignature": FIRST});
    assert_eq!(call.provider_state, signed(state));
    // Thoughts are part of the output.
    assert_eq!(answer.usage.output_tokens, Some(76));
    assert_eq!(answer.usage.reasoning_tokens, Some(64));
}

#[test]
fn case_02_several_calls_in_one_chunk_are_all_kept_and_case_03_the_first_alone_is_signed() {
    let answer = answer(&transcript("two-calls"));
    let calls: Vec<_> = answer.message.tool_uses().collect();
    let inputs: Vec<_> = calls
        .iter()
        .map(|call| call.input.as_object().unwrap()["city"].clone())
        .collect();
    assert_eq!(inputs, ["Hamburg", "Kiel"]);
    assert_eq!(
        calls[0].provider_state,
        signed(json!({"thoughtSignature": FIRST}))
    );
    assert_eq!(calls[1].provider_state, None);
}

#[test]
fn case_04_a_trailing_signature_on_an_empty_text_is_kept() {
    let answer = answer(&transcript("thoughts-then-text"));
    let expected = [
        Part::Reasoning(Reasoning {
            text: "**Weather**\n\nThe user asks for the weather.".into(),
            provider_state: signed(json!({})),
        }),
        Part::text("It rains."),
        Part::Text(Text {
            text: String::new(),
            provider_state: signed(json!({"thoughtSignature": SECOND})),
        }),
    ];
    assert_eq!(answer.message.parts, expected);
    assert_eq!(answer.finish, FinishReason::Stop);
    assert_eq!(answer.usage.cache_read_tokens, Some(16));
}

#[test]
fn case_05_calls_without_ids_get_unique_local_ones_and_a_repeated_id_too() {
    let ids = |name: &str| -> Vec<_> {
        let answer = answer(&transcript(name));
        answer.message.tool_uses().map(|it| it.id.clone()).collect()
    };
    assert_eq!(ids("two-calls"), ["call_local_1", "call_local_2"]);
    assert_eq!(
        ids("calls-over-chunks"),
        ["a1b2c3d4", "e5f6g7h8", "call_local_1"]
    );
    // What goes back is the server's own.
    let answer = answer(&transcript("calls-over-chunks"));
    let last = answer.message.tool_uses().last().unwrap();
    assert_eq!(last.provider_state, signed(json!({"id": "a1b2c3d4"})));
}

#[test]
fn case_07_an_error_frame_without_a_numeric_code_is_an_error() {
    let error = failure(&transcript("error-mid-stream"));
    assert_eq!(error.kind, ModelErrorKind::Overloaded { retry_after: None });
    assert!(error.message().starts_with("The model is overloaded"));
    // In a list, and with the word as the name of the event.
    let error = failure(&transcript("error-at-once"));
    assert_eq!(error.retry_after(), Some(std::time::Duration::from_secs(7)));
    let mut events = Vec::new();
    let data = r#"{"error": {"message": "No."}}"#;
    let error = decoder().frame("error", data, &mut events).unwrap_err();
    assert_eq!((error.kind, events.len()), (ModelErrorKind::Interrupted, 0));
}

#[test]
fn case_08_an_answer_at_the_request_limit_goes_on_and_its_usage_is_summed() {
    let first = transcript("continuation");
    let continuation = Continuation::default();
    let mut decoder = decoder().with_continuation(continuation.clone());
    let mut events = Vec::new();
    // The token may come before the reason.
    let early = json!({"candidates": [{"continuationToken": "b2xkZXI="}]});
    for frame in std::iter::once(&early).chain(&first) {
        decoder.frame("", &frame.to_string(), &mut events).unwrap();
    }
    assert_eq!(continuation.take().as_deref(), Some("dG9rZW4tMQ=="));
    for (text, finish) in [(" two", json!(null)), (".", json!("STOP"))] {
        let rest = json!({
            "candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": finish}],
            "usageMetadata": {"promptTokenCount": 50, "candidatesTokenCount": 7},
        });
        decoder.frame("", &rest.to_string(), &mut events).unwrap();
    }
    decoder.end(&mut events).unwrap();
    let answer = collected(&events);
    assert_eq!(answer.message.parts, [Part::text("Chapter one, and two.")]);
    assert_eq!(answer.finish, FinishReason::Stop);
    assert_eq!(answer.usage.input_tokens, Some(92));
    assert_eq!(answer.usage.output_tokens, Some(12));
}

#[test]
fn an_answer_that_cannot_go_on_is_at_a_limit() {
    // Nobody asks for the rest.
    let answer = answer(&transcript("continuation"));
    assert_eq!(answer.finish, FinishReason::Length);
    assert_eq!(answer.finish_raw.as_deref(), Some(CONTINUATION));
    // There is no token.
    let mut decoder = self::decoder().with_continuation(Continuation::default());
    let mut events = Vec::new();
    let frame = parts(&json!([{"text": "a"}]), CONTINUATION).to_string();
    decoder.frame("", &frame, &mut events).unwrap();
    decoder.end(&mut events).unwrap();
    assert_eq!(collected(&events).finish, FinishReason::Length);
    // It is the one that brought this piece.
    let continuation = Continuation::default();
    let mut decoder = self::decoder().with_continuation(continuation.clone());
    let frame = transcript("continuation").pop().unwrap().to_string();
    let mut events = Vec::new();
    decoder.frame("", &frame, &mut events).unwrap();
    assert!(continuation.take().is_some());
    decoder.frame("", &frame, &mut events).unwrap();
    assert_eq!(continuation.take(), None);
    decoder.end(&mut events).unwrap();
    assert_eq!(collected(&events).finish, FinishReason::Length);
}

#[test]
fn case_10_a_call_without_arguments_has_an_empty_object() {
    let answer = answer(&transcript("no-arguments"));
    let inputs: Vec<_> = answer
        .message
        .tool_uses()
        .map(|it| it.input.clone())
        .collect();
    assert_eq!(inputs, vec![ToolInput::parse("{}"); 3]);
    assert_eq!(answer.finish, FinishReason::ToolUse);
}

#[test]
fn case_26_no_arguments_in_any_form_are_an_empty_object() {
    for args in [json!(null), json!({}), json!(""), json!(" ")] {
        let call = json!([{"functionCall": {"name": "list_cities", "args": args}}]);
        let answer = answer(&[parts(&call, "STOP")]);
        let call = answer.message.tool_uses().next().unwrap();
        assert_eq!(call.input, ToolInput::parse("{}"), "{args}");
        assert_eq!(answer.finish, FinishReason::ToolUse);
    }
}

#[test]
fn case_11_an_empty_thought_is_kept_if_it_is_signed() {
    let answer = answer(&transcript("thoughts-then-call"));
    let thoughts: Vec<_> = answer
        .message
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Reasoning(it) => Some((it.text.as_str(), it.provider_state.clone())),
            _ => None,
        })
        .collect();
    let expected = [
        ("I need the weather.", signed(json!({}))),
        ("", signed(json!({"thoughtSignature": SECOND}))),
    ];
    assert_eq!(thoughts, expected);
    let empty = json!([{"text": "", "thought": true}, {"text": ""}]);
    assert_eq!(
        collected(&run(&[parts(&empty, "STOP")]).0).message.parts,
        []
    );
}

#[test]
fn signed_text_is_a_part_of_its_own() {
    let answer = answer(&transcript("signed-text"));
    let expected = [
        Part::Text(Text {
            text: "It is 12 °C.".into(),
            provider_state: signed(json!({"thoughtSignature": FIRST})),
        }),
        Part::text(" Take a coat."),
    ];
    assert_eq!(answer.message.parts, expected);
    // A signature with nothing beside it.
    let alone = json!([{"thoughtSignature": FIRST}, {"text": null, "thoughtSignature": SECOND}]);
    let answer = collected(&run(&[parts(&alone, "STOP")]).0);
    assert_eq!(answer.message.parts.len(), 2);
}

#[test]
fn case_15_an_end_without_a_reason_is_interrupted() {
    let error = failure(&transcript("eof-early"));
    assert_eq!(error.kind, ModelErrorKind::Interrupted);
    assert_eq!(failure(&[]).kind, ModelErrorKind::Interrupted);
    let unspecified = parts(&json!([{"text": "Hm."}]), "FINISH_REASON_UNSPECIFIED");
    assert_eq!(failure(&[unspecified]).kind, ModelErrorKind::Interrupted);
}

#[test]
fn case_16_an_alias_leads_back_to_the_tool() {
    let tool = switchboard_domain::ToolDefinition::new("7zip", "", json!({}));
    let request = switchboard_domain::ChatRequest::default().with_tools([tool]);
    let mut decoder =
        decoder().with_tool_mapping(ToolMapping::of(&request, crate::SchemaForm::JsonSchema));
    let mut events = Vec::new();
    let frame = parts(
        &json!([{"functionCall": {"name": "_7zip_98fa304e"}}]),
        "STOP",
    );
    decoder.frame("", &frame.to_string(), &mut events).unwrap();
    decoder.end(&mut events).unwrap();
    assert_eq!(
        collected(&events).message.tool_uses().next().unwrap().name,
        "7zip"
    );
}

#[test]
fn case_17_an_output_limit_beats_the_calls_before_it() {
    let answer = answer(&transcript("max-tokens-after-call"));
    assert_eq!(answer.finish, FinishReason::Length);
    // The call came whole before the limit.
    let call = answer.message.tool_uses().next().unwrap();
    assert!(call.input.as_object().is_some());
}

#[test]
fn case_17_a_named_choice_that_ends_with_stop_is_tool_use() {
    let call = json!([{"functionCall": {"name": "list_cities", "args": {}}}]);
    for finish in ["STOP", "FUNCTION_CALL"] {
        let answer = answer(&[parts(&call, finish)]);
        assert_eq!(answer.finish, FinishReason::ToolUse);
        assert_eq!(answer.finish_raw.as_deref(), Some(finish));
    }
    // And a word that says more than the output does.
    let answer = answer(&[parts(&json!([{"text": "None."}]), "FUNCTION_CALL")]);
    assert_eq!(answer.finish, FinishReason::Stop);
}

#[test]
fn case_20_withheld_output_is_told_with_its_reason() {
    for (name, raw, said) in [
        ("safety", "SAFETY", "The answer is"),
        ("recitation", "RECITATION", "It was the best of times"),
        ("blocked-prompt", "PROHIBITED_CONTENT", ""),
    ] {
        let answer = answer(&transcript(name));
        assert_eq!(answer.finish, FinishReason::ContentFilter, "{name}");
        assert_eq!(answer.finish_raw.as_deref(), Some(raw));
        assert_eq!(answer.message.text(), said);
        assert_eq!(answer.usage.input_tokens, Some(42));
    }
    let blocked = json!({"promptFeedback": {
        "blockReason": "SOMETHING_NEW", "blockReasonMessage": "Not here.",
    }});
    let answer = answer(&[blocked]);
    assert_eq!(answer.finish, FinishReason::ContentFilter);
    assert!(answer.warnings[0].message.contains("Not here."));
    // Feedback on a prompt that was let through.
    let ratings = json!({"promptFeedback": {"safetyRatings": []}});
    let answer = self::answer(&[ratings, parts(&json!([{"text": "Hi"}]), "STOP")]);
    assert_eq!(answer.finish, FinishReason::Stop);
}

#[test]
fn a_call_that_the_api_could_not_read_is_told() {
    for (name, said) in [
        ("malformed-function-call", "default_api.get_weather"),
        ("unexpected-tool-call", "get_time"),
    ] {
        let answer = answer(&transcript(name));
        assert_eq!(answer.finish, FinishReason::MalformedToolCall, "{name}");
        assert!(
            answer.warnings[0].message.contains(said),
            "{:?}",
            answer.warnings
        );
    }
}

#[test]
fn case_21_usage_after_the_end_counts_and_none_is_not_zero() {
    let late = answer(&transcript("usage-after-finish"));
    assert_eq!(
        (late.usage.input_tokens, late.usage.output_tokens),
        (Some(42), Some(2))
    );
    assert_eq!(late.usage.cache_read_tokens, Some(32));
    assert!(!answer(&transcript("no-usage")).usage.is_known());
    let thinking = answer(&transcript("max-tokens-in-thoughts"));
    assert_eq!(thinking.usage.output_tokens, Some(100));
    assert_eq!(thinking.finish, FinishReason::Length);
}

#[test]
fn case_14_what_a_later_report_leaves_out_stays_as_it_was() {
    let report = |usage: Value| json!({"candidates": [], "usageMetadata": usage});
    let first = json!({"promptTokenCount": 42, "cachedContentTokenCount": 32,
                       "candidatesTokenCount": 1, "thoughtsTokenCount": 5});
    let answer = answer(&[
        report(first),
        report(json!({"promptTokenCount": 42, "candidatesTokenCount": 9})),
        parts(&json!([{"text": "Hi."}]), "STOP"),
    ]);
    let expected = Usage {
        input_tokens: Some(42),
        output_tokens: Some(14),
        cache_read_tokens: Some(32),
        reasoning_tokens: Some(5),
        ..Usage::default()
    };
    assert_eq!(answer.usage, expected);
}

#[test]
fn case_27_a_call_in_the_chunk_with_the_reason_is_kept() {
    let answer = answer(&transcript("calls-over-chunks"));
    assert_eq!(answer.message.tool_uses().count(), 3);
}

#[test]
fn odd_calls_are_never_run_as_something_else() {
    let answer = answer(&transcript("odd-calls"));
    let inputs: Vec<_> = answer.message.tool_uses().map(|it| &it.input).collect();
    assert_eq!(inputs.len(), 2);
    assert!(
        inputs.iter().all(|input| input.as_object().is_none()),
        "{inputs:?}"
    );
    assert!(
        answer.warnings[0]
            .message
            .contains("1 call(s) came without a name")
    );
    let nameless = json!([{"functionCall": {"args": {}}}]);
    let answer = self::answer(&[parts(&nameless, "STOP")]);
    assert_eq!(answer.finish, FinishReason::MalformedToolCall);
}

#[test]
fn what_is_new_survives() {
    let answer = answer(&transcript("unknown-values"));
    assert_eq!(answer.finish, FinishReason::Other("SOMETHING_NEW".into()));
    let [Part::Text(_), Part::Opaque(opaque), Part::Text(_)] = answer.message.parts.as_slice()
    else {
        panic!("{:?}", answer.message.parts);
    };
    assert_eq!((opaque.kind.as_str(), &opaque.text), ("hologram", &None));
    assert_eq!(
        opaque.provider_state.data,
        json!({"part": {"hologram": {"size": 3}}})
    );
    assert_eq!(answer.usage.output_tokens, Some(4));
}

#[test]
fn the_providers_own_tools_are_shown_and_kept() {
    let code = answer(&transcript("code-execution"));
    let shown: Vec<_> = code
        .message
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Opaque(it) => Some((it.kind.as_str(), it.text.as_deref())),
            _ => None,
        })
        .collect();
    let expected = [
        ("executableCode", Some("print(6*7)")),
        ("codeExecutionResult", Some("42\n")),
    ];
    assert_eq!(shown, expected);
    assert_eq!(code.usage.input_tokens, Some(67));

    let grounded = answer(&transcript("grounding"));
    let Some(Part::Opaque(sources)) = grounded.message.parts.last() else {
        panic!("{:?}", grounded.message.parts);
    };
    let text = "[search: weather hamburg]\nWeather in Hamburg: https://example.org/weather\n\
                https://example.org/more";
    assert_eq!(sources.text.as_deref(), Some(text));
    assert_eq!(grounded.finish, FinishReason::Stop);
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
    assert_eq!(
        grounding.provider_state.data,
        json!({"groundingMetadata": queries})
    );
    assert_eq!(read.kind, "urlContextMetadata");
    assert_eq!(
        read.text.as_deref(),
        Some("https://a.example\nhttps://b.example")
    );
    let kept = json!({"urlContextMetadata": pages(&["a", "b"])});
    assert_eq!(read.provider_state.data, kept);
}

#[test]
fn images_are_images_unless_they_are_signed() {
    let answer = answer(&transcript("images"));
    let [_, Part::Image(media), Part::Opaque(kept)] = answer.message.parts.as_slice() else {
        panic!("{:?}", answer.message.parts);
    };
    assert_eq!(*media, Media::base64("image/png", "iVBORw0KGgo="));
    assert_eq!(kept.text.as_deref(), Some("[image/png]"));
    assert_eq!(kept.provider_state.data[PIECE][SIGNATURE], SECOND);
}

#[test]
fn only_the_first_of_several_candidates_is_read() {
    let answer = answer(&transcript("several-candidates"));
    assert_eq!(answer.message.text(), "One.");
    assert_eq!(answer.warnings.len(), 1);
}

#[test]
fn what_is_no_chunk_is_a_fault_of_the_wire() {
    for data in ["<html>", "3", "\"x\"", "[1]", "{\"candidates\":"] {
        let error = decoder().frame("", data, &mut Vec::new()).unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Protocol, "{data}");
    }
    for data in ["", " ", "[DONE]", "[]", "{}"] {
        let mut events = Vec::new();
        decoder().frame("", data, &mut events).unwrap();
        assert!(events.is_empty(), "{data}");
    }
}
