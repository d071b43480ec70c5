//! Updates of watched resources.
//!
//! A server of 2025-11-25 or older has one subscription per resource (`resources/subscribe`), which
//! all watchers share. A server of 2026-07-28 has one stream per watcher (`subscriptions/listen`).
//! A subscription is renewed on a new connection.

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
    sync::{
        broadcast::{self, error::RecvError},
        mpsc,
    },
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::task_tracker::TaskTrackerToken};

use crate::{
    calls::failure::RequestFailure,
    features::request::{Capability, FeatureClient, FeatureError},
    host::McpHost,
    primitives::backoff::Backoff,
    server::{connection::Connection, state::Server},
};

/// Number of updates that are buffered for a slow watcher. Further updates are dropped: the watcher
/// reads the resource after the buffered ones anyway.
const CHANNEL_CAPACITY: usize = 64;
/// Name of the subscribe request in errors. The actual method is `resources/subscribe` or
/// `subscriptions/listen`.
const SUBSCRIBE: &str = "subscribe";
/// Time limit to end a subscription.
const UNSUBSCRIBE_TIMEOUT: Duration = Duration::from_millis(500);
/// Nominal delay before an ended subscription is renewed. The delay doubles after each failure.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum nominal delay before an ended subscription is renewed.
const SLOW_RETRY_INTERVAL: Duration = Duration::from_mins(10);

/// Notification that a watched resource has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceUpdate {
    /// Configured name of the server.
    pub server: String,
    /// URI of the watched resource, or of a resource below it.
    pub uri: String,
}

/// Stream of changes to a watched resource. Dropping the stream ends the subscription. The stream
/// ends when the host is closed, or when the server no longer supports subscriptions.
pub type ResourceUpdates = Pin<Box<dyn Stream<Item = ResourceUpdate> + Send>>;

/// Methods for updates of resources.
impl McpHost {
    /// Watches a resource. The subscription is active when this method returns. An update means
    /// that the resource may have changed. A reconnection also emits an update, because changes may
    /// have been missed.
    pub async fn watch_resource(
        &self,
        server: &str,
        uri: &str,
    ) -> Result<ResourceUpdates, FeatureError> {
        let client = FeatureClient::new(self, server)?;
        let connection = client.connect(Capability::Subscriptions).await?;
        let (updates, receiver) = mpsc::channel(CHANNEL_CAPACITY);
        let server = client.server.clone();
        let watcher = Watcher {
            uri: uri.to_owned(),
            time_limit: server
                .config
                .call_timeout
                .unwrap_or(self.options.call_timeout),
            server,
            updates,
            stop: self.stop.clone(),
        };
        let source = watcher.open(&connection).await?;
        self.tasks.spawn(watcher.run(connection, source));
        Ok(Box::pin(stream::unfold(receiver, |mut updates| async {
            let next = updates.recv().await?;
            Some((next, updates))
        })))
    }
}

/// Task that watches one resource and publishes its changes.
struct Watcher {
    server: Arc<Server>,
    uri: String,
    /// Time limit of a subscribe or unsubscribe request.
    time_limit: Duration,
    updates: mpsc::Sender<ResourceUpdate>,
    stop: CancellationToken,
}

/// Update source of one connection. The token keeps the connection open until the subscription has
/// ended.
type OpenSource = (Source, TaskTrackerToken);

enum Source {
    /// Subscription stream of protocol version 2026-07-28.
    Stream(Box<Subscription>),
    /// Notifications of protocol versions up to 2025-11-25.
    Notifications(broadcast::Receiver<String>),
}

impl Watcher {
    async fn run(self, mut connection: Arc<Connection>, source: OpenSource) {
        let new_backoff = || Backoff::new(RETRY_INTERVAL, SLOW_RETRY_INTERVAL);
        let mut backoff = new_backoff();
        let mut opened = Ok(source);
        loop {
            match opened {
                Ok(source) => {
                    if self.forward(&connection, source).await.is_none() {
                        return;
                    }
                    backoff = new_backoff();
                }
                Err(error @ FeatureError::Unsupported { .. }) => {
                    tracing::warn!(%error, uri = self.uri, "cannot watch a resource any more");
                    return;
                }
                Err(error) => tracing::debug!(%error, uri = self.uri, "no subscription"),
            }
            let next = async {
                if !connection.has_ended() {
                    sleep(backoff.next_delay()).await;
                }
                if connection.has_ended() {
                    return self.server.next_connection(&connection).await;
                }
                Some(connection.clone())
            };
            let Some(Some(next)) = self.while_watched(next).await else {
                return;
            };
            connection = next;
            opened = self.open(&connection).await;
            if opened.is_ok() {
                // The resource may have changed while the connection was interrupted, so an update
                // is emitted.
                self.publish(self.uri.clone());
            }
        }
    }

    /// Waits for `future`. Returns `None` if the watcher is dropped or the host is closed first.
    async fn while_watched<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => None,
            () = self.updates.closed() => None,
            output = future => Some(output),
        }
    }

    /// Forwards updates until the source or the connection ends. Returns `None` if the watcher is
    /// dropped or the host is closed first.
    async fn forward(
        &self,
        connection: &Connection,
        (mut source, _token): OpenSource,
    ) -> Option<()> {
        let forwarding = async {
            while let Some(uri) = source.next(&self.uri).await {
                self.publish(uri);
            }
        };
        let forwarding = async {
            tokio::select! {
                biased;
                _ = connection.ended() => {}
                () = forwarding => {}
            }
        };
        let forwarded = self.while_watched(forwarding).await;
        let _ = timeout(UNSUBSCRIBE_TIMEOUT, self.close(connection, source)).await;
        forwarded
    }

    fn publish(&self, uri: String) {
        let server = self.server.config.name.clone();
        // The update is dropped if the channel is full.
        let _ = self.updates.try_send(ResourceUpdate { server, uri });
    }

    async fn open(&self, connection: &Connection) -> Result<OpenSource, FeatureError> {
        Capability::Subscriptions.require(&self.server, connection)?;
        let token = connection.requests.token();
        let opened = async {
            tokio::select! {
                biased;
                opened = self.subscribe(connection) => opened,
                reason = connection.ended() => Err(self.error(RequestFailure::Broken(reason))),
            }
        };
        let source = timeout(self.time_limit, opened).await.unwrap_or_else(|_| {
            Err(FeatureError::Request(ToolCallError::Timeout {
                server: self.server.config.name.clone(),
                tool: SUBSCRIBE.to_owned(),
                after: self.time_limit,
            }))
        });
        Ok((source?, token))
    }

    async fn subscribe(&self, connection: &Connection) -> Result<Source, FeatureError> {
        if !connection.is_legacy() {
            return self.open_stream(connection).await;
        }
        // The receiver is created before the subscription, so that no update is missed.
        let updates = self.server.resource_updates.subscribe();
        let mut watchers = connection.watchers.lock().await;
        if !watchers.contains_key(&self.uri) {
            let params = SubscribeRequestParams::new(&self.uri);
            let request = ClientRequest::SubscribeRequest(SubscribeRequest::new(params));
            if let Err(error) = connection.request(request, None).await {
                return Err(self.classify(connection, error).await);
            }
        }
        *watchers.entry(self.uri.clone()).or_default() += 1;
        Ok(Source::Notifications(updates))
    }

    async fn open_stream(&self, connection: &Connection) -> Result<Source, FeatureError> {
        let filter = SubscriptionFilter::builder().resource_subscription(&self.uri);
        let mut subscription = match connection.peer.listen(filter.build()).await {
            Ok(subscription) => subscription,
            Err(error) => return Err(self.classify(connection, error).await),
        };
        let accepted = subscription.acknowledged().resource_subscriptions.as_ref();
        if accepted.is_some_and(|uris| uris.contains(&self.uri)) {
            return Ok(Source::Stream(Box::new(subscription)));
        }
        let _ = timeout(UNSUBSCRIBE_TIMEOUT, subscription.cancel()).await;
        let reason = format!("did not accept the subscription to `{}`", self.uri);
        Err(self.error(RequestFailure::InvalidAnswer(reason)))
    }

    async fn close(&self, connection: &Connection, source: Source) {
        if let Source::Stream(mut subscription) = source {
            let _ = subscription.cancel().await;
            return;
        }
        let mut watchers = connection.watchers.lock().await;
        if let Some(count) = watchers.get_mut(&self.uri)
            && *count > 1
        {
            *count -= 1;
            return;
        }
        watchers.remove(&self.uri);
        if !connection.has_ended() {
            let params = UnsubscribeRequestParams::new(&self.uri);
            let request = ClientRequest::UnsubscribeRequest(UnsubscribeRequest::new(params));
            let _ = connection.request(request, None).await;
        }
    }

    async fn classify(&self, connection: &Connection, error: ServiceError) -> FeatureError {
        self.error(RequestFailure::classify(&self.server, connection, error).await)
    }

    fn error(&self, failure: RequestFailure) -> FeatureError {
        let error = failure.into_call_error(&self.server, SUBSCRIBE);
        Capability::Subscriptions.convert_error(&self.server, error)
    }
}

impl Source {
    /// Waits for the next change of the watched resource, or of a resource below it. Returns its
    /// URI.
    async fn next(&mut self, watched: &str) -> Option<String> {
        loop {
            match self {
                Source::Stream(subscription) => match subscription.next().await {
                    Ok(Some(ServerNotification::ResourceUpdatedNotification(updated))) => {
                        return Some(updated.params.uri);
                    }
                    Ok(Some(_)) => {}
                    Ok(None) | Err(_) => return None,
                },
                Source::Notifications(updates) => match updates.recv().await {
                    Ok(uri) if is_below(&uri, watched) => return Some(uri),
                    Ok(_) => {}
                    // The dropped updates may include one for the watched resource.
                    Err(RecvError::Lagged(_)) => return Some(watched.to_owned()),
                    Err(RecvError::Closed) => return None,
                },
            }
        }
    }
}

/// Returns whether a URI is the watched one or is below it. A server may report a changed
/// sub-resource of the resource that the client subscribed to (2025-11-25).
fn is_below(uri: &str, watched: &str) -> bool {
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
            assert_eq!(is_below(uri, watched), expected, "{uri} below {watched}");
        }
    }
}
