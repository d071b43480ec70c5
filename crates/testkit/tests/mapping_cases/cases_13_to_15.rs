//! Tool choices that a model refuses, usage in two reports, and answers without an end.

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use switchboard_domain::{
    ChatModel, FinishReason, ModelCapabilities, ModelError, ModelErrorKind, ModelEvent, ModelId,
    ToolChoice, ToolChoiceOutcome, WarningKind,
};
use switchboard_testkit::fake::FakeModel;

use crate::{
    answers::{End, Said, named},
    question,
    wires::{Target, WIRES, Wire},
};

/// Returns whether a body forces a call.
fn is_forced(wire: Wire, body: &Value) -> bool {
    match wire {
        Wire::Anthropic => matches!(body["tool_choice"]["type"].as_str(), Some("any" | "tool")),
        Wire::Chat | Wire::Responses => {
            !matches!(body["tool_choice"].as_str(), None | Some("auto"))
                || body["tool_choice"].is_object()
        }
        Wire::Gemini => body["toolConfig"]["functionCallingConfig"]["mode"] == "ANY",
        Wire::Ollama => body.get("format").is_some(),
    }
}

#[test]
fn case_13_a_forced_tool_that_the_model_refuses_is_relaxed_and_told() {
    for wire in WIRES {
        let able = wire.capabilities();
        let unable = ModelCapabilities {
            forced_tool_choice: Some(false),
            ..able.clone()
        };
        for choice in [
            ToolChoice::Required,
            ToolChoice::Only(vec!["get_weather".into()]),
        ] {
            let request = question().with_tool_choice(choice.clone());
            let sent = wire.send_to(&request, &able).unwrap();
            assert!(
                is_forced(wire, &sent.body),
                "{wire:?} {choice:?}: {}",
                sent.body
            );
            assert_eq!(sent.warnings, [], "{wire:?} {choice:?}");

            let sent = wire.send_to(&request, &unable).unwrap();
            assert!(
                !is_forced(wire, &sent.body),
                "{wire:?} {choice:?}: {}",
                sent.body
            );
            let ToolChoiceOutcome::Relaxed { why } = &sent.outcome else {
                panic!("{wire:?} {choice:?}: {:?}", sent.outcome);
            };
            assert!(!why.is_empty(), "{wire:?} {choice:?}");
            let told: Vec<WarningKind> = sent.warnings.iter().map(|it| it.kind).collect();
            assert_eq!(
                told,
                [WarningKind::ToolChoiceRelaxed],
                "{wire:?} {choice:?}"
            );
            // The first event of the answer has the outcome and the warnings.
            let target = Target {
                capabilities: unable.clone(),
                ..wire.target()
            };
            let text = wire.answer(&[Said::Text("Hi.")], End::Complete);
            let replayed = target.read(&request, &text);
            let [
                ModelEvent::Started { tool_choice, .. },
                ModelEvent::Warning { warning },
                ..,
            ] = &replayed.events[..]
            else {
                panic!("{wire:?}: {:?}", replayed.events);
            };
            assert_eq!((tool_choice, warning), (&sent.outcome, &sent.warnings[0]));
        }
    }
}

#[test]
fn case_13_the_models_that_refuse_it_are_known() {
    for name in [
        "claude-opus-5-5",
        "claude-sonnet-5-5",
        "claude-fable-5-1",
        "claude-fable-5-2",
        "claude-mythos-5-1",
    ] {
        let model = ModelId::new("anthropic", name);
        let request = question().with_tool_choice(ToolChoice::Required);
        let sent = Target::new(Wire::Anthropic, model).send(&request).unwrap();
        assert!(
            matches!(sent.outcome, ToolChoiceOutcome::Relaxed { .. }),
            "{name}"
        );
        assert!(!is_forced(Wire::Anthropic, &sent.body), "{name}");
    }
}

#[test]
fn case_14_a_later_report_without_cache_fields_keeps_the_earlier_ones() {
    let text = named(&[
        json!({"type": "message_start", "message": {"id": "msg_1", "usage": {
            "input_tokens": 10, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 7,
            "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
               "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ]);
    let usage = Wire::Anthropic.read_whole(&question(), &text).usage;
    assert_eq!(usage.input_tokens, Some(22));
    assert_eq!(usage.cache_read_tokens, Some(7));
    assert_eq!(usage.cache_write_tokens, Some(5));
    assert_eq!(usage.output_tokens, Some(9));
}

#[test]
fn case_15_an_end_without_its_event_is_interrupted_and_no_stop() {
    for wire in WIRES {
        for said in [
            Said::Text("Half an ans"),
            Said::Call("call_1", "get_weather", r#"{"city":"Kiel"}"#),
        ] {
            let replayed = wire.read(&question(), &wire.answer(&[said], End::Missing));
            let failure = replayed.failure.unwrap();
            let interrupted = ModelErrorKind::Interrupted;
            assert_eq!(failure.kind, interrupted.as_str(), "{wire:?} {said:?}");
            assert_eq!(
                replayed.response.finish,
                FinishReason::Interrupted,
                "{wire:?}"
            );
        }
        let text = wire.answer(&[Said::Text("Half an ans")], End::Missing) + &wire.error();
        let replayed = wire.read(&question(), &text);
        let failure = replayed.failure.unwrap();
        assert!(
            failure.message.contains("It broke."),
            "{wire:?}: {failure:?}"
        );
        assert_eq!(
            replayed.response.finish,
            FinishReason::Interrupted,
            "{wire:?}"
        );
        assert_eq!(replayed.response.message.text(), "Half an ans", "{wire:?}");
    }
}

/// Returns the text of an answer and its final error.
async fn until_it_breaks(model: &dyn ChatModel) -> (String, ModelError) {
    let mut stream = model.stream(&question()).await.unwrap();
    let mut text = String::new();
    loop {
        match stream.next().await.unwrap() {
            Ok(ModelEvent::TextDelta { text: more, .. }) => text.push_str(&more),
            Ok(ModelEvent::Finished { reason, .. }) => panic!("it finished: {reason:?}"),
            Ok(_) => {}
            Err(error) => {
                assert!(stream.next().await.is_none());
                return (text, error);
            }
        }
    }
}

#[tokio::test]
async fn case_15_an_answer_that_breaks_after_200_is_not_asked_for_again() {
    for wire in WIRES {
        let fake = FakeModel::start().await.unwrap();
        let model = wire.adapter(&fake);
        let begun = || wire.begun(wire.answer(&[Said::Text("Half an ans")], End::Missing));
        for (number, answer) in [begun(), begun().break_off(), begun().piece(wire.error())]
            .into_iter()
            .enumerate()
        {
            fake.answer(answer);
            let (text, error) = until_it_breaks(model.as_ref()).await;
            assert_eq!(text, "Half an ans", "{wire:?} {number}");
            assert_eq!(error.http_status(), Some(200), "{wire:?} {number}: {error}");
            if number < 2 {
                assert_eq!(error.kind, ModelErrorKind::Interrupted, "{wire:?} {number}");
            }
            assert_eq!(fake.requests().len(), number + 1, "{wire:?}");
        }
    }
}
