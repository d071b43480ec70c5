//! Shared parts of the tests: configurations, a browser, hosts, and waiting.

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

/// Returns the configuration of the MCP server. Its protocol is fixed, so that there is only one
/// handshake.
pub(crate) fn server(world: &World) -> ServerConfig {
    let mut config = ServerConfig::http("s", world.url());
    config.protocol_version = Some("2025-11-25".to_owned());
    config
}

/// Returns options without a browser: no login can happen.
pub(crate) fn unattended() -> AuthOptions {
    AuthOptions::with_store(Arc::new(MemoryStore::default()))
}

/// Returns options with a person who opens each page immediately, and the number of opened pages.
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

/// Opens a page in the background and follows all redirects.
pub(crate) fn browse(url: &str) {
    let url = url.to_owned();
    tokio::spawn(async move {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        // The redirect fails if the login failed before, because nothing listens any more.
        let _ = client.get(url).send().await;
    });
}

pub(crate) async fn login(
    config: &ServerConfig,
    options: &AuthOptions,
) -> Result<LoginInfo, AuthError> {
    soon(auth::login(config, options, browse)).await
}

/// Logs in and returns the configuration and the options.
pub(crate) async fn logged_in(world: &World) -> (ServerConfig, AuthOptions) {
    let (config, options) = (server(world), unattended());
    login(&config, &options).await.unwrap();
    (config, options)
}

/// Logs in and returns a host whose server is ready.
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

/// Starts a host and waits until its server is ready or has failed.
pub(crate) async fn host(config: &ServerConfig, auth: &AuthOptions) -> McpHost {
    let options = host_options(auth.clone());
    let host = McpHost::start(vec![config.clone()], options).unwrap();
    soon(host.wait_for_startup()).await;
    host
}

/// Starts a host and asserts that its server is ready.
pub(crate) async fn ready_host(config: &ServerConfig, auth: &AuthOptions) -> McpHost {
    let host = host(config, auth).await;
    let status = status(&host);
    assert_eq!(status.state, ServerState::Ready, "{status:#?}");
    host
}

pub(crate) fn status(host: &McpHost) -> ServerStatus {
    host.server_statuses().remove(0)
}

/// Returns the reason why the server is not ready.
pub(crate) fn reason(host: &McpHost) -> String {
    let status = status(host);
    assert_ne!(status.state, ServerState::Ready);
    status.reason.unwrap()
}

/// Restarts the server and waits until it is ready.
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

/// Calls a tool. Each tool returns its own name.
pub(crate) async fn call(host: &McpHost, tool: &str) -> Result<String, ToolCallError> {
    // Boxed, because the future is too large for the stack.
    let called = Box::pin(host.call_server_tool("s", tool, JsonObject::new()));
    let output = soon(called).await?;
    Ok(output.content.iter().map(ToolContent::as_text).collect())
}

pub(crate) async fn call_works(host: &McpHost, tool: &str) {
    assert_eq!(call(host, tool).await.unwrap(), tool);
}

/// Returns the error message of a call that fails.
pub(crate) async fn call_fails(host: &McpHost, tool: &str) -> String {
    let error = call(host, tool).await.unwrap_err();
    assert!(error.did_not_run(), "{error:?}");
    error.to_string()
}

/// Returns the value of `authorization_servers` with this issuer.
pub(crate) fn named(issuer: &str) -> serde_json::Value {
    json!([issuer])
}
