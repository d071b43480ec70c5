use proptest::prelude::*;
use rmcp::model::NumberOrString;
use serde_json::Value;

use super::*;

/// Recovers what serde does not read.
fn recover_from(text: &str) -> RecoveredMessage {
    let error = serde_json::from_str::<ServerJsonRpcMessage>(text).unwrap_err();
    recover_message(text.as_bytes(), &error)
}

/// Returns the id and the reason of the error for an invalid answer.
fn failed(text: &str) -> (RequestId, String) {
    let RecoveredMessage::Message(message) = recover_from(text) else {
        panic!("{text}");
    };
    let ServerJsonRpcMessage::Error(error) = *message else {
        panic!("{message:?}");
    };
    let reason = invalid_answer_reason(&error.error).unwrap();
    (error.id.unwrap(), reason.to_owned())
}

fn number(id: i64) -> RequestId {
    NumberOrString::Number(id)
}

#[test]
fn lone_surrogates_are_replaced_and_pairs_stay() {
    for (text, expected) in [
        (r"\ud800", "\u{fffd}"),
        (r"\uDBFF!", "\u{fffd}!"),
        (r"\udc00", "\u{fffd}"),
        (r"\uDFFF\ud800", "\u{fffd}\u{fffd}"),
        (r"\ud800\ud83d\ude00", "\u{fffd}😀"),
        (r"\ud800\n", "\u{fffd}\n"),
        (r"\ud800\\udc00", "\u{fffd}\\udc00"),
        (r"\\\ud800", "\\\u{fffd}"),
        (r"\\ud800\udc01", "\\ud800\u{fffd}"),
        (r"\ud7ff\ue000\ud800", "\u{d7ff}\u{e000}\u{fffd}"),
    ] {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":5,"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
        );
        let RecoveredMessage::Message(message) = recover_from(&line) else {
            panic!("{line}");
        };
        let message = serde_json::to_value(message).unwrap();
        assert_eq!(message["id"], 5);
        assert_eq!(message["result"]["content"][0]["text"], expected, "{line}");
    }
}

#[test]
fn the_request_of_an_invalid_answer_is_found() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for (text, id, reason) in [
        (
            r#"{"jsonrpc":"2.0","id":7,"result":{"n":1e999}}"#.to_owned(),
            number(7),
            "is not valid JSON: number out of range",
        ),
        (
            format!(r#" {{ "result" : {deep} , "id" : -7 , "jsonrpc" : "2.0" }} "#),
            number(-7),
            "is not valid JSON: recursion limit exceeded",
        ),
        (
            r#"{"error":{"x":"}\"{","id":1,"n":-1e999},"jsonrpc":"2.0","id":"7"}"#.to_owned(),
            NumberOrString::String("7".into()),
            "is not valid JSON: number out of range",
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"result":{"text":"cut o"#.to_owned(),
            number(7),
            "is not valid JSON: EOF while parsing a string",
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"error":"no"}"#.to_owned(),
            number(7),
            "is not a valid JSON-RPC message: ",
        ),
    ] {
        let (found, why) = failed(&text);
        assert_eq!(found, id, "{text}");
        assert!(why.starts_with(reason), "{why}");
        assert!(why.chars().count() < 300, "{why}");
    }
}

#[test]
fn invalid_requests_of_a_server_fail_no_call() {
    for text in [
        r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":1e999}"#,
        r#"{"method":"ping","id":7}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"ping","result":1e999}"#,
    ] {
        let RecoveredMessage::Request(id) = recover_from(text) else {
            panic!("{text}");
        };
        assert_eq!(id, number(7));
    }
}

#[test]
fn other_output_of_a_server_is_noise() {
    for text in [
        "",
        "Listening on stdio",
        r#"{"level":"info","id":7,"error":"no"}"#,
        r#"{"level":"info","id":7,"error":1e999}"#,
        r#"{"jsonrpc":"2.0","result":1e999}"#,
        r#"{"jsonrpc":"2.0","id":null,"result":1e999}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"result":1e999}"#,
        r#"{"jsonrpc":"2.0","id":{"id":7},"result":1e999}"#,
        r#"{"jsonrpc":"2.0","params":{"id":7,"result":1e999}}"#,
        r#"{"jsonrpc":"2.0","method":"x","params":1e999}"#,
        r#"[{"jsonrpc":"2.0","id":7,"result":1e999}]"#,
        r#"x {"jsonrpc":"2.0","id":7,"result":1}"#,
        r#"{} {"jsonrpc":"2.0","id":7,"result":1}"#,
        r#"{"method":"ping","id":7"#,
    ] {
        assert!(
            matches!(recover_from(text), RecoveredMessage::Nothing),
            "{text}"
        );
    }
}

#[test]
fn depth_costs_no_stack() {
    let open = r#"{"a":["#.repeat(500_000);
    let text = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{open}"#);
    assert_eq!(failed(&text).0, number(7));
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(text: Vec<u8>) {
        if let Err(error) = serde_json::from_slice::<ServerJsonRpcMessage>(&text) {
            recover_message(&text, &error);
        }
    }

    #[test]
    fn valid_text_stays_what_it_means(text: String) {
        let json = Value::from(text).to_string();
        prop_assert_eq!(replace_lone_surrogates(json.as_bytes()), None);
    }
}
