use futures_util::{FutureExt as _, StreamExt as _, stream};
use serde_json::{Value, json};
use switchboard_domain::{
    ChatResponse, FinishReason, Message, ModelError, ModelErrorKind, ModelEvent, Part, PartStart,
    ResponseAccumulator, Role, ToolChoice, ToolDefinition, ToolInput, ToolUse,
};

use super::*;
use crate::tool_names::NameRule;

#[path = "buffering_tests.rs"]
mod buffering;
#[path = "format_parsers_tests.rs"]
mod forms;
#[path = "laws_tests.rs"]
mod laws;
#[path = "quoted_tests.rs"]
mod quoted;

pub(super) fn request() -> ChatRequest {
    let weather = json!({
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "units": {"enum": ["c", "f"]},
            "detailed": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "note": {"type": ["string", "null"]},
        },
    });
    ChatRequest::new([Message::user("What is the weather in Paris?")]).with_tools([
        ToolDefinition::new("get_weather", "The weather of a city.", weather),
        ToolDefinition::new("get_time", "The time.", json!({"type": "object"})),
        ToolDefinition::new("crm/find.one", "A customer.", json!({"type": "object"})),
    ])
}

pub(super) fn started(index: u32) -> ModelEvent {
    ModelEvent::PartStarted {
        index,
        part: PartStart::Text,
    }
}

pub(super) fn delta(index: u32, text: &str) -> ModelEvent {
    ModelEvent::TextDelta {
        index,
        text: text.to_owned(),
    }
}

pub(super) fn closed(index: u32) -> ModelEvent {
    ModelEvent::PartFinished { index }
}

pub(super) fn finished(reason: FinishReason) -> ModelEvent {
    ModelEvent::Finished { reason, raw: None }
}

/// Returns the events of an answer with one text, which arrives in `pieces`.
pub(super) fn answer(pieces: &[&str], reason: FinishReason) -> Vec<ModelEvent> {
    let mut events = vec![started(0)];
    events.extend(pieces.iter().map(|piece| delta(0, piece)));
    events.extend([closed(0), finished(reason)]);
    events
}

pub(super) fn transform(
    recovery: &CallRecoverySettings,
    events: Vec<ModelEvent>,
) -> Vec<ModelEvent> {
    let mut transformer = TextCallConverter::new(recovery.clone());
    let mut all = Vec::new();
    for event in events {
        transformer.push(event, &mut all);
    }
    transformer.end_answer(&mut all);
    all
}

/// Joins adjacent deltas of the same text.
pub(super) fn joined(events: Vec<ModelEvent>) -> Vec<ModelEvent> {
    let mut all: Vec<ModelEvent> = Vec::new();
    for event in events {
        if let ModelEvent::TextDelta { index, text } = &event
            && let Some(ModelEvent::TextDelta {
                index: last,
                text: before,
            }) = all.last_mut()
            && last == index
        {
            before.push_str(text);
        } else {
            all.push(event);
        }
    }
    all
}

pub(super) fn response(events: &[ModelEvent]) -> ChatResponse {
    let mut answer = ResponseAccumulator::default();
    for event in events {
        answer.push(event).unwrap();
    }
    answer.into_interrupted_response()
}

pub(super) fn all() -> CallRecoverySettings {
    CallRecoverySettings::for_request(&request(), TextCallFormats::ALL)
}

/// Returns the converted answer for a text that arrives in one piece.
pub(super) fn read(
    recovery: &CallRecoverySettings,
    text: &str,
    reason: FinishReason,
) -> ChatResponse {
    response(&transform(recovery, answer(&[text], reason)))
}

/// A retry discards the buffered text and the ids of the failed attempt.
#[test]
fn a_repeated_attempt_starts_from_the_beginning() {
    let retry = switchboard_domain::ModelRetry {
        attempt: 2,
        delay_ms: 0,
        reason: "cut off".to_owned(),
    };
    let mut events = vec![started(0), delta(0, CALL), delta(0, "\n<tool_")];
    events.push(ModelEvent::Retrying {
        retry: Box::new(retry),
    });
    events.extend(answer(&[CALL], FinishReason::Stop));
    let response = response(&transform(&all(), events));
    assert_eq!(response.message.text(), "");
    let ids: Vec<_> = response.message.tool_uses().map(|it| &it.id).collect();
    assert_eq!(ids, ["call_text_1"]);
}

const CALL: &str = "<tool_call>\n{\"name\": \"get_time\"}\n</tool_call>";

#[test]
fn the_finish_reason_matches_the_recovered_calls() {
    for (text, reason, expected) in [
        (CALL, FinishReason::Stop, FinishReason::ToolUse),
        (CALL, FinishReason::Length, FinishReason::Length),
        (CALL, FinishReason::ToolUse, FinishReason::ToolUse),
        ("no call", FinishReason::Stop, FinishReason::Stop),
        ("no call", FinishReason::Refusal, FinishReason::Refusal),
    ] {
        let events = transform(&all(), answer(&[text], reason));
        // The finish reason is checked in the event, because `ResponseAccumulator` corrects it.
        assert_eq!(events.last(), Some(&finished(expected)), "{text}");
    }
}

#[test]
fn ids_are_unique_in_the_conversation_and_the_answer() {
    let mut request = request();
    let earlier = ToolUse::new("call_text_1", "get_time", ToolInput::parse_input("{}"));
    let earlier = Message::new(Role::Assistant, [Part::ToolUse(earlier)]);
    request.messages.push(Arc::new(earlier));
    let mut events = vec![ModelEvent::PartStarted {
        index: 0,
        part: PartStart::ToolUse {
            id: "call_text_2".into(),
            name: "get_time".into(),
        },
    }];
    events.extend([closed(0), started(1), delta(1, CALL), delta(1, CALL)]);
    events.push(finished(FinishReason::Stop));
    let recovery = CallRecoverySettings::for_request(&request, TextCallFormats::ALL);
    let response = response(&transform(&recovery, events));
    let ids: Vec<_> = response
        .message
        .tool_uses()
        .map(|it| it.id.as_str())
        .collect();
    assert_eq!(ids, ["call_text_2", "call_text_3", "call_text_4"]);
}

#[test]
fn only_allowed_tools_are_recovered() {
    let with = |choice| {
        let request = request().with_tool_choice(choice);
        let recovery = CallRecoverySettings::for_request(&request, TextCallFormats::ALL);
        let response = read(&recovery, CALL, FinishReason::Stop);
        response.message.tool_uses().count()
    };
    assert_eq!(with(ToolChoice::Auto), 1);
    assert_eq!(with(ToolChoice::Required), 1);
    assert_eq!(with(ToolChoice::None), 0);
    assert_eq!(with(ToolChoice::Only(vec!["get_time".into()])), 1);
    assert_eq!(with(ToolChoice::Only(vec!["get_weather".into()])), 0);
}

#[test]
fn names_of_the_wire_come_back_as_declared() {
    let names = ToolNames::from_request(&request(), NameRule::OPENAI);
    let recovery = all().with_wire_names(&names);
    let wire = names.wire_name("crm/find.one").into_owned();
    let text = format!("<function={wire}>{{\"id\": 1}}</function>");
    let response = read(&recovery, &text, FinishReason::Stop);
    let names: Vec<_> = response.message.tool_uses().map(|it| &it.name).collect();
    assert_eq!(names, ["crm/find.one"]);
}

#[test]
fn the_order_of_parts_and_their_state_are_kept() {
    let state = switchboard_domain::ProviderState {
        provider: "p".into(),
        model: None,
        data: json!("signed"),
    };
    let reasoning = PartStart::Reasoning;
    let events = vec![
        ModelEvent::PartStarted {
            index: 3,
            part: reasoning,
        },
        ModelEvent::ReasoningDelta {
            index: 3,
            text: "hm <tool_call>{\"name\": \"get_time\"}</tool_call>".into(),
        },
        closed(3),
        started(5),
        delta(5, "  First. <tool_call>{\"name\":"),
        // Another part begins while the text of a call is buffered.
        ModelEvent::PartStarted {
            index: 7,
            part: PartStart::ToolUse {
                id: "native".into(),
                name: "get_weather".into(),
            },
        },
        ModelEvent::ToolInputDelta {
            index: 7,
            json: "{\"city\":\"Rome\"}".into(),
        },
        delta(5, " \"get_time\"}</tool_call> Then."),
        ModelEvent::PartState {
            index: 5,
            state: Box::new(state.clone()),
        },
        closed(7),
        closed(5),
        ModelEvent::Usage {
            usage: Box::default(),
        },
        finished(FinishReason::Stop),
    ];
    let response = response(&transform(&all(), events));
    let shown: Vec<String> = response
        .message
        .parts
        .iter()
        .map(|part| match part {
            Part::Reasoning(reasoning) => format!("thought {}", reasoning.text.len()),
            Part::Text(text) => format!("{:?} {:?}", text.text, text.provider_state.is_some()),
            Part::ToolUse(tool_use) => format!("{} {}", tool_use.name, tool_use.id),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(
        shown,
        [
            "thought 46",
            "\"  First. \" false",
            "get_weather native",
            "get_time call_text_1",
            "\" Then.\" true",
        ]
    );
}

#[test]
fn an_input_above_the_limit_is_malformed_and_its_rest_is_dropped() {
    let mut recovery = all();
    recovery.limit = 64;
    let long = "x".repeat(100);
    let text = format!(
        "<tool_call>{{\"name\": \"get_weather\", \"arguments\": {{\"city\": \"{long}\"}}}}</tool_call>"
    );
    let whole = joined(transform(&recovery, answer(&[&text], FinishReason::Stop)));
    let response = response(&whole);
    let uses: Vec<_> = response.message.tool_uses().collect();
    assert_eq!(uses.len(), 1);
    assert!(uses[0].input.as_object().is_none(), "{:?}", uses[0].input);
    assert!(response.message.text().ends_with("\"}}</tool_call>"));
    // The input is truncated at the same position if the text arrives as single characters.
    let pieces: Vec<String> = text.chars().map(String::from).collect();
    let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
    let pieces = joined(transform(&recovery, answer(&pieces, FinishReason::Stop)));
    assert_eq!(pieces, whole);
}

fn stream_of(events: Vec<Result<ModelEvent, ModelError>>) -> ModelStream {
    Box::pin(stream::iter(events))
}

#[test]
fn a_broken_stream_emits_buffered_text_before_its_error() {
    let error = || ModelError::new("p", ModelErrorKind::Interrupted, "gone");
    let events = vec![
        Ok(started(0)),
        Ok(delta(
            0,
            "Look: <tool_call>{\"name\": \"get_weather\", \"argu",
        )),
        Err(error()),
    ];
    let stream = recover_tool_calls(stream_of(events), all());
    let events: Vec<_> = stream.collect().now_or_never().unwrap();
    let (last, before) = events.split_last().unwrap();
    assert_eq!(last.as_ref().unwrap_err().kind, ModelErrorKind::Interrupted);
    let before: Vec<_> = before
        .iter()
        .map(|it| it.as_ref().unwrap().clone())
        .collect();
    let response = response(&before);
    assert_eq!(response.finish, FinishReason::Interrupted);
    assert_eq!(response.message.text(), "Look: ");
    let inputs: Vec<_> = response.message.tool_uses().map(|it| &it.input).collect();
    assert!(
        matches!(inputs[..], [ToolInput::Malformed { .. }]),
        "{inputs:?}"
    );
}

#[test]
fn a_stream_without_offered_tools_is_returned_unchanged() {
    let events = answer(&["<tool_", "call>"], FinishReason::Stop);
    let none = CallRecoverySettings::for_request(&request(), TextCallFormats::NONE);
    let no_tools = CallRecoverySettings::for_request(&ChatRequest::default(), TextCallFormats::ALL);
    for recovery in [none, no_tools] {
        let stream = stream_of(events.iter().cloned().map(Ok).collect());
        let out: Vec<_> = recover_tool_calls(stream, recovery)
            .collect()
            .now_or_never()
            .unwrap();
        let out: Vec<_> = out.into_iter().map(Result::unwrap).collect();
        assert_eq!(out, events, "not even the deltas change");
    }
}

#[test]
fn the_outcome_of_the_choice_is_the_first_event() {
    let outcome = ToolChoiceOutcome::Emulated { how: "so".into() };
    let recovery = all().with_tool_choice_outcome(outcome.clone(), Vec::new());
    let with_start = vec![
        ModelEvent::Started {
            response_id: Some("r".into()),
            model: Some("m".into()),
            tool_choice: ToolChoiceOutcome::Native,
        },
        finished(FinishReason::Stop),
    ];
    let response_with = response(&transform(&recovery, with_start));
    assert_eq!(response_with.tool_choice, outcome);
    assert_eq!(response_with.response_id.as_deref(), Some("r"));
    let without = answer(&["x"], FinishReason::Stop);
    assert_eq!(
        response(&transform(&recovery, without)).tool_choice,
        outcome
    );
}

#[test]
fn forms_have_names_and_sets_contain_them() {
    for form in TextCallFormat::ALL {
        assert_eq!(TextCallFormat::from_name(form.as_str()), Some(form));
        let others: TextCallFormats = TextCallFormat::ALL
            .into_iter()
            .filter(|it| *it != form)
            .collect();
        assert!(!others.contains(form));
        assert_eq!(others.with_form(form), TextCallFormats::ALL);
        assert_eq!(others.iter().count(), TextCallFormat::ALL.len() - 1);
    }
    assert_eq!(TextCallFormat::from_name("anything"), None);
    assert!(!TextCallFormats::LOCAL_SERVERS.contains(TextCallFormat::Pythonic));
}

/// Returns the input of a call as JSON, or the reason why the input is malformed.
pub(super) fn input(tool_use: &ToolUse) -> Value {
    match &tool_use.input {
        ToolInput::Object(object) => object.as_value().clone(),
        ToolInput::Malformed { .. } => json!("malformed"),
    }
}

#[test]
fn events_of_an_answer_with_two_calls() {
    let pieces = [
        "I look",
        " it up.\n\n<tool",
        "_call>\n{\"name\": \"get_weather\", \"arg",
        "uments\": {\"city\": \"Paris\", \"days\": 1e2}}\n</tool_call>\n",
        "<tool_call>\n{\"name\": \"get_time\"}\n</tool_call>\nThen I say",
        " more. <tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": ",
    ];
    let events = transform(&all(), answer(&pieces, FinishReason::Length));
    insta::assert_json_snapshot!(events);
}
