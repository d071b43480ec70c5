//! What the tests share: configurations, a browser, hosts, and waiting.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::StreamExt;
use serde_json::json;
use switchboard_domain::{JsonObject, ToolCallError, ToolContent, ToolHost};
use switchboard_mcp_client::{
    HostOptions, McpHost, ServerConfig, ServerState, ServerStatus,
    auth::{self, AuthError, AuthOptions, LoginInfo, MemoryStore, OnUrl},
};

use crate::auth::world::World;

pub(crate) use crate::shared::soon;

/// The MCP server of a world, of the older era so that there is one handshake only.
pub(crate) fn server(world: &World) -> ServerConfig {
    let mut config = ServerConfig::http("s", world.url());
    config.protocol_version = Some("2025-11-25".to_owned());
    config
}

/// Nobody logs in.
pub(crate) fn unattended() -> AuthOptions {
    AuthOptions::with_store(Arc::new(MemoryStore::default()))
}

/// A person who opens each page at once. The second value counts them.
pub(crate) fn attended() -> (AuthOptions, Arc<AtomicUsize>) {
    let opened = Arc::new(AtomicUsize::new(0));
    let counted = opened.clone();
    let mut options = unattended();
    let on_url: OnUrl = Arc::new(move |url| {
        counted.fetch_add(1, Ordering::SeqCst);
        browse(url);
    });
    options.on_url = Some(on_url);
    (options, opened)
}

/// Opens a page in the background and follows it to its end.
pub(crate) fn browse(url: &str) {
    let url = url.to_owned();
    tokio::spawn(async move {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        // Nobody may listen any more, if the login failed.
        let _ = client.get(url).send().await;
    });
}

pub(crate) async fn login(
    config: &ServerConfig,
    options: &AuthOptions,
) -> Result<LoginInfo, AuthError> {
    soon(auth::login(config, options, browse)).await
}

/// Configuration and options after a login.
pub(crate) async fn logged_in(world: &World) -> (ServerConfig, AuthOptions) {
    let (config, options) = (server(world), unattended());
    login(&config, &options).await.unwrap();
    (config, options)
}

/// A host that uses the tokens of a login, and whose server is ready.
pub(crate) async fn logged_in_host(world: &World) -> McpHost {
    let (config, options) = logged_in(world).await;
    ready_host(&config, &options).await
}

pub(crate) fn host_options(auth: AuthOptions) -> HostOptions {
    HostOptions {
        auth,
        restart_delay: Duration::from_millis(10),
        ..HostOptions::default()
    }
}

/// A host whose server is ready or failed.
pub(crate) async fn host(config: &ServerConfig, auth: &AuthOptions) -> McpHost {
    let options = host_options(auth.clone());
    let host = McpHost::start(vec![config.clone()], options).unwrap();
    soon(host.wait_for_startup()).await;
    host
}

/// One whose server is ready.
pub(crate) async fn ready_host(config: &ServerConfig, auth: &AuthOptions) -> McpHost {
    let host = host(config, auth).await;
    let status = status(&host);
    assert_eq!(status.state, ServerState::Ready, "{status:#?}");
    host
}

pub(crate) fn status(host: &McpHost) -> ServerStatus {
    host.server_statuses().remove(0)
}

/// Why the server of a host is not ready.
pub(crate) fn reason(host: &McpHost) -> String {
    let status = status(host);
    assert_ne!(status.state, ServerState::Ready);
    status.reason.unwrap()
}

/// Starts the server again, and waits until it is ready.
pub(crate) async fn start_again(host: &McpHost) {
    let mut changes = host.watch_changes();
    assert!(host.restart_server("s"));
    soon(async {
        while status(host).state != ServerState::Ready {
            changes.next().await.unwrap();
        }
    })
    .await;
}

/// Calls a tool, which answers with its name.
pub(crate) async fn call(host: &McpHost, tool: &str) -> Result<String, ToolCallError> {
    // The future is larger than the lints like on the stack.
    let called = Box::pin(host.call_server_tool("s", tool, JsonObject::new()));
    let output = soon(called).await?;
    Ok(output.content.iter().map(ToolContent::as_text).collect())
}

pub(crate) async fn call_works(host: &McpHost, tool: &str) {
    assert_eq!(call(host, tool).await.unwrap(), tool);
}

/// The reason of a call that does not work.
pub(crate) async fn call_fails(host: &McpHost, tool: &str) -> String {
    let error = call(host, tool).await.unwrap_err();
    assert!(error.did_not_run(), "{error:?}");
    error.to_string()
}

/// Metadata that name this authorization server.
pub(crate) fn named(issuer: &str) -> serde_json::Value {
    json!([issuer])
}
