use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use futures_util::stream;

use super::*;
use crate::{
    ByteStream,
    http::byte_stream::{FrameStream, tests::read_all},
};

const ROOMY: usize = 1 << 20;

fn body<P: Into<Bytes>>(pieces: impl IntoIterator<Item = P>) -> ByteStream {
    let pieces: Vec<_> = pieces.into_iter().map(|piece| Ok(piece.into())).collect();
    Box::pin(stream::iter(pieces))
}

/// Returns the name and the data of each frame, and the kind of the error at the end.
fn read(body: ByteStream, max: usize) -> (Vec<(String, String)>, Option<ModelErrorKind>) {
    let (frames, error) = read_all(FrameStream::new(body, SseReader::new("acme", max)));
    (frames, error.map(|error| error.kind))
}

fn frame(name: &str, data: &str) -> (String, String) {
    (name.to_owned(), data.to_owned())
}

/// Contains every field, every kind of line that is skipped, and multi-byte characters.
const SAMPLE: &str = "\u{feff}: a comment\n\nid: 7\nretry: 10\nevent: first\ndata: {\"a\":\ndata:  1}\n\
    \nevent: without data\n\ndata\n\nunknown: x\ndata:näh: 🦀\n\n:keep-alive\n\ndata: [DONE]\n\n";

fn sample_frames() -> Vec<(String, String)> {
    vec![
        frame("first", "{\"a\":\n 1}"),
        frame("", "näh: 🦀"),
        frame("", "[DONE]"),
    ]
}

#[test]
fn a_body_may_be_cut_at_any_byte() {
    for line_end in ["\n", "\r\n", "\r"] {
        let text = SAMPLE.replace('\n', line_end).into_bytes();
        let expected = (sample_frames(), None);
        for cut in 0..=text.len() {
            let (left, right) = text.split_at(cut);
            let pieces = body([left.to_vec(), Vec::new(), right.to_vec()]);
            assert_eq!(read(pieces, ROOMY), expected, "cut at {cut}");
        }
        let bytes = body(text.chunks(1).map(<[u8]>::to_vec));
        assert_eq!(read(bytes, ROOMY), expected, "byte by byte");
    }
    let mixed = body(["data: 1\r\ndata: 2\rdata: 3\n\r\n"]);
    assert_eq!(read(mixed, ROOMY).0, [frame("", "1\n2\n3")]);
}

#[test]
fn an_event_counts_at_the_end_unless_its_last_line_is_cut() {
    for whole in [
        "data: x\n\n",
        "data: x\n",
        "data: x\r\n",
        "data: x\r",
        "data: x\r\r",
    ] {
        assert_eq!(read(body([whole]), ROOMY).0, [frame("", "x")], "{whole:?}");
        let bytes = body(whole.as_bytes().chunks(1).map(<[u8]>::to_vec));
        assert_eq!(read(bytes, ROOMY).0, [frame("", "x")], "{whole:?}");
    }
    for cut in ["data: x", "data: x\ndata: y", "data: x\nevent", ""] {
        assert_eq!(read(body([cut]), ROOMY), (vec![], None), "{cut:?}");
    }
}

#[test]
fn an_end_within_a_character_is_the_end_of_a_line_that_does_not_count() {
    let text = "data: ok\n\ndata: näh\ndata: 🦀\n\n";
    for cut in 0..text.len() {
        let (begun, _) = text.as_bytes().split_at(cut);
        let (frames, error) = read(body([begun.to_vec()]), ROOMY);
        // The reader reports no error: the decoder decides whether the answer is complete.
        assert_eq!(error, None, "{cut}");
        let ok = frames.first().is_none_or(|first| *first == frame("", "ok"));
        assert!(ok, "{cut}: {frames:?}");
        if !text.is_char_boundary(cut) {
            assert_eq!(frames, [frame("", "ok")], "{cut}");
        }
    }
}

#[test]
fn invalid_utf8_is_an_error_after_the_valid_part() {
    let invalid: [&[u8]; 3] = [b"data: ok\n\n", b"data: \xff\n\n", b"data: never\n\n"];
    let expected = (vec![frame("", "ok")], Some(ModelErrorKind::Protocol));
    assert_eq!(read(body(invalid), ROOMY), expected);
    // Invalid UTF-8 in a comment line is not an error.
    let comment: [&[u8]; 1] = [b": \xff\ndata: ok\n\n"];
    assert_eq!(read(body(comment), ROOMY), (vec![frame("", "ok")], None));
}

#[test]
fn a_broken_body_fails_with_its_own_error() {
    let broken = ModelError::new("acme", ModelErrorKind::Interrupted, "cut").with_status(200);
    let pieces = vec![
        Ok(Bytes::from("data: 1\n\ndata: 2\n")),
        Err(broken),
        Ok(Bytes::from("\n")),
    ];
    let frames = FrameStream::new(
        Box::pin(stream::iter(pieces)),
        SseReader::new("acme", ROOMY),
    );
    let (frames, error) = read_all(frames);
    assert_eq!(frames, [frame("", "1")]);
    let error = error.unwrap();
    assert_eq!(error.kind, ModelErrorKind::Interrupted);
    assert_eq!((error.message(), error.http_status()), ("cut", Some(200)));
}

#[test]
fn an_endless_event_is_an_error() {
    for piece in ["0123456789", "data: 678\n", ": comment\n"] {
        let pieces = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&pieces);
        let endless = stream::repeat_with(move || {
            counter.fetch_add(1, Ordering::Relaxed);
            Ok(Bytes::from(piece))
        });
        let (frames, error) = read(Box::pin(endless), 100);
        assert_eq!((frames, error), (vec![], Some(ModelErrorKind::Protocol)));
        let read_bytes = pieces.load(Ordering::Relaxed) * piece.len();
        assert_eq!(read_bytes, 110, "one piece more than the limit");
    }
}

#[test]
fn the_limit_is_for_one_event_not_for_the_body() {
    let event = "data: 0123456789\n\n";
    let many = event.repeat(50);
    for size in [1, 7, 64, many.len()] {
        let pieces = body(many.as_bytes().chunks(size).map(<[u8]>::to_vec));
        let (frames, error) = read(pieces, 64);
        assert_eq!((frames.len(), error), (50, None), "pieces of {size}");
    }
}

#[test]
fn comments_do_not_grow_the_event() {
    for sign in [": ping\n\n", "\n", "\r\n", "event: ping\n\n"] {
        let signs = std::iter::repeat_n(sign, 50);
        let pieces = body(signs.chain(["data: at last\n\n"]));
        let expected = (vec![frame("", "at last")], None);
        assert_eq!(read(pieces, 20), expected, "{sign:?}");
    }
}
