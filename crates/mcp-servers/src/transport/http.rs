//! A bundled server on streamable HTTP.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, http::StatusCode, middleware, serve::ListenerExt};
use rmcp::transport::{
    StreamableHttpServerConfig, StreamableHttpService,
    streamable_http_server::session::never::NeverSessionManager,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::authentication::authenticate;
use crate::{catalogue, error::ServerError, options::ServerOptions, tool::server::ToolServer};

/// URL path of the MCP endpoint.
const PATH: &str = "/mcp";

/// Maximum time for completing pending responses after a shutdown request, which is the completion
/// of the future `shutdown` in [`HttpServer::serve`].
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);

/// Opens the bundled server `name` with its data, and listens on `address`. Port 0 selects any free
/// port. Clients can connect immediately, and receive responses as soon as [`HttpServer::serve`]
/// runs.
///
/// # Errors
///
/// [`ServerError::Unguarded`] if `address` is not a loopback address and `options` contain no
/// token; [`ServerError::UnknownServer`], [`ServerError::Setting`], [`ServerError::Data`],
/// [`ServerError::Memory`] and [`ServerError::Listen`].
pub async fn bind_http(
    name: &str,
    address: SocketAddr,
    options: ServerOptions,
) -> Result<HttpServer, ServerError> {
    if !address.ip().is_loopback() && options.token.is_none() {
        return Err(ServerError::Unguarded { address });
    }
    let server = catalogue::open_server(name, &options).await?;
    let failed = |source| ServerError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok(HttpServer {
        listener,
        address,
        server,
        options,
    })
}

/// A bundled server that listens for HTTP requests.
#[derive(derive_more::Debug)]
#[debug("HttpServer {{ address: {address:?}, options: {options:?}, .. }}")]
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    server: ToolServer,
    options: ServerOptions,
}

impl HttpServer {
    /// Returns the address on which the server listens, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of the MCP endpoint for clients on this machine.
    pub fn url(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            // The URL contains the loopback address, because not every system can connect to the
            // unspecified address (`0.0.0.0` or `::`).
            address.set_ip(match address {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        format!("http://{address}{PATH}")
    }

    /// Serves any number of clients until `shutdown` completes (`std::future::pending()` never
    /// completes). Then the server accepts no more connections, and pending responses have three
    /// seconds to complete.
    ///
    /// The server stores no sessions, so clients continue after a restart of the server. Requests
    /// for another host and from web pages of another origin get status 403; see
    /// [`ServerOptions::with_allowed_host`].
    ///
    /// # Errors
    ///
    /// [`ServerError::Ended`] if the listener fails.
    pub async fn serve(self, shutdown: impl Future<Output = ()> + Send) -> Result<(), ServerError> {
        // Each connection has its own task. Cancelling `stop` ends the acceptance of requests, and
        // cancelling `cancel` ends pending requests. The guards cancel both tokens when this future
        // ends or is dropped.
        let stop = CancellationToken::new();
        let cancel = CancellationToken::new();
        let _guards = (stop.clone().drop_guard(), cancel.clone().drop_guard());
        let mut router = build_router(
            self.server,
            build_http_config(self.address, &self.options, cancel.clone()),
        );
        if let Some(token) = &self.options.token {
            let layer = middleware::from_fn_with_state(token.clone(), authenticate);
            router = router.layer(layer);
        }
        let listener = self.listener.tap_io(|connection| {
            // Disables Nagle's algorithm, which would delay the second write of a small response
            // until the client acknowledges the first one, about 40 ms.
            if let Err(error) = connection.set_nodelay(true) {
                tracing::debug!(%error, "failed to set TCP_NODELAY");
            }
        });
        let server = axum::serve(listener, router)
            .with_graceful_shutdown(stop.clone().cancelled_owned())
            .into_future();
        tokio::pin!(server);
        let ended = tokio::select! {
            ended = &mut server => ended,
            () = shutdown => {
                stop.cancel();
                let ended = tokio::time::timeout(SHUTDOWN_TIMEOUT, &mut server).await;
                ended.unwrap_or_else(|_| {
                    tracing::debug!("connections were still open when the server stopped");
                    Ok(())
                })
            }
        };
        ended.map_err(|error| ServerError::Ended {
            reason: error.to_string(),
        })
    }
}

fn build_router(server: ToolServer, configuration: StreamableHttpServerConfig) -> Router {
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(NeverSessionManager::default()),
        configuration,
    );
    Router::new()
        .route_service(PATH, service)
        .fallback(|| async {
            let hint = format!("Not found. The MCP endpoint is {PATH}\n");
            (StatusCode::NOT_FOUND, hint)
        })
}

fn build_http_config(
    address: SocketAddr,
    options: &ServerOptions,
    cancel: CancellationToken,
) -> StreamableHttpServerConfig {
    let mut hosts: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
    if !address.ip().is_loopback() && !address.ip().is_unspecified() {
        hosts.push(address.ip().to_string());
    }
    let port = address.port();
    let own = hosts.iter().map(|host| allowed_origins(host, [port, port]));
    // Behind a reverse proxy, the origin of a web page has the default port of its scheme. So the
    // origins of the configured hosts may have the default ports or the port of this server.
    let allowed = options.allowed_hosts.iter();
    let allowed =
        allowed.flat_map(|host| [[port, port], DEFAULT_PORTS].map(|it| allowed_origins(host, it)));
    let origins: Vec<String> = own.chain(allowed).flatten().collect();
    hosts.extend(options.allowed_hosts.iter().cloned());
    StreamableHttpServerConfig::default()
        // Sessions are disabled: the tools have no state per session, and a restart would lose
        // sessions.
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_allowed_hosts(hosts)
        .with_allowed_origins(origins)
        .enforce_origin_validation()
        .with_cancellation_token(cancel)
}

/// Default ports of the schemes `http` and `https`.
const DEFAULT_PORTS: [u16; 2] = [80, 443];

/// Returns the origins that web pages of `host` may have: one with the scheme `http` and the first
/// port, and one with the scheme `https` and the second port. A port in `host` replaces both ports.
fn allowed_origins(host: &str, [http, https]: [u16; 2]) -> [String; 2] {
    let bare_ipv6 = host.parse::<std::net::Ipv6Addr>().is_ok();
    let has_port = !bare_ipv6
        && host
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    [("http", http), ("https", https)].map(|(scheme, port)| {
        if has_port {
            format!("{scheme}://{host}")
        } else if bare_ipv6 {
            format!("{scheme}://[{host}]:{port}")
        } else {
            format!("{scheme}://{host}:{port}")
        }
    })
}
