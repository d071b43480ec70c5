use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{JsonObject, ModelId, ModelRetry};

fn text(index: u32, text: &str) -> [ModelEvent; 2] {
    [
        ModelEvent::PartStarted {
            index,
            part: PartStart::Text,
        },
        ModelEvent::TextDelta {
            index,
            text: text.into(),
        },
    ]
}

fn tool(index: u32, id: &str, json: &str) -> [ModelEvent; 2] {
    [
        ModelEvent::PartStarted {
            index,
            part: PartStart::ToolUse {
                id: id.into(),
                name: "add".into(),
            },
        },
        ModelEvent::ToolInputDelta {
            index,
            json: json.into(),
        },
    ]
}

fn closed(index: u32) -> ModelEvent {
    ModelEvent::PartFinished { index }
}

fn finished(reason: FinishReason) -> ModelEvent {
    ModelEvent::Finished { reason, raw: None }
}

fn collect(events: &[ModelEvent]) -> Result<ChatResponse, GrammarViolation> {
    let mut accumulator = ResponseAccumulator::with_max_tool_input(64);
    for event in events {
        accumulator.push(event)?;
    }
    accumulator.finish()
}

#[test]
fn interleaved_parts_keep_their_deltas_apart() {
    let mut events = Vec::new();
    events.extend(tool(1, "a", "{\"x\":"));
    events.extend(tool(4, "b", "{\"y\":"));
    events.push(ModelEvent::ToolInputDelta {
        index: 1,
        json: "1}".into(),
    });
    events.push(ModelEvent::ToolInputDelta {
        index: 4,
        json: "2}".into(),
    });
    events.extend([closed(1), closed(4), finished(FinishReason::ToolUse)]);
    let answer = collect(&events).unwrap();
    let inputs: Vec<_> = answer
        .message
        .tool_uses()
        .map(|u| u.input.clone())
        .collect();
    assert_eq!(
        inputs,
        [
            ToolInput::from_json(json!({"x": 1})),
            ToolInput::from_json(json!({"y": 2}))
        ]
    );
}

#[test]
fn stop_with_a_tool_use_is_a_tool_use() {
    let mut events = tool(0, "a", "{}").to_vec();
    events.extend([closed(0), finished(FinishReason::Stop)]);
    assert_eq!(collect(&events).unwrap().finish, FinishReason::ToolUse);
}

#[test]
fn tool_calls_without_any_call_is_stop() {
    let mut events = text(0, "hi").to_vec();
    events.push(finished(FinishReason::ToolUse));
    assert_eq!(collect(&events).unwrap().finish, FinishReason::Stop);
}

#[test]
fn an_input_without_deltas_is_the_empty_object_only_when_complete() {
    let start = tool(0, "a", "")[0].clone();
    let whole = collect(&[start.clone(), closed(0), finished(FinishReason::ToolUse)]).unwrap();
    assert_eq!(
        whole.message.tool_uses().next().unwrap().input,
        ToolInput::from(JsonObject::new())
    );

    // The output limit cut the response before the first argument, so the input is not `{}`.
    let cut = collect(&[start, finished(FinishReason::Length)]).unwrap();
    assert_eq!(cut.finish, FinishReason::Length);
    assert!(
        cut.message
            .tool_uses()
            .next()
            .unwrap()
            .input
            .as_object()
            .is_none()
    );
}

#[test]
fn an_interrupted_answer_keeps_its_text_and_no_executable_call() {
    let mut accumulator = ResponseAccumulator::default();
    for event in text(0, "Let me").iter().chain(&tool(1, "a", "{\"x\":1}")) {
        accumulator.push(event).unwrap();
    }
    let answer = accumulator.into_interrupted_response();
    assert_eq!(answer.finish, FinishReason::Interrupted);
    assert_eq!(answer.message.text(), "Let me");
    let input = &answer.message.tool_uses().next().unwrap().input;
    assert!(matches!(input, ToolInput::Malformed { raw, .. } if raw == "{\"x\":1}"));
}

#[test]
fn an_input_beyond_the_cap_is_malformed_and_bounded() {
    let long = format!("{{\"x\":\"{}\"}}", "y".repeat(100));
    let mut events = tool(0, "a", &long).to_vec();
    events.extend([closed(0), finished(FinishReason::ToolUse)]);
    let answer = collect(&events).unwrap();
    let ToolInput::Malformed { raw, reason } = &answer.message.tool_uses().next().unwrap().input
    else {
        panic!("executed");
    };
    assert!(raw.len() <= 64);
    assert!(reason.contains("64 bytes"), "{reason}");
}

#[test]
fn empty_thinking_is_kept_for_its_signature_and_dropped_without() {
    let state = ProviderState::new_for_model(&ModelId::new("p", "m"), json!("signature"));
    let reasoning = |index| ModelEvent::PartStarted {
        index,
        part: PartStart::Reasoning,
    };
    let answer = collect(&[
        reasoning(0),
        ModelEvent::PartState {
            index: 0,
            state: Box::new(state.clone()),
        },
        reasoning(1),
        closed(1),
        text(2, "")[0].clone(),
        finished(FinishReason::Stop),
    ])
    .unwrap();
    assert_eq!(
        answer.message.parts,
        [Part::Reasoning(Reasoning {
            text: String::new(),
            provider_state: Some(state)
        })]
    );
}

#[test]
fn usage_after_the_finish_counts() {
    let usage = Usage {
        output_tokens: Some(3),
        ..Usage::default()
    };
    let answer = collect(&[
        finished(FinishReason::Stop),
        ModelEvent::Usage {
            usage: Box::new(usage),
        },
    ])
    .unwrap();
    assert_eq!(answer.usage, usage);
}

fn retrying() -> ModelEvent {
    let retry = ModelRetry {
        attempt: 2,
        delay_ms: 0,
        reason: "cut off".into(),
    };
    ModelEvent::Retrying {
        retry: Box::new(retry),
    }
}

#[test]
fn a_repeated_attempt_voids_what_came_before_it() {
    let mut events = vec![ModelEvent::Started {
        response_id: Some("first".into()),
        model: None,
        tool_choice: ToolChoiceOutcome::default(),
    }];
    events.extend(tool(0, "a", "{\"x\":"));
    events.push(retrying());
    // The second response uses the same part indices again.
    events.extend(tool(0, "b", "{}"));
    events.extend([closed(0), finished(FinishReason::Stop)]);
    let answer = collect(&events).unwrap();
    let calls: Vec<_> = answer.message.tool_uses().collect();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].id, "b");
    assert_eq!(answer.response_id, None);
}

#[test]
fn nothing_is_repeated_once_output_was_shown() {
    let whole = ModelEvent::PartStarted {
        index: 0,
        part: PartStart::Whole {
            part: Box::new(Part::text("shown")),
        },
    };
    let table = [
        (text(0, "").to_vec(), Ok(())),
        (tool(0, "a", "{").to_vec(), Ok(())),
        (text(0, "a").to_vec(), Err(GrammarViolation::LateRetry)),
        (vec![whole], Err(GrammarViolation::LateRetry)),
    ];
    for (events, expected) in table {
        let mut answer = ResponseAccumulator::default();
        for event in &events {
            answer.push(event).unwrap();
        }
        assert_eq!(answer.push(&retrying()), expected, "{events:?}");
    }
}

#[test]
fn faults_of_an_adapter_are_named() {
    let [start, delta] = text(3, "x");
    let cases: [(&[ModelEvent], GrammarViolation); 6] = [
        (
            std::slice::from_ref(&delta),
            GrammarViolation::NotOpen {
                index: 3,
                event: "text_delta",
            },
        ),
        (
            &[start.clone(), start.clone()],
            GrammarViolation::IndexOutOfOrder { index: 3 },
        ),
        (
            &[start.clone(), closed(3), delta.clone()],
            GrammarViolation::NotOpen {
                index: 3,
                event: "text_delta",
            },
        ),
        (
            &[
                start.clone(),
                ModelEvent::ToolInputDelta {
                    index: 3,
                    json: "{".into(),
                },
            ],
            GrammarViolation::WrongKind {
                index: 3,
                event: "tool_input_delta",
            },
        ),
        (
            &[finished(FinishReason::Stop), start.clone()],
            GrammarViolation::AfterFinish {
                event: "part_started",
            },
        ),
        (&[start.clone(), delta.clone()], GrammarViolation::NoFinish),
    ];
    for (events, expected) in cases {
        assert_eq!(collect(events).unwrap_err(), expected);
    }
}

proptest! {
    /// The result does not depend on how an input is divided into deltas.
    #[test]
    fn cutting_does_not_change_the_input(cuts in proptest::collection::vec(0usize..=30, 0..6)) {
        let whole = "{\"name\":\"Zoë\",\"n\":[1,2,3]}";
        let mut cuts: Vec<usize> =
            cuts.into_iter().filter(|at| whole.is_char_boundary(*at)).chain([0, whole.len()]).collect();
        cuts.sort_unstable();
        let mut events = vec![tool(0, "a", "")[0].clone()];
        events.extend(cuts.windows(2).map(|w| ModelEvent::ToolInputDelta {
            index: 0,
            json: whole[w[0]..w[1]].to_owned(),
        }));
        events.extend([closed(0), finished(FinishReason::ToolUse)]);
        let answer = collect(&events).unwrap();
        prop_assert_eq!(&answer.message.tool_uses().next().unwrap().input, &ToolInput::parse_input(whole));
    }

    /// No event sequence causes a panic, and the input of an incomplete tool use is never an
    /// object.
    #[test]
    fn any_order_of_events_is_survived(picks in proptest::collection::vec((0usize..7, 0u32..3), 0..24)) {
        let mut accumulator = ResponseAccumulator::default();
        let mut open_tools = std::collections::HashSet::new();
        for (pick, index) in picks {
            let event = match pick {
                0 => text(index, "")[0].clone(),
                1 => text(index, "t")[1].clone(),
                2 => tool(index, "id", "")[0].clone(),
                3 => tool(index, "id", "{}")[1].clone(),
                4 => closed(index),
                5 => ModelEvent::Usage { usage: Box::default() },
                _ => finished(FinishReason::Stop),
            };
            match (accumulator.push(&event), pick) {
                (Ok(()), 2) => {
                    open_tools.insert(index);
                }
                (Ok(()), 4) => {
                    open_tools.remove(&index);
                }
                _ => {}
            }
        }
        let answer = accumulator.into_interrupted_response();
        let malformed =
            answer.message.tool_uses().filter(|u| u.input.as_object().is_none()).count();
        prop_assert!(malformed >= open_tools.len());
    }
}

#[test]
fn provider_data_that_is_nested_too_deeply_is_refused() {
    let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    let model = ModelId::new("test", "model");
    for (levels, fits) in [
        (crate::MAX_JSON_DEPTH, true),
        (crate::MAX_JSON_DEPTH + 1, false),
    ] {
        let state = ProviderState::new_for_model(&model, nested(levels));
        let signed = ModelEvent::PartState {
            index: 0,
            state: Box::new(state.clone()),
        };
        let mut events = Vec::from(text(0, "said"));
        events.extend([signed, finished(FinishReason::Stop)]);
        assert_eq!(collect(&events).is_ok(), fits);
        let block = Part::Opaque(crate::Opaque {
            kind: "block".to_owned(),
            text: None,
            provider_state: state,
        });
        let whole = ModelEvent::PartStarted {
            index: 0,
            part: PartStart::Whole {
                part: Box::new(block),
            },
        };
        let answer = collect(&[whole, closed(0), finished(FinishReason::Stop)]);
        match answer {
            Ok(_) => assert!(fits),
            Err(violation) => assert_eq!(
                violation.to_string(),
                "part 0 contains data that is nested more than 64 levels deep"
            ),
        }
    }
}

#[test]
fn the_allowed_part_of_a_long_input_does_not_depend_on_the_deltas() {
    for deltas in [
        &["abéde"][..],
        &["ab", "é", "de"],
        &["a", "bé", "", "d", "e"],
    ] {
        let mut accumulator = ResponseAccumulator::with_max_tool_input(3);
        let (id, name) = ("1".to_owned(), "f".to_owned());
        let part = PartStart::ToolUse { id, name };
        let mut events = vec![ModelEvent::PartStarted { index: 0, part }];
        events.extend(deltas.iter().map(|json| ModelEvent::ToolInputDelta {
            index: 0,
            json: (*json).to_owned(),
        }));
        for event in &events {
            accumulator.push(event).unwrap();
        }
        let response = accumulator.into_interrupted_response();
        let input = &response.message.tool_uses().next().unwrap().input;
        let ToolInput::Malformed { raw, .. } = input else {
            panic!("{deltas:?} is an input");
        };
        assert_eq!(raw, "ab", "{deltas:?}");
    }
}
