//! Spans in OTLP's binary form.
//!
//! The field numbers are those of opentelemetry-proto's `trace_service.proto`, `trace.proto`,
//! `common.proto` and `resource.proto`, which are stable. So few of them are needed that they are
//! written here rather than by a generator with its crates.

use std::time::{SystemTime, UNIX_EPOCH};

use switchboard_domain::redact::Redactor;

use super::{
    encode::{ERROR, is_list, kind},
    layer::{Attribute, EndedSpan},
};

/// A message that is being written.
#[derive(Default)]
struct Message(Vec<u8>);

/// How a field is written, with its number in the protocol.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;

impl Message {
    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            // The lower seven bits, and a mark that more come.
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }

    fn varint(mut self, field: u64, value: u64) -> Self {
        self.number(field << 3 | VARINT);
        self.number(value);
        self
    }

    fn fixed64(mut self, field: u64, value: u64) -> Self {
        self.number(field << 3 | FIXED64);
        self.0.extend(value.to_le_bytes());
        self
    }

    fn bytes(mut self, field: u64, value: &[u8]) -> Self {
        self.number(field << 3 | BYTES);
        self.number(value.len() as u64);
        self.0.extend(value);
        self
    }

    fn text(self, field: u64, value: &str) -> Self {
        self.bytes(field, value.as_bytes())
    }

    fn message(self, field: u64, value: &Self) -> Self {
        self.bytes(field, &value.0)
    }
}

/// A request with these spans: `ExportTraceServiceRequest`. Texts are without what `redactor` takes
/// out.
pub(super) fn request(
    spans: &[EndedSpan],
    resource: &[(String, String)],
    redactor: &Redactor,
) -> Vec<u8> {
    let resource = resource
        .iter()
        .fold(Message::default(), |message, (key, value)| {
            let value = Message::default().text(1, value);
            message.message(1, &key_value(key, &value))
        });
    let scope = Message::default()
        .text(1, "switchboard")
        .text(2, env!("CARGO_PKG_VERSION"));
    let of_scope = spans
        .iter()
        .fold(Message::default().message(1, &scope), |message, one| {
            message.message(2, &span(one, redactor))
        });
    let of_resource = Message::default()
        .message(1, &resource)
        .message(2, &of_scope);
    Message::default().message(1, &of_resource).0
}

fn span(span: &EndedSpan, redactor: &Redactor) -> Message {
    let mut message = Message::default().bytes(1, &span.trace).bytes(2, &span.id);
    if let Some(parent) = &span.parent {
        message = message.bytes(4, parent);
    }
    message = message
        .text(5, &redactor.redact_text(&span.name))
        .varint(6, u64::from(kind(span)))
        .fixed64(7, nanoseconds(span.since))
        .fixed64(8, nanoseconds(span.until));
    for (key, value) in &span.attributes {
        message = message.message(9, &key_value(key, &any_value(key, value, redactor)));
    }
    if span.failed {
        let status = Message::default().varint(3, u64::from(ERROR));
        message = message.message(15, &status);
    }
    message
}

fn key_value(key: &str, value: &Message) -> Message {
    Message::default().text(1, key).message(2, value)
}

fn any_value(key: &str, value: &Attribute, redactor: &Redactor) -> Message {
    match value {
        Attribute::Text(text) => {
            let text = Message::default().text(1, &redactor.redact_text(text));
            if is_list(key) {
                let list = Message::default().message(1, &text);
                Message::default().message(5, &list)
            } else {
                text
            }
        }
        Attribute::Bool(yes) => Message::default().varint(2, u64::from(*yes)),
        Attribute::Whole(number) => {
            Message::default().varint(3, u64::from_le_bytes(number.to_le_bytes()))
        }
        Attribute::Number(number) => Message::default().fixed64(4, number.to_bits()),
    }
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// One field of a message that came.
#[derive(Debug, PartialEq)]
pub(super) enum Read<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, in order; `None` if it is none.
pub(super) fn read(mut message: &[u8]) -> Option<Vec<(u64, Read<'_>)>> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let key = read_number(&mut message)?;
        let value = match key & 7 {
            VARINT => Read::Number(read_number(&mut message)?),
            FIXED64 => {
                let (number, rest) = message.split_first_chunk::<8>()?;
                message = rest;
                Read::Number(u64::from_le_bytes(*number))
            }
            BYTES => {
                let length = usize::try_from(read_number(&mut message)?).ok()?;
                let (bytes, rest) = message.split_at_checked(length)?;
                message = rest;
                Read::Bytes(bytes)
            }
            _ => return None,
        };
        fields.push((key >> 3, value));
    }
    Some(fields)
}

fn read_number(message: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = message.split_first()?;
        *message = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// `ExportTraceServiceResponse`: how many spans were rejected, and why.
pub(super) fn rejected(answer: &[u8]) -> Option<(u64, Option<String>)> {
    let fields = read(answer)?;
    let partial = fields.iter().find_map(|(field, value)| match value {
        Read::Bytes(bytes) if *field == 1 => Some(*bytes),
        _ => None,
    })?;
    let (mut spans, mut why) = (0, None);
    for (field, value) in read(partial)? {
        match (field, value) {
            (1, Read::Number(number)) => spans = number,
            (2, Read::Bytes(bytes)) => why = Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => {}
        }
    }
    Some((spans, why))
}

#[cfg(test)]
#[path = "protobuf_tests.rs"]
mod tests;
