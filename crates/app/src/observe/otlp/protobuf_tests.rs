use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn only(message: &[u8], field: u64) -> Vec<u8> {
    let fields = read(message).unwrap();
    let mut found = fields.into_iter().filter(|(number, _)| *number == field);
    let Some((_, Read::Bytes(bytes))) = found.next() else {
        panic!("no field {field}");
    };
    bytes.to_vec()
}

/// The attributes of a message as key and written value.
fn attributes(message: &[u8], field: u64) -> Vec<(String, Vec<u8>)> {
    let fields = read(message).unwrap();
    let ours = fields.iter().filter(|(number, _)| *number == field);
    ours.map(|(_, value)| {
        let Read::Bytes(pair) = value else {
            panic!("no pair");
        };
        (String::from_utf8(only(pair, 1)).unwrap(), only(pair, 2))
    })
    .collect()
}

#[test]
fn a_span_is_written_with_the_numbers_of_the_protocol() {
    let since = UNIX_EPOCH + Duration::from_nanos(1_764_000_000_123_456_789);
    let one = EndedSpan {
        trace: [0x5b; 16],
        id: [1, 2, 3, 4, 5, 6, 7, 8],
        parent: Some([9; 8]),
        name: "chat large".into(),
        client: true,
        failed: true,
        since,
        until: since + Duration::from_millis(1),
        attributes: vec![
            ("text", Attribute::Text("known-secret".into())),
            (
                "gen_ai.response.finish_reasons",
                Attribute::Text("stop".into()),
            ),
            ("whole", Attribute::Whole(-2)),
            ("number", Attribute::Number(0.5)),
            ("bool", Attribute::Bool(true)),
        ],
    };
    let redactor = Redactor::default().with_secrets(["known-secret"]);
    let resource = [("service.name".to_owned(), "desk".to_owned())];
    let request = request(&[one], &resource, &redactor);

    let of_resource = only(&request, 1);
    let name = Message::default().text(1, "desk").0;
    assert_eq!(
        attributes(&only(&of_resource, 1), 1),
        [("service.name".to_owned(), name)]
    );
    let of_scope = only(&of_resource, 2);
    assert_eq!(only(&only(&of_scope, 1), 1), b"switchboard");

    let span = only(&of_scope, 2);
    let fields = read(&span).unwrap();
    let numbers: Vec<(u64, u64)> = fields
        .iter()
        .filter_map(|(field, value)| match value {
            Read::Number(number) => Some((*field, *number)),
            Read::Bytes(_) => None,
        })
        .collect();
    assert_eq!(
        numbers,
        [
            (6, 3),
            (7, 1_764_000_000_123_456_789),
            (8, 1_764_000_000_124_456_789)
        ]
    );
    assert_eq!(only(&span, 1), [0x5b; 16]);
    assert_eq!(only(&span, 2), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(only(&span, 4), [9; 8]);
    assert_eq!(only(&span, 5), b"chat large");
    assert_eq!(read(&only(&span, 15)).unwrap(), [(3, Read::Number(2))]);

    let attributes = attributes(&span, 9);
    let value = |key: &str| {
        let found = attributes.iter().find(|(known, _)| known == key);
        &found.unwrap().1
    };
    assert_eq!(only(value("text"), 1), b"[redacted]");
    let list = only(value("gen_ai.response.finish_reasons"), 5);
    assert_eq!(only(&only(&list, 1), 1), b"stop");
    assert_eq!(
        read(value("whole")).unwrap(),
        [(3, Read::Number(u64::MAX - 1))]
    );
    assert_eq!(
        read(value("number")).unwrap(),
        [(4, Read::Number(0.5_f64.to_bits()))]
    );
    assert_eq!(read(value("bool")).unwrap(), [(2, Read::Number(1))]);
}

/// The example of protobuf's own description of its encoding: field 1 with the number 150.
#[test]
fn numbers_are_written_as_the_description_of_the_encoding_has_them() {
    assert_eq!(Message::default().varint(1, 150).0, [0x08, 0x96, 0x01]);
    let text = Message::default().text(2, "testing").0;
    assert_eq!(text, [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67]);
}

#[test]
fn a_complaint_is_read() {
    let partial = Message::default().varint(1, 3).text(2, "too old");
    let answer = Message::default().message(1, &partial).0;
    assert_eq!(rejected(&answer), Some((3, Some("too old".into()))));
    assert_eq!(rejected(b""), None);
    assert_eq!(rejected(b"<html>"), None);
}

proptest! {
    #[test]
    fn what_was_written_is_read(number in any::<u64>(), bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let message = Message::default().varint(1, number).bytes(300, &bytes).fixed64(2, number).0;
        prop_assert_eq!(
            read(&message).unwrap(),
            vec![(1, Read::Number(number)), (300, Read::Bytes(&bytes)), (2, Read::Number(number))]
        );
    }

    #[test]
    fn no_answer_breaks_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
        let _ = rejected(&bytes);
    }
}
