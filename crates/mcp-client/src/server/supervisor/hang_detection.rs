//! Detection of stdio servers that hang.
//!
//! An unanswered call does not prove a hang: the call may be slow, or the server may process one
//! request at a time. A server hangs if it answers no ping either, while no call runs. Its process
//! is then restarted. HTTP servers have no process to restart.

use std::future::pending;

use rmcp::model::{ClientRequest, DiscoverRequest, DiscoverRequestParams, PingRequest};
use tokio::time::timeout;

use crate::{
    options::HangDetection,
    server::{connection::Connection, state::Server},
};

/// Waits until the server hangs and returns the reason. Never returns if the server does not hang.
pub(crate) async fn wait_for_hang(
    server: &Server,
    connection: &Connection,
    settings: HangDetection,
) -> String {
    if settings.max_failed_pings == 0 || !server.config.transport.is_stdio() {
        return pending().await;
    }
    loop {
        connection.timed_out.notified().await;
        if reaches_failed_ping_limit(server, connection, settings).await {
            let (pings, limit) = (settings.max_failed_pings, settings.ping_timeout);
            return format!(
                "the server hangs: it answered neither a call nor {pings} pings within {limit:?} \
                 each"
            );
        }
    }
}

/// Sends pings until one is answered (then returns `false`) or the limit of unanswered pings is
/// reached (then returns `true`). An unanswered ping counts only if no call is running, because a
/// server that processes one request at a time may be busy. Every call ends at its deadline, so
/// this function returns.
async fn reaches_failed_ping_limit(
    server: &Server,
    connection: &Connection,
    settings: HangDetection,
) -> bool {
    let mut failed = 0;
    while failed < settings.max_failed_pings {
        let was_idle = server.is_idle();
        // Any answer, even an error, shows that the server does not hang. The end of the connection
        // also ends the check.
        let ping = connection.send_request(ping_request(connection), None);
        if timeout(settings.ping_timeout, ping).await.is_ok() {
            return false;
        }
        if was_idle && server.is_idle() {
            failed += 1;
            tracing::debug!(
                server = server.config.name,
                failed,
                "a ping was not answered"
            );
        }
    }
    true
}

/// Returns a `ping` request, or `server/discover` for version 2026-07-28, which has no `ping`.
pub(crate) fn ping_request(connection: &Connection) -> ClientRequest {
    if connection.is_legacy_version() {
        return ClientRequest::PingRequest(PingRequest::default());
    }
    let discover = DiscoverRequest::new(DiscoverRequestParams::default());
    ClientRequest::DiscoverRequest(discover)
}
