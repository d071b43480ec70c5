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

/// Last event of a test decoder.
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
fn an_error_is_an_outcome_with_what_came_before_it() {
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
fn a_decoder_that_takes_pieces_for_frames_is_caught() {
    let error = replay(b"ab", |body| {
        let texts = body.map(|piece| piece.map(|bytes| text(&bytes)));
        let begin = stream::iter([Ok(start())]);
        Box::pin(begin.chain(texts).chain(stream::iter([Ok(finish())])))
    })
    .unwrap_err();
    let ReplayError::Differs {
        delivery, number, ..
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!((delivery.cutting, *number), (Cutting::Bytes, 1));
    assert!(error.to_string().starts_with("byte by byte: event 1 is"));
}

#[test]
fn a_decoder_that_cannot_hold_half_a_character_is_caught() {
    let error = replay("ü".as_bytes(), |body| {
        // Deliberately wrong: decodes each piece as text separately.
        let whole = body.fold(String::new(), |all, piece| async move {
            all + &String::from_utf8_lossy(&piece.unwrap_or_default())
        });
        let said = stream::once(whole)
            .flat_map(|all| stream::iter([Ok(start()), Ok(text(all.as_bytes())), Ok(finish())]));
        Box::pin(said)
    })
    .unwrap_err();
    assert!(matches!(error, ReplayError::Differs { .. }), "{error}");
}

#[test]
fn a_failure_that_depends_on_the_cut_is_caught() {
    let error = replay(b"abc", |body| {
        let pieces = body.fold(0, |count, _| async move { count + 1 });
        let said = stream::once(pieces)
            .flat_map(|count| stream::iter([Err(fault(&format!("{count} pieces")))]));
        Box::pin(said)
    })
    .unwrap_err();
    let ReplayError::Differs {
        found, expected, ..
    } = error
    else {
        panic!("{error}");
    };
    assert!(found.contains("3 pieces"), "{found}");
    assert!(expected.contains("1 pieces"), "{expected}");
}

#[test]
fn the_grammar_is_checked_to_the_end() {
    let no_finish = replay(b"x", |body| {
        after_all(body, |bytes| vec![Ok(start()), Ok(text(&bytes))])
    });
    let not_open = replay(b"x", |body| {
        after_all(body, |bytes| vec![Ok(text(&bytes)), Ok(finish())])
    });
    for (outcome, number, violation) in [
        (no_finish, 2, GrammarViolation::NoFinish),
        (
            not_open,
            0,
            GrammarViolation::NotOpen {
                index: 0,
                event: "text_delta",
            },
        ),
    ] {
        let delivery = Delivery {
            cutting: Cutting::Whole,
            arrival: Arrival::AtOnce,
        };
        assert_eq!(
            outcome.unwrap_err(),
            ReplayError::Grammar {
                delivery,
                number,
                source: violation
            }
        );
    }
}

#[test]
fn nothing_may_follow_an_error() {
    let error = replay(b"x", |body| {
        after_all(body, |_| vec![Err(fault("first")), Ok(finish())])
    })
    .unwrap_err();
    assert!(matches!(error, ReplayError::AfterFailure { .. }), "{error}");
}

#[test]
fn a_stream_that_forgets_to_be_woken_is_caught() {
    let error = replay(b"x", |_| {
        Box::pin(stream::iter([Ok(start())]).chain(stream::pending()))
    })
    .unwrap_err();
    assert!(
        matches!(error, ReplayError::Stalled { events: 1, .. }),
        "{error}"
    );
}

/// A decoder of texts that end with a full stop. A strict decoder requires it.
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
fn a_beginning_that_passes_for_an_answer_is_caught() {
    let error = break_off(b"One.", sentences(false)).unwrap_err();
    let ReplayError::BrokenOff {
        delivery, expected, ..
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!(delivery.cutting, Cutting::EndAfter(0));
    assert!(expected.contains("One."), "{expected}");
}

#[test]
fn a_sentence_that_is_complete_too_early_is_another_answer() {
    let error = break_off(b"One. Two.", sentences(true)).unwrap_err();
    let ReplayError::BrokenOff { delivery, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(delivery.cutting, Cutting::EndAfter(4));
    assert!(
        error
            .to_string()
            .starts_with("ended after 4 bytes: it came to")
    );
}

#[test]
fn a_beginning_that_fails_for_another_reason_is_caught() {
    let error = break_off(b"ab", |body| {
        after_all(body, |bytes| match bytes.len() {
            2 => vec![Ok(start()), Ok(finish())],
            _ => vec![Err(ModelError::new("p", ModelErrorKind::Protocol, ""))],
        })
    })
    .unwrap_err();
    assert!(matches!(error, ReplayError::BrokenOff { .. }), "{error}");
}
