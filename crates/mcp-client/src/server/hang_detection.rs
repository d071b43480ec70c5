//! Finding out whether a server that does not answer hangs.
//!
//! A call without an answer in time says little: the tool may be slow, or the server may do one thing at a
//! time. One that answers no ping either, again and again while nothing else is asked of it, hangs: then
//! its process is ended and started again (`life.rs`). Behind HTTP there is nothing that we could end.

use std::{future::pending, time::Duration};

use rmcp::model::{ClientRequest, DiscoverRequest, DiscoverRequestParams, PingRequest};
use tokio::time::timeout;

use crate::{
    features::request::send,
    host::Probing,
    server::state::{Link, Server},
};

/// Waits until the server is known to hang, and says how that is known. Never ends if it does not.
pub(crate) async fn hangs(server: &Server, link: &Link, probing: Probing) -> String {
    if probing.failures == 0 || !server.config.transport.is_stdio() {
        return pending().await;
    }
    loop {
        link.silence.notified().await;
        if is_silent(server, link, probing).await {
            let Probing { patience, failures } = probing;
            return format!(
                "it hangs: a call got no answer, and {failures} pings none within {patience:?}"
            );
        }
    }
}

/// Whether no ping is answered. Those count that are made while no call is under way: a server that does one
/// thing at a time may be busy with it, and that call has an end of its own.
async fn is_silent(server: &Server, link: &Link, probing: Probing) -> bool {
    let mut unanswered = 0;
    while unanswered < probing.failures {
        let was_idle = server.is_idle();
        // Any answer will do, also that it knows no pings; and a broken connection is no silence.
        if timeout(probing.patience, send(link, ping(link)))
            .await
            .is_ok()
        {
            return false;
        }
        if was_idle && server.is_idle() {
            unanswered += 1;
            tracing::debug!(
                server = server.config.name,
                unanswered,
                "no answer to a ping"
            );
        }
    }
    true
}

/// What every server answers and costs it nothing. Since 2026-07-28 there is no `ping`.
pub(crate) fn ping(link: &Link) -> ClientRequest {
    let about = link.peer.peer_info();
    if about.is_some_and(|about| !about.protocol_version.has_initialize()) {
        let discover = DiscoverRequest::new(DiscoverRequestParams::default());
        return ClientRequest::DiscoverRequest(discover);
    }
    ClientRequest::PingRequest(PingRequest::default())
}

/// When a server that answers nothing is taken to hang.
impl Default for Probing {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(5),
            failures: 3,
        }
    }
}
