//! Start and end of a server on a pair of streams.

use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};
use switchboard_mcp_servers::{ServerError, ServerOptions, catalogue, serve_stdio, serve_stream};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

use crate::client::{NAME, call, connect, data};

/// Returns the requests of an `initialize` session, one per line. The last one is a call.
pub(crate) fn session() -> String {
    let initialize = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    });
    let call = json!({"name": "calculate_account_value", "arguments": {"customer_id": 42}});
    let messages = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}),
    ];
    messages.map(|message| format!("{message}\n")).concat()
}

/// Parses the output of the server, whose lines must all be messages.
pub(crate) fn messages(output: &str) -> Vec<Value> {
    output
        .lines()
        .map(|line| {
            let message: Value = serde_json::from_str(line).unwrap();
            assert_eq!(message["jsonrpc"], "2.0");
            message
        })
        .collect()
}

/// Sends `input`, closes it, and returns the result and the output of the server.
async fn exchange(input: &str) -> (Result<(), ServerError>, String) {
    let (mut near, far) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(far);
    let server = tokio::spawn(serve_stream(
        NAME,
        ServerOptions::new(),
        reader,
        writer,
        std::future::pending(),
    ));
    near.write_all(input.as_bytes()).await.unwrap();
    near.shutdown().await.unwrap();
    let mut output = String::new();
    near.read_to_string(&mut output).await.unwrap();
    (server.await.unwrap(), output)
}

#[tokio::test]
async fn requests_are_answered_after_the_input_is_closed() {
    let (ended, output) = exchange(&session()).await;
    ended.unwrap();
    let messages = messages(&output);
    assert_eq!(messages.len(), 2, "{output}");
    assert_eq!(messages[1]["id"], 2);
    let content = &messages[1]["result"]["structuredContent"];
    assert_eq!(content["account_value"], "530.19");
}

#[tokio::test]
async fn a_running_call_is_answered_before_the_end() {
    for by_shutdown in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("shop.db");
        let (near, far) = tokio::io::duplex(64 * 1024);
        let (reader, writer) = tokio::io::split(far);
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let options = ServerOptions::new().with_data_file(&file);
        let server = serve_stream(NAME, options, reader, writer, async move {
            if stopped.await.is_err() {
                std::future::pending::<()>().await;
            }
        });
        let mut server = tokio::spawn(server);
        let (near_reader, mut input) = tokio::io::split(near);
        let mut output = BufReader::new(near_reader).lines();
        input.write_all(session().as_bytes()).await.unwrap();
        // These are the responses to `initialize` and to the first call. So the file exists and is
        // not locked.
        for _ in 0..2 {
            output.next_line().await.unwrap().unwrap();
        }

        // Another process holds the write lock, so the ticket waits …
        let other = crate::files::database(&file);
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let ticket = json!({"customer_id": 42, "subject": "Last words"});
        let ticket = json!({"name": "create_support_ticket", "arguments": ticket});
        let ticket = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": ticket});
        let ping = json!({"jsonrpc": "2.0", "id": 4, "method": "ping"});
        let requests = format!("{ticket}\n{ping}\n");
        input.write_all(requests.as_bytes()).await.unwrap();
        // … and the server answers the later request while it still executes the earlier one.
        let answer = output.next_line().await.unwrap().unwrap();
        assert!(answer.contains("\"id\":4"), "{answer}");

        if by_shutdown {
            stop.send(()).unwrap();
        } else {
            drop(stop);
            input.shutdown().await.unwrap();
        }
        other.execute_batch("COMMIT").unwrap();
        // The response must be written before the server ends, because a program exits then.
        let last = tokio::select! {
            biased;
            line = output.next_line() => line.unwrap().unwrap(),
            ended = &mut server => panic!("ended without the last answer: {ended:?}"),
        };
        let last: Value = serde_json::from_str(&last).unwrap();
        assert_eq!(last["id"], 3);
        assert_eq!(last["result"]["structuredContent"]["ticket_id"], 1);
        assert_eq!(output.next_line().await.unwrap(), None);
        server.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn invalid_input_lines_are_ignored() {
    let noisy = session().replace('\n', "\nnot json\n\n{\"half\": \n");
    let (ended, output) = exchange(&noisy).await;
    ended.unwrap();
    assert_eq!(messages(&output).len(), 2, "{output}");
}

#[tokio::test]
async fn a_closed_input_is_not_an_error() {
    let (ended, output) = exchange("").await;
    ended.unwrap();
    assert_eq!(output, "");
}

#[tokio::test]
async fn a_notification_before_the_initialization_is_an_error() {
    let secret =
        r#"{"jsonrpc":"2.0","method":"notifications/initialized","params":{"key":"sk-1"}}"#;
    let (ended, output) = exchange(&format!("{secret}\n")).await;
    assert_eq!(output, "");
    let error = ended.unwrap_err();
    assert!(!error.is_usage_error());
    insta::assert_snapshot!(error, @"the client did not start a Model Context Protocol session: its first message is not a request");
}

#[tokio::test]
async fn a_shutdown_ends_servers_with_and_without_a_client() {
    for connected in [false, true] {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let (reader, writer) = tokio::io::split(far);
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let server = tokio::spawn(serve_stream(
            NAME,
            ServerOptions::new(),
            reader,
            writer,
            async move {
                let _ = stopped.await;
            },
        ));
        let (near_reader, near_writer) = tokio::io::split(near);
        let mut client = None;
        let mut unused = None;
        if connected {
            let transport = (near_reader, near_writer);
            let connected = connect(transport, ProtocolVersion::V_2025_11_25).await;
            let value = json!({"customer_id": 42});
            data(call(&connected, "calculate_account_value", value).await);
            client = Some(connected);
        } else {
            unused = Some((near_reader, near_writer));
        }
        stop.send(()).unwrap();
        server.await.unwrap().unwrap();
        drop((client, unused));
    }
}

#[tokio::test]
async fn unknown_servers_are_refused_with_the_known_ones() {
    assert_eq!(catalogue()[0].name, NAME);
    for server in catalogue() {
        assert!(!server.title.is_empty());
        assert!(!server.description.contains('\n') && !server.description.ends_with('.'));
    }
    let options = ServerOptions::new;
    let error = serve_stdio("customer_service", options(), std::future::pending())
        .await
        .unwrap_err();
    assert!(error.is_usage_error());
    insta::assert_snapshot!(error, @"unknown bundled server `customer_service` (did you mean `customer-service`?). Available: customer-service, graph, bte, workspace");
    let error = serve_stdio("weather", options(), std::future::pending())
        .await
        .unwrap_err();
    insta::assert_snapshot!(error, @"unknown bundled server `weather`. Available: customer-service, graph, bte, workspace");
}
