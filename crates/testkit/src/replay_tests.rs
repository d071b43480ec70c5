use futures_util::{StreamExt as _, stream};
use switchboard_domain::{FinishReason, ModelErrorKind, PartStart};

use super::*;

fn start() -> ModelEvent {
    ModelEvent::PartStarted {
        index: 0,
        part: PartStart::Text,
    }
}

fn text(bytes: &[u8]) -> ModelEvent {
    ModelEvent::TextDelta {
        index: 0,
        text: String::from_utf8_lossy(bytes).into_owned(),
    }
}

fn finish() -> ModelEvent {
    ModelEvent::Finished {
        reason: FinishReason::Stop,
        raw: None,
    }
}

fn fault(message: &str) -> ModelError {
    ModelError::new("p", ModelErrorKind::Interrupted, message)
}

/// Creates a decoder that reads the whole body and then returns the events of `say`.
fn after_all(
    body: Body,
    say: impl Fn(Vec<u8>) -> Vec<Result<ModelEvent, ModelError>> + Send + 'static,
) -> ModelStream {
    let bytes = body.fold(Vec::new(), |mut all, piece| async move {
        all.extend_from_slice(&piece.unwrap_or_default());
        all
    });
    let said = stream::once(bytes).flat_map(move |bytes| stream::iter(say(bytes)));
    Box::pin(said)
}

#[test]
fn a_decoder_that_does_not_care_about_pieces_passes() {
    let replayed = replay("Grüße".as_bytes(), |body| {
        after_all(body, |bytes| {
            vec![Ok(start()), Ok(text(&bytes)), Ok(finish())]
        })
    })
    .unwrap();
    assert_eq!(
        replayed.events,
        [start(), text("Grüße".as_bytes()), finish()]
    );
    assert_eq!(replayed.response.message.text(), "Grüße");
    assert_eq!(replayed.failure, None);
}

#[test]
fn an_error_is_returned_with_the_events_before_it() {
    let replayed = replay(b"half", |body| {
        after_all(body, |bytes| {
            vec![Ok(start()), Ok(text(&bytes)), Err(fault("gone"))]
        })
    })
    .unwrap();
    let failure = replayed.failure.unwrap();
    assert_eq!(failure.kind, "interrupted");
    assert!(failure.message.contains("gone"), "{failure:?}");
    assert_eq!(replayed.response.finish, FinishReason::Interrupted);
    assert_eq!(replayed.response.message.text(), "half");
}

#[test]
fn decoders_that_depend_on_pieces_are_caught() {
    let frames = replay(b"ab", |body| {
        let texts = body.map(|piece| piece.map(|bytes| text(&[&bytes, &b"|"[..]].concat())));
        let begin = stream::iter([Ok(start())]);
        Box::pin(begin.chain(texts).chain(stream::iter([Ok(finish())])))
    });
    // This decoder is wrong on purpose: it decodes each piece as text separately.
    let half_characters = replay("ü".as_bytes(), |body| {
        let whole = body.fold(String::new(), |all, piece| async move {
            all + &String::from_utf8_lossy(&piece.unwrap_or_default())
        });
        let said = stream::once(whole)
            .flat_map(|all| stream::iter([Ok(start()), Ok(text(all.as_bytes())), Ok(finish())]));
        Box::pin(said)
    });
    let failures = replay(b"abc", |body| {
        let pieces = body.fold(0, |count, _| async move { count + 1 });
        let said = stream::once(pieces)
            .flat_map(|count| stream::iter([Err(fault(&format!("{count} pieces")))]));
        Box::pin(said)
    });
    for (outcome, expected) in [
        (frames, "in one piece: event 1 is"),
        (half_characters, "in one piece: event 1 is"),
        (failures, "in one piece: event 0 is"),
    ] {
        let error = outcome.unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
        assert!(error.contains("byte by byte it is"), "{error}");
    }
}

#[test]
fn streams_that_break_the_grammar_are_caught() {
    let no_finish = replay(b"x", |body| {
        after_all(body, |bytes| vec![Ok(start()), Ok(text(&bytes))])
    });
    let not_open = replay(b"x", |body| {
        after_all(body, |bytes| vec![Ok(text(&bytes)), Ok(finish())])
    });
    let after_error = replay(b"x", |body| {
        after_all(body, |_| vec![Err(fault("first")), Ok(finish())])
    });
    let without_waker = replay(b"x", |_| {
        Box::pin(stream::iter([Ok(start())]).chain(stream::pending()))
    });
    let no_part = GrammarViolation::NotOpen {
        index: 0,
        event: "text_delta",
    };
    for (outcome, problem) in [
        (
            no_finish,
            format!("event 2: {}", GrammarViolation::NoFinish),
        ),
        (not_open, format!("event 0: {no_part}")),
        (
            after_error,
            "the stream continues after its error".to_owned(),
        ),
        (without_waker, "the stream hangs after 1 events".to_owned()),
    ] {
        assert_eq!(outcome.unwrap_err().problem, problem);
    }
}

/// Creates a decoder of texts. With `strict`, a text must end with a full stop.
fn sentences(strict: bool) -> impl Fn(Body) -> ModelStream {
    move |body| {
        let pieces = body.fold((Vec::new(), None), |(mut all, failed), piece| async move {
            match piece {
                Ok(bytes) => {
                    all.extend_from_slice(&bytes);
                    (all, failed)
                }
                Err(error) => (all, Some(error)),
            }
        });
        let said = stream::once(pieces).flat_map(move |(bytes, failed)| {
            let mut said = vec![Ok(start()), Ok(text(&bytes))];
            let complete = bytes.ends_with(b".");
            said.push(match failed {
                Some(error) if !complete => Err(error),
                None if strict && !complete => Err(fault("no full stop")),
                _ => Ok(finish()),
            });
            stream::iter(said)
        });
        Box::pin(said)
    }
}

#[test]
fn a_beginning_that_fails_as_interrupted_is_fair() {
    assert_eq!(break_off(b"One.", sentences(true)), Ok(()));
}

#[test]
fn beginnings_that_pass_for_an_answer_are_caught() {
    let early = break_off(b"One.", sentences(false));
    let other_answer = break_off(b"One. Two.", sentences(true));
    let other_failure = break_off(b"ab", |body| {
        after_all(body, |bytes| match bytes.len() {
            2 => vec![Ok(start()), Ok(finish())],
            _ => vec![Err(ModelError::new("p", ModelErrorKind::Protocol, ""))],
        })
    });
    for (outcome, expected) in [
        (early, "ended after 0 bytes: the result is"),
        (other_answer, "ended after 4 bytes: the result is"),
        (other_failure, "ended after 0 bytes: the result is"),
    ] {
        let error = outcome.unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}
