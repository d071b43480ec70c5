//! Updates of resources that the application watches.
//!
//! A server of 2025-11-25 or older has one subscription per resource (`resources/subscribe`), which
//! all watchers share. A server of 2026-07-28 has one stream per watcher (`subscriptions/listen`).
//! The client subscribes again after a reconnection.

#![allow(
    deprecated,
    reason = "servers of 2025-11-25 and older use `resources/subscribe`"
)]

use std::{pin::Pin, sync::Arc, time::Duration};

use futures_util::{Stream, stream};
use rmcp::{
    model::{
        ClientRequest, ServerNotification, SubscribeRequest, SubscribeRequestParams,
        SubscriptionFilter, UnsubscribeRequest, UnsubscribeRequestParams,
    },
    service::{ServiceError, Subscription},
};
use switchboard_domain::ToolCallError;
use tokio::{
    runtime::Handle,
    sync::{
        broadcast::{self, error::RecvError},
        mpsc,
    },
    time::{sleep, timeout},
};

use crate::{
    calls::failure::RequestFailure,
    features::feature_client::{Capability, FeatureClient, FeatureError},
    host::McpHost,
    primitives::backoff::Backoff,
    server::{connection::Connection, state::Server},
};

/// Number of updates that are buffered for a slow reader of [`ResourceUpdates`]. Further updates
/// are dropped, because a buffered update already makes the reader read the resource again.
const CHANNEL_CAPACITY: usize = 64;
/// Name of the subscribe request in errors. The actual method is `resources/subscribe` or
/// `subscriptions/listen`.
const SUBSCRIBE: &str = "subscribe";
/// Time limit of an unsubscribe request, whose result is ignored.
const UNSUBSCRIBE_TIMEOUT: Duration = Duration::from_millis(500);
/// Delay before an ended subscription is renewed, without jitter. It doubles after each failure.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum delay before an ended subscription is renewed, without jitter.
const SLOW_RETRY_INTERVAL: Duration = Duration::from_mins(10);

/// Notification that a watched resource may have changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceUpdate {
    /// Configured name of the server.
    pub server: String,
    /// URI of the changed resource: the watched resource or one below it.
    pub uri: String,
}

/// Stream of updates of a watched resource. Dropping it ends the subscription. The stream ends when
/// the host is closed, or when the server stops supporting subscriptions.
pub type ResourceUpdates = Pin<Box<dyn Stream<Item = ResourceUpdate> + Send>>;

/// Method that watches a resource for changes.
impl McpHost {
    /// Watches a resource. The subscription is active when this method returns. An update means
    /// that the resource may have changed. A reconnection also emits an update, because the server
    /// may have changed the resource in the meantime.
    pub async fn watch_resource(
        &self,
        server: &str,
        uri: &str,
    ) -> Result<ResourceUpdates, FeatureError> {
        let client = FeatureClient::new(self, server)?;
        let mut watch = ResourceWatch {
            server: client.server.clone(),
            uri: uri.to_owned(),
            time_limit: client.deadline.idle_limit(),
            connection: client.connect(Capability::SUBSCRIPTIONS).await?,
            source: None,
        };
        watch.source = Some(watch.open_subscription().await?);
        let (updates, receiver) = mpsc::channel(CHANNEL_CAPACITY);
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            let forward = async {
                while let Some(uri) = watch.next().await {
                    let server = watch.server.config.name.clone();
                    // If the channel is full, the unread updates suffice, so this one is dropped.
                    let _ = updates.try_send(ResourceUpdate { server, uri });
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = updates.closed() => {}
                () = forward => {}
            }
        });
        Ok(Box::pin(stream::unfold(receiver, |mut updates| async {
            let next = updates.recv().await?;
            Some((next, updates))
        })))
    }
}

/// Subscription to a resource for one caller of [`McpHost::watch_resource`] (a watcher). The
/// subscription is renewed when it breaks. Dropping it unsubscribes.
struct ResourceWatch {
    server: Arc<Server>,
    uri: String,
    /// Time limit of a subscribe request.
    time_limit: Duration,
    connection: Arc<Connection>,
    source: Option<UpdateSource>,
}

enum UpdateSource {
    /// Stream of a subscription that only this watcher uses. For protocol version 2026-07-28.
    Stream(Box<Subscription>),
    /// Receiver of the server's resource notifications, and a share of the subscription that all
    /// watchers of the resource use. For protocol versions up to 2025-11-25.
    Notifications(
        broadcast::Receiver<String>,
        #[expect(dead_code)] SharedSubscription,
    ),
}

impl ResourceWatch {
    /// Returns the URI of the next changed resource. Subscribes again if the subscription ended.
    /// Returns `None` if the server is stopped or does not support subscriptions after a
    /// reconnection.
    async fn next(&mut self) -> Option<String> {
        let mut backoff = Backoff::new(RETRY_INTERVAL, SLOW_RETRY_INTERVAL);
        if let Some(source) = &mut self.source {
            tokio::select! {
                biased;
                _ = self.connection.wait_until_ended() => {}
                uri = source.next(&self.uri) => if uri.is_some() {
                    return uri;
                },
            }
            self.source = None;
        }
        loop {
            if !self.connection.has_ended() {
                sleep(backoff.next_delay()).await;
            }
            if self.connection.has_ended() {
                self.connection = self.server.next_connection(&self.connection).await?;
            }
            match self.open_subscription().await {
                Ok(source) => {
                    self.source = Some(source);
                    // The resource may have changed while there was no subscription.
                    return Some(self.uri.clone());
                }
                Err(error @ FeatureError::Unsupported { .. }) => {
                    tracing::warn!(%error, uri = self.uri, "can no longer watch a resource");
                    return None;
                }
                Err(error) => tracing::debug!(%error, uri = self.uri, "failed to subscribe"),
            }
        }
    }

    async fn open_subscription(&self) -> Result<UpdateSource, FeatureError> {
        Capability::SUBSCRIPTIONS.check_declared_by_server(&self.server, &self.connection)?;
        let opened = async {
            tokio::select! {
                biased;
                opened = self.subscribe() => opened,
                reason = self.connection.wait_until_ended() => Err(RequestFailure::Broken(reason)),
            }
        };
        let error = match timeout(self.time_limit, opened).await {
            Ok(Ok(source)) => return Ok(source),
            Ok(Err(failure)) => failure.into_call_error(&self.server, SUBSCRIBE),
            Err(_) => ToolCallError::Timeout {
                server: self.server.config.name.clone(),
                tool: SUBSCRIBE.to_owned(),
                after: self.time_limit,
            },
        };
        Err(Capability::SUBSCRIPTIONS.to_feature_error(&self.server, error))
    }

    async fn subscribe(&self) -> Result<UpdateSource, RequestFailure> {
        let connection = &self.connection;
        let error = if connection.is_legacy_version() {
            // The receiver is created before the subscribe request, so that no update is missed.
            let updates = self.server.resource_updates.subscribe();
            match SharedSubscription::new(connection, &self.uri).await {
                Ok(registration) => return Ok(UpdateSource::Notifications(updates, registration)),
                Err(error) => error,
            }
        } else {
            let filter = SubscriptionFilter::builder().resource_subscription(&self.uri);
            match connection.peer.listen(filter.build()).await {
                Ok(subscription) => {
                    let accepted = subscription.acknowledged().resource_subscriptions.as_ref();
                    if accepted.is_some_and(|uris| uris.contains(&self.uri)) {
                        return Ok(UpdateSource::Stream(Box::new(subscription)));
                    }
                    let reason = format!("did not accept the subscription to `{}`", self.uri);
                    return Err(RequestFailure::InvalidAnswer(reason));
                }
                Err(error) => error,
            }
        };
        Err(RequestFailure::from_service_error(&self.server, connection, error).await)
    }
}

/// Share of a subscription to a resource. In protocol versions up to 2025-11-25, all watchers of a
/// resource share one subscription per connection. Dropping the last share unsubscribes.
struct SharedSubscription {
    connection: Arc<Connection>,
    uri: String,
}

impl SharedSubscription {
    async fn new(connection: &Arc<Connection>, uri: &str) -> Result<Self, ServiceError> {
        let mut watchers = connection.watchers.lock().await;
        if !watchers.contains_key(uri) {
            let params = SubscribeRequestParams::new(uri);
            let request = ClientRequest::SubscribeRequest(SubscribeRequest::new(params));
            connection.send_request(request, None).await?;
        }
        *watchers.entry(uri.to_owned()).or_default() += 1;
        Ok(Self {
            connection: Arc::clone(connection),
            uri: uri.to_owned(),
        })
    }
}

impl Drop for SharedSubscription {
    fn drop(&mut self) {
        let (connection, uri) = (Arc::clone(&self.connection), std::mem::take(&mut self.uri));
        // The token keeps the connection open until the unsubscribe request has ended.
        let token = connection.requests.token();
        let unsubscribe = async move {
            let mut watchers = connection.watchers.lock().await;
            let count = watchers.entry(uri.clone()).or_default();
            *count = count.saturating_sub(1);
            if *count == 0 {
                watchers.remove(&uri);
                let params = UnsubscribeRequestParams::new(uri);
                let request = ClientRequest::UnsubscribeRequest(UnsubscribeRequest::new(params));
                let sent = connection.send_request(request, None);
                let _ = timeout(UNSUBSCRIBE_TIMEOUT, sent).await;
            }
            drop(token);
        };
        if let Ok(runtime) = Handle::try_current()
            && !self.connection.has_ended()
        {
            runtime.spawn(unsubscribe);
        }
    }
}

impl UpdateSource {
    /// Waits for the next change of the watched resource or of a resource below it. Returns the URI
    /// of the changed resource, or `None` if the subscription has ended.
    async fn next(&mut self, watched: &str) -> Option<String> {
        loop {
            match self {
                UpdateSource::Stream(subscription) => match subscription.next().await {
                    Ok(Some(ServerNotification::ResourceUpdatedNotification(updated))) => {
                        return Some(updated.params.uri);
                    }
                    Ok(Some(_)) => {}
                    Ok(None) | Err(_) => return None,
                },
                UpdateSource::Notifications(updates, _) => match updates.recv().await {
                    Ok(uri) if is_same_or_sub_resource(&uri, watched) => return Some(uri),
                    Ok(_) => {}
                    // Updates were lost, possibly of the watched resource, so it counts as changed.
                    Err(RecvError::Lagged(_)) => return Some(watched.to_owned()),
                    Err(RecvError::Closed) => return None,
                },
            }
        }
    }
}

/// Returns whether `uri` is the watched resource or below it. A server may report a changed
/// sub-resource of a resource that the client subscribed to (MCP 2025-11-25).
fn is_same_or_sub_resource(uri: &str, watched: &str) -> bool {
    uri.strip_prefix(watched).is_some_and(|rest| {
        rest.is_empty() || watched.ends_with('/') || rest.starts_with(['/', '#', '?'])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_of_sub_resources_count() {
        for (uri, watched, expected) in [
            ("f:///a", "f:///a", true),
            ("f:///a/b", "f:///a", true),
            ("f:///a/b", "f:///a/", true),
            ("f:///a#top", "f:///a", true),
            ("f:///ab", "f:///a", false),
            ("f:///", "f:///a", false),
        ] {
            assert_eq!(
                is_same_or_sub_resource(uri, watched),
                expected,
                "{uri} below {watched}"
            );
        }
    }
}
