use futures_util::{FutureExt, future::BoxFuture};
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, DuplexStream, ReadHalf, duplex, split};

use super::*;

type ClientEnd = StdioTransport<ReadHalf<DuplexStream>>;

/// Creates connected pipes with a buffer of this size. The client accepts lines of 100 bytes.
fn pipes(buffer: usize) -> (ClientEnd, DuplexStream) {
    let (client, server) = duplex(buffer);
    let (reader, writer) = split(client);
    (StdioTransport::new(reader, writer, 100), server)
}

/// Returns the messages that the client reads from this output of a server.
async fn read(output: &str, buffer: usize) -> Vec<Value> {
    let (mut transport, mut server) = pipes(buffer);
    let writing = async move {
        server.write_all(output.as_bytes()).await.unwrap();
        server.shutdown().await.unwrap();
        server
    };
    let reading = async {
        let mut messages = Vec::new();
        while let Some(message) = transport.receive().await {
            messages.push(serde_json::to_value(message).unwrap());
        }
        messages
    };
    futures_util::join!(writing, reading).1
}

/// Sends a call of about one hundred bytes.
fn send(transport: &mut ClientEnd, id: i64) -> BoxFuture<'static, io::Result<()>> {
    let call = CallToolRequest::new(CallToolRequestParams::new("work"));
    let call = ClientRequest::CallToolRequest(call);
    let call = ClientJsonRpcMessage::request(call, RequestId::Number(id));
    Box::pin(transport.send(call))
}

/// Returns the ids of the requests in the input of a server.
fn ids(input: &str) -> Vec<i64> {
    let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_i64();
    input.lines().filter_map(id).collect()
}

async fn server_input(mut server: DuplexStream) -> String {
    let mut input = String::new();
    server.read_to_string(&mut input).await.unwrap();
    input
}

fn answer(id: i64, text: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}})
}

#[tokio::test]
async fn lines_are_read_completely_from_pieces_of_any_size() {
    let (one, two) = (answer(1, "ä\n\"b\""), answer(2, "c"));
    let ping = json!({"jsonrpc": "2.0", "id": 7, "method": "ping"});
    let output = format!("{one}\n\n{ping}\r\n\u{feff}{two}\nincomplete line");
    for buffer in [1, 2, 7, 64, 4096] {
        assert_eq!(
            read(&output, buffer).await,
            [&one, &ping, &two].map(Clone::clone)
        );
    }
}

#[tokio::test]
async fn noise_is_skipped_and_invalid_requests_are_refused() {
    let (mut transport, mut server) = pipes(4096);
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
    let line = format!("{answer}\n");
    server.write_all(line.as_bytes()).await.unwrap();
    let read = serde_json::to_value(transport.receive().await).unwrap();
    assert_eq!(read, answer);
    // This message is queued behind the refusal.
    send(&mut transport, 2).await.unwrap();
    transport.close().await.unwrap();
    drop(transport);
    let refusal = json!({
        "jsonrpc": "2.0", "id": "q", "error": {"code": -32600, "message": "Invalid request"},
    });
    let input = server_input(server).await;
    assert_eq!(input.lines().next().unwrap(), refusal.to_string());
    assert_eq!(ids(&input), [2]);
}

#[tokio::test]
async fn messages_are_written_completely_and_in_order() {
    let (mut transport, server) = pipes(50);
    let mut sent: Vec<_> = (0..5).map(|id| send(&mut transport, id)).collect();
    // The sender of the first message does not wait for it.
    assert!(sent[0].as_mut().now_or_never().is_none());
    drop(sent.remove(0));
    sent.reverse();
    let sending = async {
        for sent in sent {
            sent.await.unwrap();
        }
        transport.close().await.unwrap();
        drop(transport);
    };
    let ((), input) = futures_util::join!(sending, server_input(server));
    assert_eq!(ids(&input), [0, 1, 2, 3, 4]);
}

#[tokio::test]
async fn closing_does_not_wait_for_a_server_that_reads_nothing() {
    let (mut transport, _server) = pipes(10);
    let mut waiting = send(&mut transport, 1);
    assert!(waiting.as_mut().now_or_never().is_none());
    let (sent, closed) = futures_util::join!(waiting, transport.close());
    assert_eq!(sent.unwrap_err().kind(), io::ErrorKind::NotConnected);
    closed.unwrap();
    let late = send(&mut transport, 2).await;
    assert_eq!(late.unwrap_err().kind(), io::ErrorKind::NotConnected);
}
