//! Spans in OTLP's JSON form.
//!
//! The form is the proto3 JSON mapping of `ExportTraceServiceRequest` with what the OTLP specification
//! says otherwise ("JSON Protobuf Encoding"): ids as hexadecimal text, enums as numbers, keys in
//! lowerCamelCase, whole numbers of 64 bits as text.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use switchboard_domain::redact::Redactor;

use super::layer::{Attribute, EndedSpan};

/// `SpanKind` of the protocol.
const INTERNAL: u8 = 1;
const CLIENT: u8 = 3;
/// `Status.StatusCode` of the protocol.
pub(super) const ERROR: u8 = 2;

/// What the conventions make a list of, while `tracing` has no lists.
const LISTS: [&str; 1] = ["gen_ai.response.finish_reasons"];

/// Whether an attribute is a list.
pub(super) fn is_list(key: &str) -> bool {
    LISTS.contains(&key)
}

/// The kind of a span, as a number of the protocol.
pub(super) fn kind(span: &EndedSpan) -> u8 {
    if span.client { CLIENT } else { INTERNAL }
}

/// A request with these spans. Texts are without what `redactor` takes out.
pub(super) fn request(
    spans: &[EndedSpan],
    resource: &[(String, String)],
    redactor: &Redactor,
) -> Value {
    let resource: Vec<Value> = resource
        .iter()
        .map(|(key, value)| json!({"key": key, "value": {"stringValue": value}}))
        .collect();
    let spans: Vec<Value> = spans.iter().map(|one| span(one, redactor)).collect();
    json!({
        "resourceSpans": [{
            "resource": {"attributes": resource},
            "scopeSpans": [{
                "scope": {"name": "switchboard", "version": env!("CARGO_PKG_VERSION")},
                "spans": spans,
            }],
        }],
    })
}

fn span(span: &EndedSpan, redactor: &Redactor) -> Value {
    let attributes: Vec<Value> = span
        .attributes
        .iter()
        .map(|(key, value)| json!({"key": key, "value": attribute(key, value, redactor)}))
        .collect();
    let mut shown = json!({
        "traceId": format!("{:032x}", u128::from_be_bytes(span.trace)),
        "spanId": span_id(span.id),
        "name": redactor.redact_text(&span.name),
        "kind": kind(span),
        "startTimeUnixNano": nanoseconds(span.since),
        "endTimeUnixNano": nanoseconds(span.until),
        "attributes": attributes,
        "status": if span.failed { json!({"code": ERROR}) } else { json!({}) },
    });
    if let (Some(parent), Value::Object(fields)) = (&span.parent, &mut shown) {
        fields.insert("parentSpanId".to_owned(), span_id(*parent).into());
    }
    shown
}

fn attribute(key: &str, value: &Attribute, redactor: &Redactor) -> Value {
    match value {
        Attribute::Text(text) if is_list(key) => {
            json!({"arrayValue": {"values": [{"stringValue": redactor.redact_text(text)}]}})
        }
        Attribute::Text(text) => json!({"stringValue": redactor.redact_text(text)}),
        Attribute::Whole(number) => json!({"intValue": number.to_string()}),
        Attribute::Number(number) => json!({"doubleValue": number}),
        Attribute::Bool(yes) => json!({"boolValue": yes}),
    }
}

fn span_id(id: [u8; 8]) -> String {
    format!("{:016x}", u64::from_be_bytes(id))
}

fn nanoseconds(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_nanos().to_string()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_span_is_written_as_the_protocol_has_it() {
        let since = UNIX_EPOCH + Duration::from_nanos(1_764_000_000_123_456_789);
        let span = EndedSpan {
            trace: [0x5b; 16],
            id: [0, 1, 2, 3, 4, 5, 6, 255],
            parent: Some([9; 8]),
            name: "chat large".into(),
            client: true,
            failed: true,
            since,
            until: since + Duration::from_millis(1),
            attributes: vec![
                ("gen_ai.request.model", Attribute::Text("large".into())),
                (
                    "gen_ai.response.finish_reasons",
                    Attribute::Text("stop".into()),
                ),
                (
                    "gen_ai.usage.input_tokens",
                    Attribute::Whole(9_007_199_254_740_993),
                ),
                ("gen_ai.request.temperature", Attribute::Number(0.5)),
                ("gen_ai.request.stream", Attribute::Bool(true)),
                (
                    "switchboard.note",
                    Attribute::Text("token=abcdef known-secret".into()),
                ),
            ],
        };
        let root = EndedSpan {
            parent: None,
            client: false,
            failed: false,
            attributes: Vec::new(),
            ..span.clone()
        };
        let resource = [("service.name".to_owned(), "switchboard".to_owned())];
        let redactor = Redactor::default().with_secrets(["known-secret"]);
        let mut request = request(&[span, root], &resource, &redactor);
        // The version is another one next time.
        request["resourceSpans"][0]["scopeSpans"][0]["scope"]["version"] = "0".into();
        insta::assert_json_snapshot!("spans", request);
    }
}
