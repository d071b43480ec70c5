use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
};

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use serde_json::Value;
use switchboard_domain::{FinishReason, ModelErrorKind, PartStart};

use super::*;

/// Decoder of frames that consist of one word. `+` starts a text part, `finish` ends the answer,
/// `finish!` ends it and fails, `bad` fails, `usage` reports token usage, and `left` contains an
/// event of a part that was not started. Every other word is text.
#[derive(Default)]
struct Words {
    /// Word that is decoded at the end of the stream. The word `object` returns an error.
    at_end: Option<&'static str>,
    /// Text that is emitted when the answer is interrupted.
    buffered: Option<&'static str>,
    ended: Arc<AtomicBool>,
}

impl WireDecoder for Words {
    fn decode_frame(
        &mut self,
        name: &str,
        data: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let finished = ModelEvent::Finished {
            reason: FinishReason::Stop,
            raw: None,
        };
        match data {
            "+" => events.push(started(0)),
            "finish" => events.push(finished),
            "finish!" => {
                events.push(finished);
                return Err(wrong("too late"));
            }
            "bad" => {
                events.push(text("made before"));
                return Err(wrong("bad frame"));
            }
            "usage" => events.push(ModelEvent::Usage {
                usage: Box::default(),
            }),
            "left" => events.extend([text("good"), delta(7, "wrong"), text("after")]),
            word => events.push(text(&format!("{name}{word}"))),
        }
        Ok(())
    }

    fn finish_decoding(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        self.ended.store(true, SeqCst);
        match self.at_end {
            Some("object") => Err(wrong("not done")),
            Some(word) => self.decode_frame("", word, events),
            None => Ok(()),
        }
    }

    fn emit_buffered_output(&mut self, events: &mut Vec<ModelEvent>) {
        events.extend(self.buffered.map(text));
    }
}

fn wrong(message: &str) -> ModelError {
    ModelError::new("acme", ModelErrorKind::Protocol, message)
}

fn started(index: u32) -> ModelEvent {
    ModelEvent::PartStarted {
        index,
        part: PartStart::Text,
    }
}

fn delta(index: u32, text: &str) -> ModelEvent {
    ModelEvent::TextDelta {
        index,
        text: text.to_owned(),
    }
}

fn text(text: &str) -> ModelEvent {
    delta(0, text)
}

/// Returns one text for each event of a stream: the text of a delta, or the name of the event. An
/// error is the last text.
async fn words(mut stream: ModelStream) -> Vec<String> {
    let mut words = Vec::new();
    while let Some(item) = stream.next().await {
        words.push(match item {
            Ok(ModelEvent::TextDelta { text, .. }) => text,
            Ok(ModelEvent::PartStarted { .. }) => "+".to_owned(),
            Ok(ModelEvent::Finished { .. }) => "finished".to_owned(),
            Ok(ModelEvent::Usage { .. }) => "usage".to_owned(),
            Ok(other) => format!("{other:?}"),
            Err(error) => format!("{}: {}", error.kind.as_str(), error.message()),
        });
    }
    assert!(stream.next().await.is_none(), "something follows the end");
    words
}

fn pieces(frames: &[&str]) -> Vec<Result<Bytes, ModelError>> {
    let events = frames.iter().map(|data| format!("data: {data}\n\n"));
    events.map(|event| Ok(Bytes::from(event))).collect()
}

fn cut() -> Result<Bytes, ModelError> {
    Err(ModelError::new("acme", ModelErrorKind::Interrupted, "cut"))
}

async fn decoded(body: Vec<Result<Bytes, ModelError>>, decoder: Words) -> Vec<String> {
    words(decode_sse("acme", Box::pin(stream::iter(body)), decoder)).await
}

#[tokio::test]
async fn frames_become_events_in_their_order() {
    let all = decoded(
        pieces(&["+", "a", "b", "finish", "usage"]),
        Words::default(),
    )
    .await;
    assert_eq!(all, ["+", "a", "b", "finished", "usage"]);
}

#[test]
fn events_add_up_to_an_answer_or_an_error() {
    let finished = ModelEvent::Finished {
        reason: FinishReason::Stop,
        raw: None,
    };
    let events = [started(0), text("a"), text("b"), finished];
    assert_eq!(
        assemble_response("acme", &events).unwrap().message.text(),
        "ab"
    );
    let kind = |events: &[ModelEvent]| assemble_response("acme", events).unwrap_err().kind;
    assert_eq!(kind(&events[..3]), ModelErrorKind::Interrupted);
    assert_eq!(kind(&events[1..]), ModelErrorKind::Protocol);
    assert_eq!(kind(&[]), ModelErrorKind::Interrupted);
}

#[tokio::test]
async fn the_name_of_a_frame_reaches_the_decoder_and_lines_have_none() {
    let body = ["data: +\n\nevent: n-\ndata: a\n\ndata: finish\n\n"];
    let body = stream::iter(body.map(|piece| Ok(Bytes::from(piece))));
    let all = words(decode_sse("acme", Box::pin(body), Words::default())).await;
    assert_eq!(all, ["+", "n-a", "finished"]);

    let body = stream::iter(["+\na\n\nfin", "ish\n"].map(|piece| Ok(Bytes::from(piece))));
    let all = words(decode_ndjson("acme", Box::pin(body), Words::default())).await;
    assert_eq!(all, ["+", "a", "finished"]);
}

#[tokio::test]
async fn buffered_text_is_emitted_at_the_end() {
    let decoder = Words {
        at_end: Some("finish"),
        ..Words::default()
    };
    let all = decoded(pieces(&["+", "a"]), decoder).await;
    assert_eq!(all, ["+", "a", "finished"]);
}

#[tokio::test]
async fn buffered_text_is_emitted_before_every_error() {
    let mut broken = pieces(&["+", "a"]);
    broken.push(cut());
    for (frames, rest) in [
        (broken, "interrupted: cut"),
        (pieces(&["+", "a", "bad"]), "protocol: bad frame"),
        (pieces(&["+", "a"]), "protocol: not done"),
    ] {
        let decoder = Words {
            at_end: Some("object"),
            buffered: Some(" b"),
            ..Words::default()
        };
        let all = decoded(frames, decoder).await;
        let text = all[1..all.len() - 1].concat();
        assert!(text.starts_with('a') && text.ends_with(" b"), "{all:?}");
        assert_eq!(all.last().unwrap(), rest);
    }
}

#[tokio::test]
async fn an_early_end_is_always_an_error() {
    let objecting = Words {
        at_end: Some("object"),
        ..Words::default()
    };
    let all = decoded(pieces(&["+", "a"]), objecting).await;
    assert_eq!(all, ["+", "a", "protocol: not done"]);

    let careless = Words::default();
    let all = decoded(pieces(&["+", "a"]), careless).await;
    let expected = ["+", "a", "interrupted: the stream ended without `finished`"];
    assert_eq!(all, expected);

    let nothing = decoded(vec![], Words::default()).await;
    let expected = ["interrupted: the stream ended without `finished`"];
    assert_eq!(nothing, expected);
}

#[tokio::test]
async fn a_broken_body_fails_with_its_error() {
    let decoder = Words {
        at_end: Some("finish"),
        ..Words::default()
    };
    let ended = Arc::clone(&decoder.ended);
    let mut body = pieces(&["+", "a"]);
    body.push(cut());
    body.extend(pieces(&["b"]));
    assert_eq!(decoded(body, decoder).await, ["+", "a", "interrupted: cut"]);
    assert!(!ended.load(SeqCst), "a decoder would take it for the end");
}

#[tokio::test]
async fn an_error_of_the_decoder_follows_its_events() {
    let decoder = Words::default();
    let ended = Arc::clone(&decoder.ended);
    let all = decoded(pieces(&["+", "a", "bad", "b", "finish"]), decoder).await;
    assert_eq!(all, ["+", "a", "made before", "protocol: bad frame"]);
    assert!(!ended.load(SeqCst), "nothing is fed after an error");
}

#[tokio::test]
async fn errors_after_the_finish_are_ignored() {
    let mut breaks = pieces(&["+", "finish"]);
    breaks.push(cut());
    assert_eq!(decoded(breaks, Words::default()).await, ["+", "finished"]);

    let garbage = stream::iter([
        Ok(Bytes::from("data: +\n\ndata: finish\n\n")),
        Ok(Bytes::from_static(b"data: \xff\n\n")),
    ]);
    let all = words(decode_sse("acme", Box::pin(garbage), Words::default())).await;
    assert_eq!(all, ["+", "finished"]);

    let together = decoded(pieces(&["+", "finish!", "usage"]), Words::default()).await;
    assert_eq!(together, ["+", "finished"]);

    let objecting = Words {
        at_end: Some("object"),
        ..Words::default()
    };
    let expected = ["+", "finished"];
    assert_eq!(decoded(pieces(&["+", "finish"]), objecting).await, expected);
}

#[tokio::test]
async fn an_invalid_event_of_the_adapter_ends_the_stream() {
    let all = decoded(pieces(&["+", "left", "finish"]), Words::default()).await;
    let fault = "protocol: `text_delta` for part 7, which is not open";
    assert_eq!(all, ["+", "good", fault]);

    let all = decoded(pieces(&["+", "finish", "more"]), Words::default()).await;
    let expected = ["+", "finished", "protocol: `text_delta` after `finished`"];
    assert_eq!(all, expected);

    let at_the_end = Words {
        at_end: Some("left"),
        ..Words::default()
    };
    assert_eq!(
        decoded(pieces(&["+"]), at_the_end).await,
        ["+", "good", fault]
    );
}

struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Returns a body that stays open after `frames`, and a flag that is set when the body is dropped.
fn open_body(frames: &[&str]) -> (ByteStream, Arc<AtomicBool>) {
    let dropped = Arc::new(AtomicBool::new(false));
    let guard = Dropped(Arc::clone(&dropped));
    let body = stream::iter(pieces(frames))
        .chain(stream::pending())
        .inspect(move |_| {
            let _ = &guard;
        });
    (Box::pin(body), dropped)
}

#[tokio::test]
async fn a_finished_answer_does_not_wait_for_the_connection_to_close() {
    let (body, dropped) = open_body(&["+", "a", "finish", "usage"]);
    let decoder = Words::default();
    let ended = Arc::clone(&decoder.ended);
    let stream = decode_sse("acme", body, decoder);
    assert_eq!(words(stream).await, ["+", "a", "finished", "usage"]);
    assert!(dropped.load(SeqCst) && ended.load(SeqCst));
}

#[tokio::test]
async fn an_unfinished_answer_waits() {
    let (body, dropped) = open_body(&["+", "a"]);
    let mut stream = decode_sse("acme", body, Words::default());
    assert!(stream.next().await.is_some() && stream.next().await.is_some());
    assert!(stream.next().now_or_never().is_none(), "it gave up waiting");
    assert!(!dropped.load(SeqCst));
    drop(stream);
    assert!(
        dropped.load(SeqCst),
        "dropping the stream aborts the request"
    );
}

#[tokio::test]
async fn the_body_is_dropped_with_the_error_and_not_with_the_stream() {
    let (body, dropped) = open_body(&["+", "bad"]);
    let mut stream = decode_sse("acme", body, Words::default());
    while let Some(Ok(_)) = stream.next().await {}
    assert!(dropped.load(SeqCst));
    drop(stream);
}

/// Decoder of JSON objects with text in `t` or reasoning in `r`. Counts the decoded frames.
#[derive(Clone, Default)]
struct Objects {
    allows: bool,
    decoded: Arc<AtomicUsize>,
}

impl WireDecoder for Objects {
    fn decode_frame(
        &mut self,
        name: &str,
        data: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        if self.decoded.fetch_add(1, SeqCst) == 0 {
            events.extend([
                started(0),
                ModelEvent::PartStarted {
                    index: 1,
                    part: PartStart::Reasoning,
                },
            ]);
        }
        let body: Value = serde_json::from_str(data).map_err(|fault| wrong(&fault.to_string()))?;
        let field = |name: &str| body[name].as_str().filter(|it| !it.is_empty());
        events.extend(field("t").map(|it| text(&format!("{name}{it}"))));
        events.extend(field("r").map(|it| ModelEvent::ReasoningDelta {
            index: 1,
            text: it.to_owned(),
        }));
        Ok(())
    }

    fn is_decoder_state_unchanged(&self) -> bool {
        self.allows
    }

    fn finish_decoding(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        events.push(ModelEvent::Finished {
            reason: FinishReason::Stop,
            raw: None,
        });
        Ok(())
    }
}

/// Returns the events of frames that arrive separately, and the number of decoded frames.
async fn read_objects(frames: &[&str], allows: bool) -> (Vec<String>, usize) {
    let decoder = Objects {
        allows,
        ..Objects::default()
    };
    let events = frames
        .iter()
        .map(|frame| Ok(Bytes::from(format!("{frame}\n\n"))));
    let body = Box::pin(stream::iter(events.collect::<Vec<_>>()));
    let stream = decode_sse("acme", body, decoder.clone());
    let events = stream.map(|event| format!("{event:?}")).collect().await;
    (events, decoder.decoded.load(SeqCst))
}

#[tokio::test]
async fn repeated_frames_are_read_like_decoded_ones() {
    for (frames, decoded) in [
        (
            &[
                r#"data: {"id": "x", "t": "a", "u": null}"#,
                r#"data: {"id": "x", "t": "b", "u": null}"#,
                r#"data: {"id": "x", "t": "c\n\"\u00e4\ud83d\ude00", "u": null}"#,
                r#"data: {"id": "x", "t": "x", "u": null}"#,
                r#"data: {"id": "x", "t": "d", "u": null}"#,
            ][..],
            2,
        ),
        // Frames with another field, another value or another SSE name than the frame before, and a
        // frame in which two fields have the same text.
        (
            &[
                r#"data: {"id": "x", "t": "a"}"#,
                r#"data: {"id": "y", "t": "b"}"#,
                r#"data: {"id": "y", "r": "b"}"#,
                "event: n\ndata: {\"id\": \"y\", \"r\": \"b\"}",
                r#"data: {"id": "b", "r": "b"}"#,
                r#"data: {"id": "c", "r": "c"}"#,
                r#"data: {"id": "c", "r": "d"}"#,
                r#"data: {"id": "c", "r": "e"}"#,
            ],
            7,
        ),
        // Frames whose text is empty, missing, not a string, or followed by another field.
        (
            &[
                r#"data: {"t": "a"}"#,
                r#"data: {"t": ""}"#,
                r#"data: {"t": "b"}"#,
                r#"data: {"t": null}"#,
                r#"data: {"t": "c"}"#,
                r#"data: {"t": "d", "r": "e"}"#,
                r#"data: {"t": "f", "r": "e"}"#,
                r#"data: {"t": "g"}"#,
                r#"data: {"t": "h"}"#,
            ],
            8,
        ),
        // Frames whose text also occurs elsewhere in the frame, for example as the `:` of JSON.
        (
            &[
                r#"data: {"t":"x"}"#,
                r#"data: {"t":":"}"#,
                r#"data: {"t":" :"}"#,
                r#"data: {"t":"y"}"#,
            ],
            3,
        ),
        (
            &[
                r#"data: {"id": "x", "t": "x"}"#,
                r#"data: {"id": "a", "t": "\u0061"}"#,
                r#"data: {"id": "b", "t": "\u0061"}"#,
            ],
            3,
        ),
        (&[r#"data: {"t": "a"}"#, r#"data: {"t": "b\x"}"#], 2),
        (&[r#"data: {"t": "a"}"#, r#"data: {"t": "b}"#], 2),
    ] {
        let (events, count) = read_objects(frames, true).await;
        let (expected, every) = read_objects(frames, false).await;
        assert_eq!(events, expected);
        assert_eq!((count, every), (decoded, frames.len()), "{frames:?}");
    }
}

#[tokio::test]
async fn frames_that_never_repeat_are_no_longer_compared() {
    let frames: Vec<_> = (0..40)
        .map(|it| format!(r#"data: {{"n": {it}, "t": "a"}}"#))
        .collect();
    let mut frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    frames.extend([frames[39]; 3]);
    assert_eq!(read_objects(&frames, true).await.1, 43);
}

#[tokio::test]
async fn text_that_arrives_together_is_joined() {
    let frames = [
        r#"{"t": "a"}"#,
        r#"{"t": "b"}"#,
        r#"{"r": "c"}"#,
        r#"{"r": "d"}"#,
        r#"{"t": "e"}"#,
    ];
    let body = frames.map(|frame| format!("data: {frame}\n\n")).concat();
    let (first, second) = body.split_at(body.len() - 30);
    let pieces = [first, second].map(|piece| Ok(Bytes::copy_from_slice(piece.as_bytes())));
    let stream = decode_sse("acme", Box::pin(stream::iter(pieces)), Objects::default());
    let texts = stream.filter_map(async |event| match event.unwrap() {
        ModelEvent::TextDelta { text, .. } | ModelEvent::ReasoningDelta { text, .. } => Some(text),
        _ => None,
    });
    let texts: Vec<_> = texts.collect().await;
    assert_eq!(texts, ["ab", "c", "d", "e"]);
}
