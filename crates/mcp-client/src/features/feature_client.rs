//! Requests for resources, prompts and other features of a server, within a deadline. They have no
//! side effects, so a failed request is sent again.

use std::sync::Arc;

use rmcp::model::{ClientRequest, ErrorCode, ServerPeerInfo};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use switchboard_domain::{ProgressSink, ToolCallError};
use tokio::time::Instant;

use crate::{
    calls::{
        deadline::{CallTimeLimits, Deadline},
        request_retries::{CallRequest, send_with_retries, wait_for_connection},
    },
    host::McpHost,
    primitives::error::shorten,
    server::{connection::Connection, state::Server},
    tools::pagination::{CollectedListItems, collect_pages, page_request},
};

/// First protocol version with the capability `completions`. Servers of older versions can support
/// completions without declaring this capability.
const FIRST_WITH_COMPLETIONS: &str = "2025-03-26";

/// Error of a request for resources, prompts, completions or HTML pages of MCP Apps. Configured
/// secrets are redacted in the error message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FeatureError {
    /// The server does not declare the capability that the request needs.
    #[error("server `{server}` does not declare the capability {capability}")]
    Unsupported {
        /// Configured name of the server.
        server: String,
        /// Missing capability: `resources`, `resources.subscribe`, `prompts`, `completions` or
        /// `tools`.
        capability: &'static str,
    },
    /// The requested URI does not start with `ui://`, so no request was sent to the server.
    #[error("`{uri}` is not a page of server `{server}`: page URIs start with `ui://`")]
    NotAPage {
        /// Configured name of the server.
        server: String,
        /// URI that the caller requested as a page.
        uri: String,
    },
    /// The request failed. In place of a tool name, the inner error contains the request method,
    /// such as `resources/read`.
    #[error(transparent)]
    Request(#[from] ToolCallError),
}

/// Server capability that a request needs, as named in the MCP protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Capability(&'static str);

impl Capability {
    pub(super) const TOOLS: Self = Self("tools");
    pub(super) const RESOURCES: Self = Self("resources");
    pub(super) const SUBSCRIPTIONS: Self = Self("resources.subscribe");
    pub(super) const PROMPTS: Self = Self("prompts");
    pub(super) const COMPLETIONS: Self = Self("completions");

    fn is_declared_by_server(self, info: &ServerPeerInfo) -> bool {
        let declared = serde_json::to_value(&info.capabilities).unwrap_or_default();
        let pointer = format!("/{}", self.0.replace('.', "/"));
        let value = declared.pointer(&pointer);
        value.is_some_and(|value| *value != Value::Bool(false))
            || self == Self::COMPLETIONS && info.protocol_version.as_str() < FIRST_WITH_COMPLETIONS
    }

    /// Returns an error if the server does not declare the capability.
    pub(super) fn check_declared_by_server(
        self,
        server: &Server,
        connection: &Connection,
    ) -> Result<(), FeatureError> {
        let info = connection.peer.peer_info();
        if info.is_none_or(|info| self.is_declared_by_server(&info)) {
            return Ok(());
        }
        Err(self.unsupported_error(server))
    }

    fn unsupported_error(self, server: &Server) -> FeatureError {
        let (server, capability) = (server.config.name.clone(), self.0);
        FeatureError::Unsupported { server, capability }
    }

    /// Converts the error of a request. A server without an implementation of the requested method
    /// gives [`FeatureError::Unsupported`], and other errors give [`FeatureError::Request`].
    pub(super) fn to_feature_error(self, server: &Server, error: ToolCallError) -> FeatureError {
        match error {
            ToolCallError::Refused { code, .. }
                if code == i64::from(ErrorCode::METHOD_NOT_FOUND.0) =>
            {
                self.unsupported_error(server)
            }
            error => error.into(),
        }
    }
}

/// List of items of a server, such as resources or prompts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ItemList<T> {
    /// Valid items in the order of the server.
    pub items: Vec<T>,
    /// Reasons why items are missing, such as invalid items and failed pages of the list.
    pub problems: Vec<String>,
}

/// Client for the requests of one operation, which go to one server and share one deadline.
pub(super) struct FeatureClient<'a> {
    pub(super) server: &'a Arc<Server>,
    pub(super) deadline: Deadline,
    retries: u32,
}

impl<'a> FeatureClient<'a> {
    pub(super) fn new(host: &'a McpHost, name: &str) -> Result<Self, FeatureError> {
        let server = host.find_server(name)?;
        let total = server.config.call_timeout;
        let total = total.unwrap_or(host.options.call_timeout);
        Ok(Self {
            server,
            deadline: Deadline::new(Instant::now(), CallTimeLimits { total, idle: None }),
            retries: host.options.retries,
        })
    }

    /// Waits for a connection to the server and returns it. Returns an error after the deadline, or
    /// if the server does not declare the capability.
    pub(super) async fn connect(
        &self,
        capability: Capability,
    ) -> Result<Arc<Connection>, FeatureError> {
        let connection = wait_for_connection(self.server, &self.deadline, None).await?;
        capability.check_declared_by_server(self.server, &connection)?;
        Ok(connection)
    }

    /// Sends a request and returns the result as JSON, because rmcp cannot parse some results.
    pub(super) async fn send_request(
        &self,
        capability: Capability,
        request: ClientRequest,
    ) -> Result<Value, FeatureError> {
        self.connect(capability).await?;
        let mut call = CallRequest {
            name: request.method().to_owned(),
            request,
            context: Arc::default(),
            deadline: self.deadline.clone(),
            retries: self.retries,
            is_repeatable: true,
            is_tool_call: false,
            progress: ProgressSink::default(),
        };
        match Box::pin(send_with_retries(self.server, &mut call)).await {
            Ok(result) => Ok(serde_json::to_value(result).unwrap_or_default()),
            Err(error) => Err(capability.to_feature_error(self.server, error)),
        }
    }

    /// Requests all pages of a list. `key` is the field with the items, such as `prompts`.
    pub(super) async fn list_items<T: DeserializeOwned>(
        &self,
        capability: Capability,
        method: &'static str,
        key: &'static str,
    ) -> Result<ItemList<T>, FeatureError> {
        self.connect(capability).await?;
        let list = collect_pages(
            key,
            |cursor| self.fetch_page(capability, method, cursor),
            |item| parse_item(item, key),
            |reason| self.invalid_answer_error(method, reason),
        );
        Ok(self.to_item_list(list.await?))
    }

    /// Returns a page of a list from the cache, or requests it if it is not in the cache.
    async fn fetch_page(
        &self,
        capability: Capability,
        method: &'static str,
        cursor: Option<String>,
    ) -> Result<Value, FeatureError> {
        let cache = &self.server.list_cache;
        let key = (method, cursor.clone());
        if let Some(page) = cache.get(&key) {
            return Ok(page);
        }
        let generation = cache.generation();
        let request = page_request(method, cursor);
        let page = self.send_request(capability, request).await?;
        cache.insert(key, &page, generation);
        Ok(page)
    }

    /// Parses the items in the array field `key` of a result. Drops invalid items and records them
    /// as problems. Returns an error if the result does not have this array.
    pub(super) fn parse_items<T>(
        &self,
        method: &str,
        result: &Value,
        key: &str,
        parse: impl Fn(&Value) -> Result<T, String>,
    ) -> Result<ItemList<T>, FeatureError> {
        let mut list = CollectedListItems::new();
        if list.add_items(result, key, parse) {
            Ok(self.to_item_list(list))
        } else {
            Err(self.invalid_answer_error(method, format!("has no {key}")))
        }
    }

    fn to_item_list<T>(&self, list: CollectedListItems<T>) -> ItemList<T> {
        let problems = list.problems.into_iter().map(|it| self.server.redact(it));
        let problems: Vec<String> = problems.collect();
        for problem in &problems {
            tracing::warn!(server = self.server.config.name, problem, "invalid items");
        }
        let items = list.items;
        ItemList { items, problems }
    }

    /// Creates the error for an invalid answer. `reason` is a clause such as `has no contents`.
    pub(super) fn invalid_answer_error(
        &self,
        method: &str,
        reason: impl Into<String>,
    ) -> FeatureError {
        let (server, tool) = (self.server.config.name.clone(), method.to_owned());
        let reason = self.server.redact(reason.into());
        ToolCallError::InvalidAnswer {
            server,
            tool,
            reason,
        }
        .into()
    }
}

/// Parses one item of a list. The error is shortened, because it may contain text of the server.
pub(super) fn parse_item<T: DeserializeOwned>(item: &Value, list: &str) -> Result<T, String> {
    T::deserialize(item).map_err(|error| {
        let error = shorten(&error.to_string());
        format!("invalid item in {list}: {error}")
    })
}
