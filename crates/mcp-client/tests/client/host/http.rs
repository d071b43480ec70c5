//! The Streamable HTTP transport on loopback.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Json, Router,
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::post,
};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use serde_json::{Value, json};
use switchboard_domain::{ToolCallError, ToolHost};
use switchboard_mcp_client::{ServerConfig, ServerState, ServerTransport};
use tokio::{
    net::TcpListener,
    runtime::{self, Runtime},
    sync::oneshot,
    task::JoinHandle,
};

use crate::{host::good::Good, host::stage::*};

/// An HTTP server that ends when this value is dropped. It has its own runtime, because only the
/// end of a runtime ends the tasks of its connections.
pub(crate) struct Served {
    address: SocketAddr,
    accepting: JoinHandle<()>,
    runtime: Option<Runtime>,
}

impl Served {
    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Ends the server and all its connections.
    async fn end(mut self) -> SocketAddr {
        self.accepting.abort();
        let _ = (&mut self.accepting).await;
        let runtime = self.runtime.take().unwrap();
        let ended = tokio::task::spawn_blocking(move || drop(runtime));
        soon(ended).await.unwrap();
        self.address
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

pub(crate) async fn serve(app: Router, address: Option<SocketAddr>) -> Served {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let (told, listening) = oneshot::channel();
    let accepting = runtime.spawn(async move {
        let listener = TcpListener::bind(address.unwrap_or(any)).await.unwrap();
        told.send(listener.local_addr().unwrap()).unwrap();
        axum::serve(listener, app).await.unwrap();
    });
    Served {
        address: listening.await.unwrap(),
        accepting,
        runtime: Some(runtime),
    }
}

fn good(versions: &str, config: StreamableHttpServerConfig) -> Router {
    let versions = versions.strip_prefix("good ").unwrap();
    let server = Good::new(versions);
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    Router::new().nest_service("/mcp", service)
}

async fn serve_good(versions: &str) -> Served {
    serve(good(versions, StreamableHttpServerConfig::default()), None).await
}

#[tokio::test]
async fn servers_of_either_era_answer() {
    for (versions, spoken) in [
        (BOTH_ERAS, "2026-07-28"),
        (NEWER_ERA, "2026-07-28"),
        (OLDER_ERA, "2025-11-25"),
    ] {
        for json_response in [false, true] {
            let config = StreamableHttpServerConfig::default()
                .with_json_response(json_response)
                .with_legacy_session_mode(!json_response);
            let served = serve(good(versions, config), None).await;
            let host = host([ServerConfig::http("s", served.url())]).await;
            let status = status(&host, "s");
            assert_eq!(status.state, ServerState::Ready, "{status:#?}");
            assert_eq!(status.protocol_version.as_deref(), Some(spoken));
            assert_eq!(status.pid, None);
            assert_eq!(text(&host, "s__echo").await, "{}");
            let refused = call(&host, "s__refuse", json!({})).await.unwrap_err();
            assert!(matches!(
                refused,
                ToolCallError::Refused { code: -32602, .. }
            ));
            soon(host.close()).await;
        }
    }
}

#[tokio::test]
async fn the_server_hears_of_a_call_that_is_dropped() {
    for versions in [OLDER_ERA, NEWER_ERA] {
        let served = serve_good(versions).await;
        let host = host([ServerConfig::http("s", served.url())]).await;
        let mut late = tool_call("s__endless", json!({}));
        late.deadline = Some(Duration::from_millis(300));
        let error = soon(host.call_tool(late)).await.unwrap_err();
        assert!(matches!(error, ToolCallError::Timeout { .. }), "{error:?}");
        assert_eq!(
            text(&host, "s__await_cancellation").await,
            "seen",
            "{versions}"
        );
    }
}

#[tokio::test]
async fn a_server_that_was_restarted_is_used_again() {
    for versions in [OLDER_ERA, NEWER_ERA] {
        let served = serve_good(versions).await;
        let host = host([ServerConfig::http("s", served.url())]).await;
        assert_eq!(text(&host, "s__echo").await, "{}");
        let address = served.end().await;
        let _served = serve(
            good(versions, StreamableHttpServerConfig::default()),
            Some(address),
        )
        .await;
        assert_eq!(text(&host, "s__echo").await, "{}", "{versions}");
    }
}

#[tokio::test]
async fn a_server_that_is_gone_is_said_to_be() {
    let served = serve_good(BOTH_ERAS).await;
    let config = ServerConfig::http("s", served.url());
    let host = host([config.clone()]).await;
    assert_ready(&host, "s");
    served.end().await;
    let mut call = tool_call("s__echo", json!({}));
    call.deadline = Some(Duration::from_millis(300));
    let error = soon(host.call_tool(call)).await.unwrap_err();
    assert!(error.did_not_run(), "{error:?}");
    assert!(error.to_string().contains("refused"), "{error}");

    let host = crate::host::stage::host([config]).await;
    let status = status(&host, "s");
    assert_eq!(status.state, ServerState::Failed);
    assert!(status.reason.unwrap().contains("refused"));
}

/// The counts of a hand-written server.
#[derive(Clone, Default)]
struct Seen {
    sessions: Arc<AtomicUsize>,
    calls: Arc<AtomicUsize>,
}

/// Serves with the older protocol. The first tool call ends the first session. A request with an
/// unknown session gets status 400 and an error without an id, as from many servers.
async fn forgetful(
    State(seen): State<Seen>,
    headers: HeaderMap,
    Json(message): Json<Value>,
) -> Response {
    let id = &message["id"];
    let result = |result: Value| Json(json!({"jsonrpc": "2.0", "id": id, "result": result}));
    let unread = || {
        let error = json!({"code": -32000, "message": "Bad Request: No valid session ID"});
        let body = Json(json!({"jsonrpc": "2.0", "id": null, "error": error}));
        (StatusCode::BAD_REQUEST, body).into_response()
    };
    match message["method"].as_str().unwrap_or_default() {
        "initialize" => {
            let session = seen.sessions.fetch_add(1, Ordering::SeqCst) + 1;
            let result = result(json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "forgetful", "version": "0"},
            }));
            ([("mcp-session-id", session.to_string())], result).into_response()
        }
        "tools/list" => {
            let tool = json!({"name": "work", "inputSchema": {"type": "object"}});
            result(json!({"tools": [tool]})).into_response()
        }
        "tools/call" if headers["mcp-session-id"] == "1" => unread(),
        "tools/call" => {
            seen.calls.fetch_add(1, Ordering::SeqCst);
            result(json!({"content": [{"type": "text", "text": "done"}]})).into_response()
        }
        "server/discover" => unread(),
        _ => StatusCode::ACCEPTED.into_response(),
    }
}

#[tokio::test]
async fn a_forgotten_session_is_replaced_and_the_call_made_again() {
    let seen = Seen::default();
    let route = post(forgetful).with_state(seen.clone());
    let served = serve(Router::new().route("/mcp", route), None).await;
    let host = host([ServerConfig::http("s", served.url())]).await;
    assert_ready(&host, "s");
    assert_eq!(text(&host, "s__work").await, "done");
    assert_eq!(seen.sessions.load(Ordering::SeqCst), 2);
    assert_eq!(seen.calls.load(Ordering::SeqCst), 1);
}

/// Allows only requests with the right bearer token.
async fn guard(request: Request, next: Next) -> Response {
    let given = request.headers().get(header::AUTHORIZATION);
    if given.is_some_and(|given| given == "Bearer tok-5f0c1a77d2") {
        return next.run(request).await;
    }
    let challenge = r#"Bearer realm="crm""#;
    (
        StatusCode::UNAUTHORIZED,
        [(header::WWW_AUTHENTICATE, challenge)],
    )
        .into_response()
}

#[tokio::test]
async fn configured_headers_are_sent_and_a_server_that_wants_them_is_said_to() {
    let app = good(BOTH_ERAS, StreamableHttpServerConfig::default());
    let served = serve(app.layer(middleware::from_fn(guard)), None).await;
    let mut knows = ServerConfig::http("knows", served.url());
    let mut wrong = ServerConfig::http("wrong", served.url());
    for (config, word) in [
        (&mut knows, "tok-5f0c1a77d2"),
        (&mut wrong, "tok-other-word"),
    ] {
        if let ServerTransport::StreamableHttp { headers, .. } = &mut config.transport {
            headers.push(("Authorization".to_owned(), format!("Bearer {word}").into()));
        }
    }
    let without = ServerConfig::http("without", served.url());
    let host = host([knows, wrong, without]).await;
    assert_eq!(text(&host, "knows__echo").await, "{}");
    let advice = "authorization required (Bearer realm=\"crm\"): set `authorization` or `headers` \
                  in the server's configuration";
    let expected = [format!("wrong: {advice}"), format!("without: {advice}")];
    assert_eq!(problems(&host).await, expected);
    let everything = format!("{host:?}");
    assert!(!everything.contains("tok-"), "{everything}");
}

#[tokio::test]
async fn an_address_that_is_no_mcp_server_is_said_to_be() {
    let route = post(|| async { (StatusCode::NOT_FOUND, "nothing here") });
    let served = serve(Router::new().route("/mcp", route), None).await;
    let host = host([ServerConfig::http("s", served.url())]).await;
    let status = status(&host, "s");
    assert_eq!(status.state, ServerState::Failed);
    let reason = status.reason.unwrap();
    assert!(reason.contains("404"), "{reason}");
}

#[tokio::test]
async fn a_connection_that_breaks_in_a_call_ends_it() {
    let served = serve_good(NEWER_ERA).await;
    let host = host([ServerConfig::http("s", served.url())]).await;
    let mut endless = std::pin::pin!(host.call_tool(tool_call("s__endless", json!({}))));
    tokio::select! {
        biased;
        answer = &mut endless => panic!("{answer:?}"),
        output = call(&host, "s__echo", json!({})) => assert!(output.is_ok()),
    }
    served.end().await;
    let error = soon(endless).await.unwrap_err();
    assert!(matches!(error, ToolCallError::Broken { .. }), "{error:?}");
}
