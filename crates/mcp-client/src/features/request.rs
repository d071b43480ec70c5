//! Requests for features of a server, within a deadline. They only read, so they are repeated after
//! a failure.

use std::{fmt, sync::Arc, time::Duration};

use rmcp::model::{ClientRequest, ErrorCode, GetExtensions, ServerPeerInfo};
use serde::Serialize;
use serde_json::Value;
use switchboard_domain::{JsonObject, ToolCallError};
use tokio::{
    sync::SemaphorePermit,
    time::{Instant, sleep},
};

use crate::{
    calls::{
        call::{acquire_permit, wait_for_connection},
        context::CallContext,
        deadline::{Deadline, Limits},
        failure::RequestFailure,
        multi_round,
    },
    features::error::FeatureError,
    host::McpHost,
    server::{connection::Connection, state::Server},
    tools::pagination::{PageError, Pages, page_request},
};

/// The delay before a request is repeated on the same connection.
const RETRY_DELAY: Duration = Duration::from_millis(200);
/// The first version with a capability for completions. Older servers do not declare them.
const FIRST_WITH_COMPLETIONS: &str = "2025-03-26";

/// The capability that a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Capability {
    Tools,
    Resources,
    Subscriptions,
    Prompts,
    Completions,
}

impl Capability {
    /// Returns the name of the capability in the protocol.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Subscriptions => "resources.subscribe",
            Self::Prompts => "prompts",
            Self::Completions => "completions",
        }
    }

    fn is_declared(self, info: &ServerPeerInfo) -> bool {
        let declared = &info.capabilities;
        match self {
            Self::Tools => declared.tools.is_some(),
            Self::Resources => declared.resources.is_some(),
            Self::Subscriptions => {
                let resources = declared.resources.as_ref();
                resources.is_some_and(|resources| resources.subscribe == Some(true))
            }
            Self::Prompts => declared.prompts.is_some(),
            Self::Completions => {
                declared.completions.is_some()
                    || info.protocol_version.as_str() < FIRST_WITH_COMPLETIONS
            }
        }
    }

    /// Returns an error if the server does not declare the capability.
    pub(super) fn require(
        self,
        server: &Server,
        connection: &Connection,
    ) -> Result<(), FeatureError> {
        let info = connection.peer.peer_info();
        if info.is_none_or(|info| self.is_declared(&info)) {
            return Ok(());
        }
        Err(self.missing(server))
    }

    fn missing(self, server: &Server) -> FeatureError {
        FeatureError::Unsupported {
            server: server.config.name.clone(),
            capability: self.name(),
        }
    }
}

/// The items that a server lists.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Listing<T> {
    /// The items, in the order of the server.
    pub items: Vec<T>,
    /// Descriptions of missing items: invalid ones, and pages that failed.
    pub problems: Vec<String>,
}

/// Sends requests to one server within one deadline. Holds one of its call permits.
pub(super) struct FeatureClient<'a> {
    pub(super) server: &'a Arc<Server>,
    deadline: Deadline,
    retries: u32,
    _permit: SemaphorePermit<'a>,
}

/// Returns the time limit for the requests of one feature.
pub(super) fn time_limit(host: &McpHost, server: &Server) -> Duration {
    let configured = server.config.call_timeout;
    configured.unwrap_or(host.options.call_timeout)
}

impl<'a> FeatureClient<'a> {
    /// Finds the server and waits for a permit.
    pub(super) async fn new(host: &'a McpHost, name: &str) -> Result<Self, FeatureError> {
        let server = host.server(name);
        let server = server.ok_or_else(|| FeatureError::UnknownServer {
            server: name.to_owned(),
            available: host.servers.iter().map(|s| s.config.name.clone()).collect(),
        })?;
        let limits = Limits {
            total: time_limit(host, server),
            idle: None,
        };
        let deadline = Deadline::new(Instant::now(), limits);
        let permit = acquire_permit(server, &deadline).await;
        Ok(Self {
            server,
            retries: host.options.retries,
            _permit: permit.map_err(|error| unavailable(server, error))?,
            deadline,
        })
    }

    /// Waits for a connection other than `broken`.
    pub(super) async fn connection(
        &self,
        broken: Option<&Arc<Connection>>,
    ) -> Result<Arc<Connection>, FeatureError> {
        let connection = wait_for_connection(self.server, &self.deadline, broken).await;
        connection.map_err(|error| unavailable(self.server, error))
    }

    /// Sends a request and returns the result as JSON, which also represents results that rmcp
    /// cannot parse.
    pub(super) async fn request(
        &mut self,
        capability: Capability,
        request: ClientRequest,
    ) -> Result<Value, FeatureError> {
        self.request_or_cached(capability, request, None).await
    }

    /// Sends a request, or returns the cached result with this key.
    async fn request_or_cached(
        &mut self,
        capability: Capability,
        mut request: ClientRequest,
        cache_key: Option<String>,
    ) -> Result<Value, FeatureError> {
        let method = request.method().to_owned();
        let call = Arc::<CallContext>::default();
        request.extensions_mut().insert(Arc::clone(&call));
        let mut broken: Option<Arc<Connection>> = None;
        let mut attempts: u32 = 0;
        loop {
            let connection = self.connection(broken.as_ref()).await?;
            capability.require(self.server, &connection)?;
            let cache = &self.server.list_cache;
            let cached = cache_key.as_ref().and_then(|key| cache.get(&method, key));
            if let Some(page) = cached {
                return Ok(page);
            }
            let generation = cache.generation();
            attempts += 1;
            let sent = multi_round::send(self.server, &connection, request.clone(), &call);
            let pending = self.server.pending_requests(&call);
            let failure = match self.deadline.run(pending, Box::pin(sent).as_mut()).await {
                Ok(Ok(result)) => {
                    let result = serde_json::to_value(result).unwrap_or_default();
                    if let Some(key) = cache_key {
                        cache.insert(&method, key, &result, generation);
                    }
                    return Ok(result);
                }
                Ok(Err(failure)) => failure,
                Err(after) => {
                    connection.timed_out.notify_one();
                    return Err(FeatureError::Timeout {
                        server: self.server.config.name.clone(),
                        request: method,
                        after,
                    });
                }
            };
            let is_retryable = matches!(
                failure,
                RequestFailure::Busy(_) | RequestFailure::NotSent(_) | RequestFailure::Broken(_)
            );
            if !is_retryable || attempts > self.retries {
                return Err(feature_error(failure, self.server, capability, &method));
            }
            if connection.is_gone() {
                broken = Some(connection);
            } else {
                sleep(RETRY_DELAY).await;
            }
        }
    }

    /// Reads every page of a list.
    pub(super) async fn list<T>(
        &mut self,
        list: ListRequest,
        parse: fn(&Value) -> Result<T, String>,
    ) -> Result<Listing<T>, FeatureError> {
        let server = self.server;
        let mut pages = Pages::new(list.key);
        let mut cursor = None;
        loop {
            // The prefix distinguishes an empty cursor from none.
            let cache_key = cursor
                .as_ref()
                .map_or_else(String::new, |it| format!("@{it}"));
            let request = page_request(list.method, cursor);
            let page = self.request_or_cached(list.capability, request, Some(cache_key));
            cursor = match pages.add(page.await, parse) {
                Ok(Some(next)) => Some(next),
                Ok(None) => break,
                Err(PageError::Request(error)) => return Err(error),
                Err(PageError::Malformed(reason)) => {
                    return Err(malformed(&server.config.name, list.method, reason));
                }
            };
        }
        let problems = pages.problems.into_iter();
        let problems: Vec<String> = problems.map(|it| server.redact(it)).collect();
        for problem in &problems {
            tracing::warn!(server = server.config.name, problem, "a list has a problem");
        }
        Ok(Listing {
            items: pages.items,
            problems,
        })
    }
}

/// A list of a server.
#[derive(Clone, Copy)]
pub(super) struct ListRequest {
    pub(super) method: &'static str,
    /// The field of a page that contains the items.
    pub(super) key: &'static str,
    pub(super) capability: Capability,
}

fn unavailable(server: &Server, error: ToolCallError) -> FeatureError {
    FeatureError::Unavailable {
        server: server.config.name.clone(),
        reason: match error {
            ToolCallError::Unavailable { reason, .. } => reason,
            other => server.redact(other.to_string()),
        },
    }
}

/// Returns the error for an answer with invalid content.
pub(super) fn malformed(server: &str, request: &str, reason: impl fmt::Display) -> FeatureError {
    FeatureError::Malformed {
        server: server.to_owned(),
        request: request.to_owned(),
        reason: reason.to_string(),
    }
}

pub(super) fn feature_error(
    failure: RequestFailure,
    server: &Server,
    capability: Capability,
    method: &str,
) -> FeatureError {
    let (name, request) = (server.config.name.clone(), method.to_owned());
    let clean = |text: String| server.redact(text);
    match failure {
        RequestFailure::Refused(error) if error.code == ErrorCode::METHOD_NOT_FOUND => {
            capability.missing(server)
        }
        RequestFailure::Refused(error) => FeatureError::Refused {
            server: name,
            request,
            code: i64::from(error.code.0),
            message: clean(error.message.into_owned()),
        },
        RequestFailure::Busy(reason) => FeatureError::Unavailable {
            server: name,
            reason: clean(format!("it accepts no requests now ({reason})")),
        },
        RequestFailure::Unavailable(reason) => FeatureError::Unavailable {
            server: name,
            reason: clean(reason),
        },
        RequestFailure::NotSent(reason) | RequestFailure::Broken(reason) => FeatureError::Broken {
            server: name,
            request,
            reason: clean(reason),
        },
        RequestFailure::InvalidAnswer(reason) => {
            malformed(&name, method, clean(format!("its answer {reason}")))
        }
        RequestFailure::Protocol(reason) => malformed(&name, method, clean(reason)),
    }
}

/// Returns a text field.
pub(super) fn text(item: &Value, key: &str) -> Option<String> {
    item.get(key).and_then(Value::as_str).map(str::to_owned)
}

/// Returns a required text field. `kind` names the item in the error.
pub(super) fn required_text(item: &Value, key: &str, kind: &str) -> Result<String, String> {
    text(item, key)
        .filter(|text| !text.is_empty())
        .ok_or_else(|| format!("a {kind} has no {key}"))
}

/// Returns `_meta`, or an empty object.
pub(super) fn meta(item: &Value) -> JsonObject {
    match item.get("_meta") {
        Some(Value::Object(meta)) => meta.clone(),
        _ => JsonObject::new(),
    }
}
