use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::SeqCst},
};

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use switchboard_domain::{FinishReason, ModelErrorKind, PartStart};

use super::*;

/// Reads a wire of single words: `+` opens a text part, `finish` says that all is done, `finish!`
/// too but then fails, `bad` cannot be decoded, `usage` is what it says, `left` speaks of a part
/// that is not there, and everything else is text.
#[derive(Default)]
struct Words {
    /// What to do at the end.
    at_end: Option<&'static str>,
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

/// What a stream gave, in words: the text of deltas, else the event's name, and the error last.
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
async fn an_early_end_is_always_an_error() {
    let objecting = Words {
        at_end: Some("object"),
        ..Words::default()
    };
    let all = decoded(pieces(&["+", "a"]), objecting).await;
    assert_eq!(all, ["+", "a", "protocol: not done"]);

    let careless = Words::default();
    let all = decoded(pieces(&["+", "a"]), careless).await;
    assert_eq!(
        all,
        ["+", "a", "interrupted: the stream ended without `finished`"]
    );

    let nothing = decoded(vec![], Words::default()).await;
    assert_eq!(
        nothing,
        ["interrupted: the stream ended without `finished`"]
    );
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
    assert_eq!(
        decoded(pieces(&["+", "finish"]), objecting).await,
        ["+", "finished"]
    );
}

#[tokio::test]
async fn an_invalid_event_of_the_adapter_ends_the_stream() {
    let all = decoded(pieces(&["+", "left", "finish"]), Words::default()).await;
    let fault = "protocol: `text_delta` for part 7, which is not open";
    assert_eq!(all, ["+", "good", fault]);

    let all = decoded(pieces(&["+", "finish", "more"]), Words::default()).await;
    assert_eq!(
        all,
        ["+", "finished", "protocol: `text_delta` after `finished`"]
    );

    let at_the_end = Words {
        at_end: Some("left"),
        ..Words::default()
    };
    assert_eq!(
        decoded(pieces(&["+"]), at_the_end).await,
        ["+", "good", fault]
    );
}

/// Sets a flag when it is dropped.
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// A body that stays open after `frames`, and whether it has been dropped.
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
