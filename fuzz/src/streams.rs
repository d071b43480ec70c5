//! The laws of a stream decoder.

use std::error::Error as _;

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use switchboard_domain::{
    ChatRequest, GrammarViolation, Message, ModelError, ModelEvent, ModelId, ModelStream,
    ResponseAccumulator, ToolDefinition,
};
use switchboard_testkit::replay::{Arrival, Body, Cutting, Delivery, Replayed, play};

use crate::input::places;

/// How the answers of a wire are read.
pub struct Wire {
    /// A streamed answer.
    pub stream: fn(Body) -> ModelStream,
    /// An answer that came whole.
    pub whole: fn(&str) -> Result<Vec<ModelEvent>, ModelError>,
}

/// Returns the model id for a decoder without special settings.
pub fn model(provider: &str) -> ModelId {
    ModelId::new(provider, "any-model")
}

/// Returns a request whose answers need conversion: tool calls are buffered until they are
/// complete, optional fields are removed, and aliases of tools are replaced.
pub fn request() -> ChatRequest {
    let weather = serde_json::json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "unit": {"enum": ["celsius", "fahrenheit"]}},
        "required": ["city"],
        "additionalProperties": false,
    });
    let tools = [
        ToolDefinition::new("get_weather", "", weather.clone()),
        ToolDefinition::new("list/cities", "", weather),
    ];
    ChatRequest::new([Message::user("Rain?")]).with_tools(tools)
}

/// Decodes an input as a stream in four ways, and as a whole body.
///
/// # Panics
///
/// If an invariant is violated:
/// - nothing panics, and no stream blocks forever or continues after its error;
/// - the decoder's events follow the grammar, also if the stream ends early. This includes events
///   that `decode_*` withholds;
/// - events and errors are equal for one piece, single bytes, two pieces, and the cuts of the
///   input;
/// - a whole body gives either an error or a whole answer.
pub fn check(wire: &Wire, input: &[u8]) {
    let (places, bytes) = places(input);
    let expected = run(wire, bytes, Cutting::Whole, Arrival::AtOnce, &[]);
    let two = Cutting::InTwo(places.first().copied().unwrap_or(bytes.len() / 2));
    for (cutting, arrival, places) in [
        (Cutting::Whole, Arrival::AtOnce, places.as_slice()),
        (two, Arrival::Later, &[]),
        (Cutting::Bytes, Arrival::AtOnce, &[]),
    ] {
        let found = run(wire, bytes, cutting, arrival, places);
        assert_eq!(
            (&found.events, &found.failure),
            (&expected.events, &expected.failure),
            "{cutting:?}, {arrival:?}, {places:?} against one piece"
        );
    }
    if let Ok(body) = std::str::from_utf8(bytes) {
        check_whole(wire, body);
    }
}

fn run(
    wire: &Wire,
    bytes: &[u8],
    cutting: Cutting,
    arrival: Arrival,
    places: &[usize],
) -> Replayed {
    let delivery = Delivery { cutting, arrival };
    let decode = |body: Body| -> ModelStream {
        let events = (wire.stream)(cut(body, places));
        Box::pin(events.inspect_err(faultless))
    };
    play(bytes, delivery, decode).unwrap_or_else(|broken| panic!("{broken}"))
}

/// Checks that the decoder did not violate the grammar. A missing `Finished` is an error of the
/// wire.
fn faultless(error: &ModelError) {
    let fault = error
        .source()
        .and_then(|source| source.downcast_ref::<GrammarViolation>());
    assert!(
        matches!(fault, None | Some(GrammarViolation::NoFinish)),
        "the decoder made an event that the grammar forbids: {error}"
    );
}

/// Cuts the only piece of a body at these places, which are sorted.
fn cut(body: Body, places: &[usize]) -> Body {
    if places.is_empty() {
        return body;
    }
    let places = places.to_vec();
    Box::pin(body.flat_map(move |piece| {
        let pieces = match piece {
            Ok(bytes) => pieces(&bytes, &places).into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        };
        stream::iter(pieces)
    }))
}

fn pieces(bytes: &Bytes, places: &[usize]) -> Vec<Bytes> {
    let ends = places.iter().copied().chain([bytes.len()]);
    let mut from = 0;
    ends.map(|end| {
        let piece = bytes.slice(from..end.max(from));
        from = end.max(from);
        piece
    })
    .collect()
}

fn check_whole(wire: &Wire, body: &str) {
    let Ok(events) = (wire.whole)(body) else {
        return;
    };
    let mut answer = ResponseAccumulator::default();
    for event in &events {
        if let Err(fault) = answer.push(event) {
            panic!("of a whole body: {fault} in {events:?}");
        }
    }
    if let Err(fault) = answer.finish() {
        panic!("of a whole body: {fault} in {events:?}");
    }
}
