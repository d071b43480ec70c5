//! Invariants of the recovery of tool calls from text.

use serde_json::json;
use switchboard_domain::{
    ChatRequest, ChatResponse, FinishReason, Message, ModelEvent, PartStart, ResponseAccumulator,
    ToolDefinition,
};
use switchboard_providers_common::text_tool_calls::{
    CallRecoverySettings, TextCallConverter, TextCallFormat, TextCallFormats,
};

use crate::input::places;

/// Names of offered tools, including one that every wire replaces by an alias.
const NAMES: [&str; 3] = ["get_weather", "get_time", "crm/find.one"];

/// Ways to end the stream of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The part ends, then the answer.
    Closed,
    /// The answer ends while the part is open.
    Open,
    /// The stream ends after the text.
    Broken,
}

/// Parses an input as text of a model, in one piece and cut at the positions of the input. The
/// first bytes select the forms (a bit for each) and the end of the answer.
///
/// Bytes that are not UTF-8 become replacement characters, because the parser receives strings.
///
/// # Panics
///
/// If an invariant is violated:
/// - nothing panics, and the events follow the grammar;
/// - text that names no offered tool is returned unchanged;
/// - a cut changes only the deltas of the text;
/// - call ids are unique, and each call names an offered tool;
/// - recovered calls do not depend on the end of the answer.
pub fn check(input: &[u8]) {
    let (&[forms, end], input) = input.split_first_chunk().unwrap_or((&[255, 0], input));
    let wanted = |bit: usize| (forms >> bit) & 1 == 1;
    let all = TextCallFormat::ALL.into_iter().enumerate();
    let forms: TextCallFormats = all
        .filter(|(bit, _)| wanted(*bit))
        .map(|(_, form)| form)
        .collect();
    let end = [End::Closed, End::Open, End::Broken][usize::from(end % 3)];
    let (places, bytes) = places(input);
    let text = String::from_utf8_lossy(bytes);
    let recovery = CallRecoverySettings::for_request(&request(), forms);

    let whole = transform(&recovery, answer([&*text], end));
    let response = response(&whole);
    let joined_whole = joined(whole);

    let pieces = pieces(&text, &places);
    let cut = transform(&recovery, answer(pieces.iter().copied(), end));
    assert_eq!(joined(cut), joined_whole, "cut into {pieces:?}");
    let chars = text
        .char_indices()
        .map(|(at, c)| &text[at..at + c.len_utf8()]);
    let cut = transform(&recovery, answer(chars, end));
    assert_eq!(joined(cut), joined_whole, "each character alone");

    let ids: Vec<_> = response.message.tool_uses().map(|it| &it.id).collect();
    for (at, id) in ids.iter().enumerate() {
        assert!(!ids[..at].contains(id), "two calls are called {id}");
    }
    for call in response.message.tool_uses() {
        assert!(
            NAMES.contains(&&*call.name),
            "{call:?} calls no offered tool"
        );
    }
    if !may_name_a_tool(&text) {
        assert_eq!(ids.len(), 0, "a call in text that names no tool");
        assert_eq!(response.message.text(), text, "text that names no tool");
    }
    let closed = transform(&recovery, answer([&*text], End::Closed));
    assert_eq!(response.message, self::response(&closed).message, "{end:?}");
}

/// Returns whether the text may name a tool, also in escapes of JSON or Python.
fn may_name_a_tool(text: &str) -> bool {
    let escaped = text.split('\\').skip(1);
    let mut escaped = escaped.filter_map(|after| after.chars().next());
    NAMES.iter().any(|name| text.contains(name))
        || escaped
            .any(|c| c.is_ascii_alphanumeric() && !"nrtbfav".contains(c) || c == '\n' || c == '/')
}

fn request() -> ChatRequest {
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
    let [first, others @ ..] = NAMES;
    let mut tools = vec![ToolDefinition::new(
        first,
        "The weather of a city.",
        weather,
    )];
    tools.extend(
        others.map(|name| ToolDefinition::new(name, "Another.", json!({"type": "object"}))),
    );
    ChatRequest::new([Message::user("What is the weather in Paris?")]).with_tools(tools)
}

/// Splits the text at each position. A position within a character moves to its start.
fn pieces<'a>(text: &'a str, places: &[usize]) -> Vec<&'a str> {
    let ends = places.iter().map(|&place| text.floor_char_boundary(place));
    let mut from = 0;
    ends.chain([text.len()])
        .map(|end| {
            let piece = &text[from..end];
            from = end;
            piece
        })
        .collect()
}

fn answer<'a>(pieces: impl IntoIterator<Item = &'a str>, end: End) -> Vec<ModelEvent> {
    let part = PartStart::Text;
    let mut events = vec![ModelEvent::PartStarted { index: 0, part }];
    events.extend(pieces.into_iter().map(|piece| ModelEvent::TextDelta {
        index: 0,
        text: piece.to_owned(),
    }));
    if end == End::Closed {
        events.push(ModelEvent::PartFinished { index: 0 });
    }
    if end != End::Broken {
        let reason = FinishReason::Stop;
        events.push(ModelEvent::Finished { reason, raw: None });
    }
    events
}

fn transform(recovery: &CallRecoverySettings, events: Vec<ModelEvent>) -> Vec<ModelEvent> {
    let mut transformer = TextCallConverter::new(recovery.clone());
    let mut all = Vec::new();
    for event in events {
        transformer.push(event, &mut all);
    }
    transformer.end_answer(&mut all);
    all
}

fn response(events: &[ModelEvent]) -> ChatResponse {
    let mut answer = ResponseAccumulator::default();
    for event in events {
        if let Err(fault) = answer.push(event) {
            panic!("{fault} in {events:?}");
        }
    }
    answer.into_interrupted_response()
}

/// Joins consecutive deltas of a text.
fn joined(events: Vec<ModelEvent>) -> Vec<ModelEvent> {
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
