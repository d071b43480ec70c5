//! Servers that others wrote, as they are. See `cargo xtask test --peers`.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the functions around the tests fail as the tests do"
)]

use std::{
    env,
    net::TcpListener,
    path::PathBuf,
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use switchboard_domain::{JsonObject, ProgressSink, ToolCall, ToolContent, ToolHost, ToolOutput};
use switchboard_mcp_client::{HostOptions, McpHost, ServerConfig, ServerState, ServerStatus};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    time::timeout,
};

/// Node needs a while to start on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

fn everything() -> String {
    let folder = env::var_os("SWITCHBOARD_PEERS").expect("run `cargo xtask test --peers`");
    let script = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
    let path = PathBuf::from(folder).join(script);
    assert!(path.is_file(), "{} is not installed", path.display());
    path.into_os_string().into_string().unwrap()
}

async fn soon<F: Future>(future: F) -> F::Output {
    timeout(PATIENCE, future).await.expect("it hangs")
}

async fn host(mut config: ServerConfig) -> (McpHost, ServerStatus) {
    config.connect_timeout = PATIENCE;
    let host = McpHost::start(vec![config], HostOptions::default()).unwrap();
    soon(host.ready()).await;
    let status = host.servers().remove(0);
    assert_eq!(status.state, ServerState::Ready, "{status:#?}");
    (host, status)
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        other => panic!("no object: {other}"),
    }
}

async fn call(host: &McpHost, tool: &str, input: Value) -> ToolOutput {
    let answer = soon(host.call_raw("everything", tool, object(input))).await;
    answer.unwrap_or_else(|error| panic!("{tool}: {error}"))
}

/// What works the same over both transports.
async fn exercise(host: &McpHost, status: &ServerStatus) {
    assert!(status.server_info.is_some(), "{status:#?}");
    let catalog = host.tools().await;
    assert!(catalog.problems.is_empty(), "{:?}", catalog.problems);
    assert_eq!(catalog.tools.len(), status.tools);
    assert!(catalog.tools.len() >= 8, "{}", catalog.tools.len());

    let echo = call(host, "echo", json!({"message": "grüße"})).await;
    assert_eq!(echo.content, [ToolContent::text("Echo: grüße")]);

    let sum = call(host, "get-sum", json!({"a": 2, "b": 40})).await;
    assert!(sum.content[0].as_text().contains("42"), "{sum:?}");

    let image = call(host, "get-tiny-image", json!({})).await;
    let is_image = |piece: &ToolContent| matches!(piece, ToolContent::Image(_));
    assert!(image.content.iter().any(is_image), "{image:?}");

    let input = json!({"location": "New York"});
    let structured = call(host, "get-structured-content", input).await;
    assert!(structured.structured.unwrap()["temperature"].is_number());

    let wrong = host.call_raw("everything", "get-sum", object(json!({"a": "x"})));
    match soon(wrong).await {
        Ok(output) => assert!(output.is_error, "{output:?}"),
        Err(error) => assert!(error.did_not_run(), "{error}"),
    }

    let told = Arc::new(Mutex::new(Vec::new()));
    let listener = told.clone();
    let long = ToolCall {
        name: "everything__trigger-long-running-operation".to_owned(),
        input: object(json!({"duration": 0.3, "steps": 3})),
        progress: ProgressSink::new(move |now| listener.lock().unwrap().push(now.progress)),
        ..ToolCall::default()
    };
    soon(host.call(long)).await.unwrap();
    assert_eq!(*told.lock().unwrap(), [1.0, 2.0, 3.0]);
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_everything_over_stdio() {
    let config = ServerConfig::stdio("everything", "node", [everything().as_str(), "stdio"]);
    let (host, status) = host(config).await;
    exercise(&host, &status).await;

    // A call that is given up leaves the server as it was.
    let mut long = ToolCall {
        name: "everything__trigger-long-running-operation".to_owned(),
        input: object(json!({"duration": 600, "steps": 2})),
        ..ToolCall::default()
    };
    long.deadline = Some(Duration::from_millis(200));
    assert!(soon(host.call(long)).await.is_err());
    let echo = call(&host, "echo", json!({"message": "still here"})).await;
    assert_eq!(echo.content, [ToolContent::text("Echo: still here")]);
    soon(host.close()).await;
    assert_eq!(host.servers()[0].pid, None);
}

/// The peer listens on `port`; ended with the returned value.
async fn serve(port: u16) -> Child {
    let mut child = Command::new("node")
        .args([everything().as_str(), "streamableHttp"])
        .env("PORT", port.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    soon(async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains("listening on port") {
                return;
            }
        }
        panic!("the peer ended");
    })
    .await;
    // It goes on writing, and must not be stopped by a full or closed pipe.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    child
}

/// One that is free now. Somebody may take it before the peer does, which fails the test loudly.
fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port()
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_everything_over_http_also_after_its_restart() {
    let port = free_port();
    let mut peer = serve(port).await;
    let url = format!("http://127.0.0.1:{port}/mcp");
    let (host, status) = host(ServerConfig::http("everything", url)).await;
    exercise(&host, &status).await;

    // The new process does not know the old session.
    peer.kill().await.unwrap();
    let _peer = serve(port).await;
    let echo = call(&host, "echo", json!({"message": "again"})).await;
    assert_eq!(echo.content, [ToolContent::text("Echo: again")]);
    soon(host.close()).await;
}
