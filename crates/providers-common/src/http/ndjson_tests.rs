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

/// Returns the lines of a body, and the error at its end.
fn read(body: ByteStream, max: usize) -> (Vec<String>, Option<ModelError>) {
    let (frames, error) = read_all(FrameStream::new(body, LineReader::new("acme", max)));
    (frames.into_iter().map(|(_, line)| line).collect(), error)
}

fn kinds(result: (Vec<String>, Option<ModelError>)) -> (Vec<String>, Option<ModelErrorKind>) {
    (result.0, result.1.map(|error| error.kind))
}

#[test]
fn a_body_may_be_cut_at_any_byte() {
    let text = "\u{feff}{\"a\":1}\n\n  \r\n{\"b\":\"näh 🦀\"}\r\n{\"c\":3}".as_bytes();
    let expected = ["{\"a\":1}", "{\"b\":\"näh 🦀\"}", "{\"c\":3}"].map(str::to_owned);
    for cut in 0..=text.len() {
        let (left, right) = text.split_at(cut);
        let pieces = body([left.to_vec(), Vec::new(), right.to_vec()]);
        assert_eq!(
            kinds(read(pieces, ROOMY)),
            (expected.to_vec(), None),
            "cut at {cut}"
        );
    }
    let bytes = body(text.chunks(1).map(<[u8]>::to_vec));
    assert_eq!(
        kinds(read(bytes, ROOMY)),
        (expected.to_vec(), None),
        "byte by byte"
    );
}

#[test]
fn an_empty_body_has_no_lines() {
    for empty in ["", "\n", "\r\n\r\n", " \n\t", "\u{feff}", "\r"] {
        let expected = (vec![], None);
        assert_eq!(kinds(read(body([empty]), ROOMY)), expected, "{empty:?}");
    }
}

#[test]
fn a_byte_order_mark_within_a_body_is_text() {
    let (lines, error) = read(body(["1\n\u{feff}2\n"]), ROOMY);
    assert!(error.is_none());
    assert_eq!(lines, ["1", "\u{feff}2"]);
}

#[test]
fn invalid_utf8_is_an_error_after_the_valid_part() {
    let pieces: [&[u8]; 2] = [b"{}\n\xff", b"\n{}\n"];
    let (lines, error) = read(body(pieces), ROOMY);
    assert_eq!(lines, ["{}"]);
    assert_eq!(error.unwrap().kind, ModelErrorKind::Protocol);
}

#[test]
fn an_end_within_a_character_is_an_interruption() {
    let text = "{\"a\":1}\n{\"b\":\"näh 🦀";
    for cut in 0..=text.len() {
        let (begun, _) = text.as_bytes().split_at(cut);
        let in_character = !text.is_char_boundary(cut);
        let (lines, error) = kinds(read(body([begun.to_vec()]), ROOMY));
        assert_eq!(
            error,
            in_character.then_some(ModelErrorKind::Interrupted),
            "{cut}"
        );
        // If the body ends within a character, only the complete first line is returned.
        let good = &text[..if in_character { 8 } else { cut }];
        assert_eq!(lines, good.lines().collect::<Vec<_>>(), "{cut}");
    }
    // Invalid UTF-8 within a line is an error, at the end of the body too.
    for bytes in [&b"{}\n\"\xc3\xff"[..], b"{}\n\"\xff", b"{}\n\"\xc3\n\xc3"] {
        let (lines, error) = read(body([bytes.to_vec()]), ROOMY);
        assert_eq!(lines, ["{}"]);
        assert_eq!(error.unwrap().kind, ModelErrorKind::Protocol, "{bytes:?}");
    }
}

#[test]
fn a_line_may_be_as_long_as_the_limit_and_no_longer() {
    let longest = "x".repeat(100);
    let (lines, error) = read(body([format!("{longest}\n{longest}\n{longest}")]), 100);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(lines.len(), 3);
    let (lines, error) = read(body([format!("{longest}\n{longest}x\nnever")]), 100);
    assert_eq!(lines.len(), 1);
    assert_eq!(error.unwrap().kind, ModelErrorKind::Protocol);
}

#[test]
fn an_endless_line_is_an_error() {
    let endless = stream::repeat_with(|| Ok(Bytes::from_static(b"0123456789")));
    let (lines, error) = read(Box::pin(endless), 100);
    assert_eq!(lines, Vec::<String>::new());
    assert_eq!(error.unwrap().kind, ModelErrorKind::Protocol);
}

#[test]
fn a_broken_body_fails_with_its_own_error() {
    let broken = ModelError::new("acme", ModelErrorKind::Interrupted, "cut").with_status(200);
    let pieces = vec![
        Ok(Bytes::from("{\"a\":1}\n{\"b\"")),
        Err(broken),
        Ok(Bytes::from(":2}\n")),
    ];
    let (lines, error) = read(Box::pin(stream::iter(pieces)), ROOMY);
    assert_eq!(lines, ["{\"a\":1}"], "the second line is not complete");
    let error = error.unwrap();
    assert_eq!(error.kind, ModelErrorKind::Interrupted);
    assert_eq!((error.message(), error.http_status()), ("cut", Some(200)));
}
