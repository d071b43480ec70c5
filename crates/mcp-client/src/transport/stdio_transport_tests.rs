use futures_util::{FutureExt, future::BoxFuture};
use proptest::prelude::*;
use rmcp::{
    model::{CallToolRequest, CallToolRequestParams, ClientRequest},
    service::RxJsonRpcMessage,
};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex, split};

use super::*;

type Ours = Lines<ReadHalf<DuplexStream>, WriteHalf<DuplexStream>>;

/// Both ends of pipes that take so many bytes; ours reads lines of a hundred bytes at most.
fn pipes(bytes: usize) -> (Ours, DuplexStream) {
    let (ours, theirs) = duplex(bytes);
    let (read, write) = split(ours);
    (Lines::new(read, write, 100), theirs)
}

/// What is read of everything that a server ever writes, as JSON.
async fn read(written: &str, at_once: usize) -> Vec<Value> {
    let (mut lines, mut server) = pipes(at_once);
    let writing = async move {
        server.write_all(written.as_bytes()).await.unwrap();
        server.shutdown().await.unwrap();
        server
    };
    let reading = async {
        let mut read = Vec::new();
        while let Some(message) = lines.receive().await {
            read.push(serde_json::to_value(message).unwrap());
        }
        read
    };
    futures_util::join!(writing, reading).1
}

/// Sends a call of some hundred bytes.
fn send(lines: &mut Ours, id: i64) -> BoxFuture<'static, io::Result<()>> {
    let call = CallToolRequest::new(CallToolRequestParams::new("work"));
    let call = ClientRequest::CallToolRequest(call);
    let call = ClientJsonRpcMessage::request(call, RequestId::Number(id));
    Box::pin(lines.send(call))
}

/// The ids of the requests in what a server was told.
fn ids(told: &str) -> Vec<i64> {
    let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_i64();
    told.lines().filter_map(id).collect()
}

async fn told(mut server: DuplexStream) -> String {
    let mut told = String::new();
    server.read_to_string(&mut told).await.unwrap();
    told
}

fn answer(id: i64, text: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}})
}

#[tokio::test]
async fn lines_are_read_whole_however_they_come_in_pieces() {
    let (one, two) = (answer(1, "ä\n\"b\""), answer(2, "c"));
    let ping = json!({"jsonrpc": "2.0", "id": 7, "method": "ping"});
    let written = format!("{one}\n\n{ping}\r\n\u{feff}{two}\nnot yet a line");
    for at_once in [1, 2, 7, 64, 4096] {
        assert_eq!(
            read(&written, at_once).await,
            [&one, &ping, &two].map(Clone::clone)
        );
    }
}

#[tokio::test]
async fn a_line_that_is_too_long_is_dropped_alone() {
    let (one, two) = (answer(1, "a"), answer(2, "b"));
    let long = answer(3, &"c".repeat(200));
    let written = format!("{one}\n{long}\n{two}\n");
    for at_once in [1, 90, 4096] {
        assert_eq!(
            read(&written, at_once).await,
            [&one, &two].map(Clone::clone)
        );
    }
}

#[tokio::test]
async fn noise_is_passed_over_and_only_what_was_asked_is_answered() {
    let (mut lines, mut server) = pipes(4096);
    let noise = concat!(
        "Listening on stdio\n",
        "{\"level\": \"info\"}\n",
        "[1, 2]\n",
        "\u{fffd}{\"jsonrpc\n",
        "{\"id\": \"q\", \"method\": \"ping\"}\n",
        "{\"id\": null, \"method\": \"ping\"}\n",
    );
    server.write_all(noise.as_bytes()).await.unwrap();
    server.write_all(b"\xff\xfe\n").await.unwrap();
    let answer = answer(1, "a");
    server
        .write_all(format!("{answer}\n").as_bytes())
        .await
        .unwrap();
    let read = serde_json::to_value(lines.receive().await).unwrap();
    assert_eq!(read, answer);
    lines.close().await.unwrap();
    drop(lines);
    let refusal = json!({
        "jsonrpc": "2.0", "id": "q", "error": {"code": -32600, "message": "Invalid request"},
    });
    assert_eq!(told(server).await, format!("{refusal}\n"));
}

#[tokio::test]
async fn messages_go_out_whole_and_in_order_whoever_waits_for_the_pipe() {
    let (mut lines, server) = pipes(50);
    let mut sent: Vec<_> = (0..5).map(|id| send(&mut lines, id)).collect();
    // None has gone out as a whole. The first one begins to wait, and is given up.
    assert!(sent[0].as_mut().now_or_never().is_none());
    drop(sent.remove(0));
    sent.reverse();
    let sending = async {
        for sent in sent {
            sent.await.unwrap();
        }
        lines.close().await.unwrap();
        drop(lines);
    };
    let ((), told) = futures_util::join!(sending, told(server));
    assert_eq!(ids(&told), [0, 1, 2, 3, 4]);
}

#[tokio::test]
async fn a_pipe_that_failed_once_fails_everybody() {
    let (mut lines, server) = pipes(50);
    let waiting = send(&mut lines, 1);
    drop(server);
    let (first, second) = (waiting.await, send(&mut lines, 2).await);
    let kinds = [first, second].map(|sent| sent.unwrap_err().kind());
    assert_eq!(kinds, [io::ErrorKind::BrokenPipe; 2]);
}

#[tokio::test]
async fn the_end_does_not_wait_for_a_server_that_reads_nothing() {
    let (mut lines, _server) = pipes(10);
    let mut waiting = send(&mut lines, 1);
    assert!(waiting.as_mut().now_or_never().is_none());
    let (sent, closed) = futures_util::join!(waiting, lines.close());
    assert_eq!(sent.unwrap_err().kind(), io::ErrorKind::NotConnected);
    closed.unwrap();
    let late = send(&mut lines, 2).await;
    assert_eq!(late.unwrap_err().kind(), io::ErrorKind::NotConnected);
}

#[test]
fn the_answer_of_a_tool_is_known_by_its_fields_in_any_order() {
    let text = json!({"type": "text", "text": "t", "annotations": {"priority": 0.5}});
    for (result, known) in [
        (json!({"content": [text]}), true),
        (
            json!({"content": [], "isError": true, "resultType": "complete"}),
            true,
        ),
        (json!({"structuredContent": null, "_meta": {"a": 1}}), true),
        (json!({"content": [{"type": "hologram"}]}), false),
        (
            json!({"content": [text], "resultType": "input_required"}),
            false,
        ),
        (json!({"content": [text], "action": "accept"}), false),
        (
            json!({"content": [text], "_meta": {SUBSCRIPTION: 3}}),
            false,
        ),
        (json!({"_meta": {}}), false),
        (json!({}), false),
    ] {
        let forward = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
        let backward = format!(r#"{{"result":{result},"id":1,"jsonrpc":"2.0"}}"#);
        for line in [forward, backward] {
            assert_eq!(tool_result(line.as_bytes()).is_some(), known, "{line}");
        }
    }
    for other in [
        r#"{"jsonrpc":"1.0","id":1,"result":{"content":[]}}"#,
        r#"{"id":1,"result":{"content":[]}}"#,
        r#"{"jsonrpc":"2.0","result":{"content":[]}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]},"error":null}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":[null,[],null,false,null]}"#,
        r#"["2.0",1,{"content":[]}]"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","result":{"content":[]}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"content":[]}}"#,
    ] {
        assert!(tool_result(other.as_bytes()).is_none(), "{other}");
    }
}

fn some<T: Clone + std::fmt::Debug + 'static>(values: Vec<T>) -> impl Strategy<Value = Option<T>> {
    prop::option::of(prop::sample::select(values))
}

prop_compose! {
    /// Results of tools, of everything else, and of nothing.
    fn any_result()(
        kind in some(vec![json!("complete"), json!("input_required"), json!("task"), json!(null)]),
        content in some(vec![
            json!([]),
            json!([{"type": "text", "text": "a", "_meta": {"b": 1}, "odd": 2}]),
            json!([{"type": "image", "data": "AA==", "mimeType": "image/png"}, {"text": "c", "type": "text"}]),
            json!([{"type": "resource", "resource": {"uri": "f:/a", "text": "t"}}]),
            json!([{"type": "resource_link", "uri": "f:/c", "name": "c"}]),
            json!([{"type": "text", "text": "a"}, {"text": "\u{e4}\n\"b\"", "type": "text"}]),
            json!([{"type": "text"}]), json!([["text", "a"]]), json!([{"type": "Text", "text": "a"}]),
            json!([{"type": "hologram"}]),
            json!("plain"),
            json!(null),
        ]),
        structured in some(vec![json!(null), json!({"n": [1, 2.5, "x"]}), json!("text")]),
        is_error in some(vec![json!(true), json!(false), json!(null), json!("no")]),
        meta in some(vec![json!({}), json!({"a": 1}), json!({SUBSCRIPTION: 3}), json!(null), json!(5)]),
        other in some(vec![
            ("messages", json!([])), ("prompts", json!([])), ("contents", json!([])),
            ("tools", json!([])), ("action", json!("accept")), ("inputRequests", json!({})),
            ("task", json!({})), ("odd", json!(1)),
        ]),
    ) -> Value {
        let mut result = serde_json::Map::new();
        let fields = [
            ("resultType", kind), ("content", content), ("structuredContent", structured),
            ("isError", is_error), ("_meta", meta),
        ];
        for (name, value) in fields.into_iter().chain(other.map(|(name, value)| (name, Some(value)))) {
            if let Some(value) = value {
                result.insert(name.to_owned(), value);
            }
        }
        Value::Object(result)
    }
}

proptest! {
    #[test]
    fn an_answer_is_read_as_rmcp_reads_it(
        result in any_result(),
        id in prop_oneof![any::<i64>().prop_map(Value::from), Just(json!("1")), Just(json!(1.0))],
    ) {
        let line = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
        let theirs: RxJsonRpcMessage<RoleClient> = serde_json::from_str(&line).unwrap();
        if let Some(ours) = tool_result(line.as_bytes()) {
            prop_assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
        }
    }
}
