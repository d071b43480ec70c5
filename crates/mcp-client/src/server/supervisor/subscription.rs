//! The subscription to list changes of a server of version 2026-07-28 (`subscriptions/listen`).
//! Older servers send list changes without a subscription.

use std::time::Duration;

use rmcp::{
    model::{ServerNotification, ServerPeerInfo, SubscriptionFilter},
    service::Subscription,
};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{
    primitives::backoff::Backoff,
    server::{
        connection::Connection, list_cache::ListKind, state::Server,
        supervisor::hang_detection::ping_request,
    },
};

/// Delay before a broken subscription is renewed, without jitter. It doubles after each failure.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum delay before a broken subscription is renewed, without jitter.
const SLOW_RETRY_INTERVAL: Duration = Duration::from_mins(10);

/// Subscribes to list changes (tools, prompts, resources) that the server supports, and handles
/// them. Returns after `unsubscribe` was signalled and the server has ended the subscription.
pub(crate) async fn subscribe(
    server: &Server,
    connection: &Connection,
    unsubscribe: &CancellationToken,
) {
    let peer_info = connection.peer.peer_info();
    let Some(filter) = peer_info.and_then(|info| supported_list_changes(&info)) else {
        return unsubscribe.cancelled().await;
    };
    let mut was_interrupted = false;
    let mut backoff = Backoff::new(RETRY_INTERVAL, SLOW_RETRY_INTERVAL);
    while !unsubscribe.is_cancelled() {
        // The `listen` future must not be dropped. Some servers wait for the end of the
        // subscription before they exit, and a dropped request may not be cancelled before the
        // connection is closed.
        match connection.peer.listen(filter.clone()).await {
            Ok(subscription) => {
                if was_interrupted {
                    // Changes during the interruption of the subscription were missed, so the tools
                    // are listed again.
                    server.relist_requested.notify_one();
                    server.list_cache.clear();
                }
                backoff = Backoff::new(RETRY_INTERVAL, SLOW_RETRY_INTERVAL);
                handle_list_changes(server, connection, subscription, unsubscribe).await;
            }
            Err(error) => {
                tracing::debug!(server = server.config.name, %error, "failed to subscribe");
            }
        }
        was_interrupted = true;
        tokio::select! {
            () = unsubscribe.cancelled() => {}
            () = sleep(backoff.next_delay()) => {}
        }
    }
}

/// Returns the list changes to subscribe to: all that the server supports. Returns `None` for a
/// server of a version before 2026-07-28, and for a server that supports none.
fn supported_list_changes(info: &ServerPeerInfo) -> Option<SubscriptionFilter> {
    if info.protocol_version.has_initialize() {
        return None;
    }
    let all = SubscriptionFilter::builder()
        .tools_list_changed()
        .prompts_list_changed()
        .resources_list_changed();
    let supported = all.build().supported_by(&info.capabilities);
    (supported != SubscriptionFilter::new()).then_some(supported)
}

async fn handle_list_changes(
    server: &Server,
    connection: &Connection,
    mut subscription: Subscription,
    unsubscribe: &CancellationToken,
) {
    use ServerNotification::{PromptListChangedNotification, ResourceListChangedNotification};
    loop {
        tokio::select! {
            biased;
            () = unsubscribe.cancelled() => {
                let _ = subscription.cancel().await;
                // The answer to a ping shows that the server has ended the subscription. Some
                // servers cannot end it after their input is closed, and then do not exit.
                if server.config.transport.is_stdio() {
                    let _ = connection.send_request(ping_request(connection), None).await;
                }
                return;
            }
            next = subscription.next() => match next {
                Ok(Some(PromptListChangedNotification(_))) => {
                    server.list_cache.mark_list_changed(ListKind::Prompts);
                }
                Ok(Some(ResourceListChangedNotification(_))) => {
                    server.list_cache.mark_list_changed(ListKind::Resources);
                }
                Ok(Some(_)) => {
                    server.list_cache.mark_list_changed(ListKind::Tools);
                    server.relist_requested.notify_one();
                }
                Ok(None) | Err(_) => return,
            },
        }
    }
}
