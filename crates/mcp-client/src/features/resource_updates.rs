//! What servers tell of resources that somebody watches.
//!
//! Before 2026-07-28 one subscribes with `resources/subscribe`, once for all who watch on a connection, and
//! hears of it in notifications (`handler.rs`). Since then there is a stream for each
//! (`subscriptions/listen`). A subscription lasts as long as somebody watches: on a connection that is made
//! anew it is made anew.

#![allow(
    deprecated,
    reason = "servers of the older era are subscribed to in the older way"
)]

use std::{collections::HashMap, pin::Pin, sync::Arc, time::Duration};

use futures_util::{Stream, stream};
use rmcp::{
    model::{
        ClientRequest, ServerNotification, SubscribeRequest, SubscribeRequestParams,
        SubscriptionFilter, UnsubscribeRequest, UnsubscribeRequestParams,
    },
    service::{ServiceError, Subscription},
};
use tokio::{
    sync::{
        Mutex,
        broadcast::{self, error::RecvError},
        mpsc,
    },
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::task_tracker::TaskTrackerToken};

use crate::features::{
    error::FeatureError,
    request::{self, Asker, Capability, Trouble},
};
use crate::{
    backoff::jittered,
    host::McpHost,
    server::state::{Link, Server},
};

/// Updates kept for a watcher that does not keep up. Whoever has so many before it will read the resource
/// after them, so those that come in the meantime are no news.
const UPDATES: usize = 64;
/// The same between the connection and all who watch.
const TOLD: usize = 256;
/// How long telling a server may take that nobody watches any more.
const TO_LEAVE: Duration = Duration::from_millis(500);
/// How long to wait before a subscription that ended is made again on the same connection; each time in a
/// row twice as long.
const RESUBSCRIBE: Duration = Duration::from_secs(1);
/// The same, where that fails again and again.
const RARELY: Duration = Duration::from_mins(10);

/// A resource is not what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceUpdate {
    /// The server.
    pub server: String,
    /// The resource: the one that is watched, or one below it.
    pub uri: String,
}

/// Updates of a watched resource, as they happen. Dropping it ends the subscription. It ends by itself with
/// the host, and where a server that came back has no subscriptions any more.
pub type ResourceUpdates = Pin<Box<dyn Stream<Item = ResourceUpdate> + Send>>;

/// What the older era's servers say of resources, for all who watch.
pub(crate) struct Told(broadcast::Sender<String>);

impl Default for Told {
    fn default() -> Self {
        Self(broadcast::Sender::new(TOLD))
    }
}

impl Clone for Told {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl Told {
    pub(crate) fn tell(&self, uri: String) {
        // Fails when nobody watches.
        let _ = self.0.send(uri);
    }
}

/// How many watch each resource on one connection of the older era. Held while the server is told, so that
/// it hears of one's end and another's beginning in this order.
#[derive(Default)]
pub(crate) struct Subscribed(Mutex<HashMap<String, usize>>);

/// Hearing of changes.
impl McpHost {
    /// Watches a resource. It is subscribed to before this returns; every item of the stream says that it
    /// is worth reading again. Also said after the connection was made anew, for nobody heard of what
    /// happened meanwhile.
    pub async fn watch_resource(
        &self,
        server: &str,
        uri: &str,
    ) -> Result<ResourceUpdates, FeatureError> {
        let asker = Asker::new(self, server).await?;
        let link = asker.link(None).await?;
        let (told, updates) = mpsc::channel(UPDATES);
        let shared = self.shared();
        let watch = Watch {
            server: asker.server.clone(),
            uri: uri.to_owned(),
            patience: request::patience(self, asker.server),
            told,
            stop: shared.stop.clone(),
        };
        let source = watch.open(&link).await?;
        drop(asker);
        shared.tasks.spawn(watch.run(link, source));
        Ok(Box::pin(stream::unfold(updates, |mut updates| async {
            let next = updates.recv().await?;
            Some((next, updates))
        })))
    }
}

/// One who watches one resource.
struct Watch {
    server: Arc<Server>,
    uri: String,
    /// How long a request may take.
    patience: Duration,
    told: mpsc::Sender<ResourceUpdate>,
    stop: CancellationToken,
}

/// Where updates come from, on one connection.
struct Source {
    kind: Kind,
    /// The connection is not closed before the server was told of the end.
    _open: TaskTrackerToken,
}

enum Kind {
    /// Since 2026-07-28.
    Stream(Box<Subscription>),
    /// Before.
    Notifications(broadcast::Receiver<String>),
}

/// Why no updates come any more.
enum End {
    /// Nobody wants them.
    Unwanted,
    /// The connection is no more.
    Link,
    /// The server ended the stream, and the connection is sound.
    Source,
}

impl Watch {
    async fn run(self, mut link: Arc<Link>, mut source: Source) {
        loop {
            let mut pause = RESUBSCRIBE;
            let mut wait = match self.follow(&link, source).await {
                End::Unwanted => return,
                End::Link => false,
                End::Source => true,
            };
            source = loop {
                let due = async {
                    if wait {
                        sleep(jittered(pause)).await;
                        pause = (pause * 2).min(RARELY);
                    }
                    // Not `is_gone`: one that is only stale will end.
                    if link.ended.borrow().is_some() {
                        return self.server.next_link(&link).await;
                    }
                    Some(link.clone())
                };
                let next = tokio::select! {
                    biased;
                    () = self.stop.cancelled() => return,
                    () = self.told.closed() => return,
                    next = due => next,
                };
                let Some(next) = next else { return };
                link = next;
                let opened = tokio::select! {
                    biased;
                    () = self.stop.cancelled() => return,
                    opened = self.open(&link) => opened,
                };
                match opened {
                    Ok(source) => break source,
                    Err(error @ FeatureError::Unsupported { .. }) => {
                        tracing::warn!(%error, uri = self.uri, "a resource is not watched any more");
                        return;
                    }
                    Err(error) => {
                        tracing::debug!(%error, uri = self.uri, "no subscription");
                        wait = true;
                    }
                }
            };
            // Something may have changed while nobody listened.
            self.tell(self.uri.clone());
        }
    }

    /// Hands on what is told, until there is an end to it.
    async fn follow(&self, link: &Link, mut source: Source) -> End {
        let end = loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break End::Unwanted,
                () = self.told.closed() => break End::Unwanted,
                _ = link.ended() => break End::Link,
                next = source.next(&self.uri) => match next {
                    Some(uri) => self.tell(uri),
                    None => break End::Source,
                },
            }
        };
        let _ = timeout(TO_LEAVE, self.close(link, source)).await;
        end
    }

    fn tell(&self, uri: String) {
        let server = self.server.config.name.clone();
        // If there is no room, it is no news.
        let _ = self.told.try_send(ResourceUpdate { server, uri });
    }

    async fn open(&self, link: &Link) -> Result<Source, FeatureError> {
        let open = link.calls.token();
        let opened = timeout(self.patience, async {
            tokio::select! {
                biased;
                opened = self.subscribe(link) => opened,
                reason = link.ended() => Err(self.error(Trouble::Gone(reason), "subscribe")),
            }
        });
        match opened.await {
            Ok(kind) => Ok(Source {
                kind: kind?,
                _open: open,
            }),
            Err(_) => Err(FeatureError::Timeout {
                server: self.server.config.name.clone(),
                request: "subscribe".to_owned(),
                after: self.patience,
            }),
        }
    }

    async fn subscribe(&self, link: &Link) -> Result<Kind, FeatureError> {
        Capability::Subscriptions.require(&self.server, link)?;
        if is_newer(link) {
            let filter = SubscriptionFilter::builder().resource_subscription(&self.uri);
            let listening = link.peer.listen(filter.build()).await;
            let mut subscription = match listening {
                Ok(subscription) => subscription,
                Err(error) => return Err(self.failed(link, error, "subscriptions/listen").await),
            };
            let accepted = subscription.acknowledged().resource_subscriptions.as_ref();
            if accepted.is_some_and(|uris| uris.contains(&self.uri)) {
                return Ok(Kind::Stream(Box::new(subscription)));
            }
            let _ = timeout(TO_LEAVE, subscription.cancel()).await;
            let reason = format!("it does not tell of changes of `{}`", self.uri);
            return Err(self.error(Trouble::Odd(reason), "subscriptions/listen"));
        }
        // Listened to before, so that nothing is missed.
        let told = self.server.told.0.subscribe();
        let mut subscribed = link.subscribed.0.lock().await;
        if !subscribed.contains_key(&self.uri) {
            let params = SubscribeRequestParams::new(&self.uri);
            let request = ClientRequest::SubscribeRequest(SubscribeRequest::new(params));
            if let Err(error) = request::send(link, request).await {
                return Err(self.failed(link, error, "resources/subscribe").await);
            }
        }
        *subscribed.entry(self.uri.clone()).or_default() += 1;
        Ok(Kind::Notifications(told))
    }

    async fn close(&self, link: &Link, source: Source) {
        match source.kind {
            Kind::Stream(mut subscription) => {
                let _ = subscription.cancel().await;
            }
            Kind::Notifications(_) => {
                let mut subscribed = link.subscribed.0.lock().await;
                match subscribed.get_mut(&self.uri) {
                    Some(others) if *others > 1 => *others -= 1,
                    _ => {
                        subscribed.remove(&self.uri);
                        if link.ended.borrow().is_some() {
                            return;
                        }
                        let params = UnsubscribeRequestParams::new(&self.uri);
                        let request = UnsubscribeRequest::new(params);
                        let request = ClientRequest::UnsubscribeRequest(request);
                        let _ = request::send(link, request).await;
                    }
                }
            }
        }
    }

    async fn failed(&self, link: &Link, error: ServiceError, method: &str) -> FeatureError {
        let trouble = Trouble::of(&self.server, link, error).await;
        self.error(trouble, method)
    }

    fn error(&self, trouble: Trouble, method: &str) -> FeatureError {
        trouble.into_error(&self.server, Capability::Subscriptions, method)
    }
}

impl Source {
    /// The next resource that changed and is `watched`, or below it.
    async fn next(&mut self, watched: &str) -> Option<String> {
        loop {
            match &mut self.kind {
                Kind::Stream(subscription) => match subscription.next().await {
                    Ok(Some(ServerNotification::ResourceUpdatedNotification(updated))) => {
                        return Some(updated.params.uri);
                    }
                    Ok(Some(_)) => {}
                    Ok(None) | Err(_) => return None,
                },
                Kind::Notifications(told) => match told.recv().await {
                    Ok(uri) if is_within(&uri, watched) => return Some(uri),
                    Ok(_) => {}
                    // It may have been among those that were missed.
                    Err(RecvError::Lagged(_)) => return Some(watched.to_owned()),
                    Err(RecvError::Closed) => return None,
                },
            }
        }
    }
}

fn is_newer(link: &Link) -> bool {
    let about = link.peer.peer_info();
    about.is_some_and(|about| !about.protocol_version.has_initialize())
}

/// "This might be a sub-resource of the one that the client actually subscribed to" (2025-11-25).
fn is_within(uri: &str, watched: &str) -> bool {
    uri.strip_prefix(watched).is_some_and(|rest| {
        rest.is_empty() || watched.ends_with('/') || rest.starts_with(['/', '#', '?'])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_a_watched_resource_is_within_it() {
        for (uri, watched, expected) in [
            ("f:///a", "f:///a", true),
            ("f:///a/b", "f:///a", true),
            ("f:///a/b", "f:///a/", true),
            ("f:///a#top", "f:///a", true),
            ("f:///ab", "f:///a", false),
            ("f:///", "f:///a", false),
        ] {
            assert_eq!(is_within(uri, watched), expected, "{uri} within {watched}");
        }
    }
}
