//! HTTP client for one server of a provider.

use std::{
    borrow::Cow,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use serde_json::Value;
use switchboard_domain::{ModelError, ModelErrorKind, ModelId};

use super::{HttpModel, ProviderConfig, SentRequest, StreamFormat, WireProtocol, redacted_address};
use crate::{
    Headers, HttpAnswer, HttpRequest, HttpTransport, MAX_FRAME_BYTES, RetryPolicy,
    http::transport::RequestTarget, read_to_end, schema::ToolSchemas,
};

/// Maximum number of pages of the model list that are requested. Models on further pages are
/// omitted.
const MAX_PAGES: usize = 20;

/// A client of one server. Its models share its connections, and cloning it is cheap.
#[derive(Clone, derive_more::Debug)]
#[debug("HttpClient {{ config: {:?}, .. }}", server.config)]
#[debug(bound(C: std::fmt::Debug))]
pub struct HttpClient<C> {
    server: Arc<SharedClient<C>>,
}

struct SharedClient<C> {
    config: C,
    transport: HttpTransport,
    headers: Headers,
    tool_schemas: ToolSchemas,
    /// Cache of the last chat request's target: its checked address and headers. Most chat requests
    /// share them. Requests with additional headers ([`SentRequest::headers`]) are not cached.
    chat_request_target: Mutex<Option<ChatTarget>>,
}

/// Cached address and headers of a chat request (last element) and their cache key: the path, the
/// format of a streamed answer, and whether the answer is streamed.
type ChatTarget = (Cow<'static, str>, StreamFormat, bool, Arc<RequestTarget>);

/// A model in a server's list of models.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServedModel {
    /// Name of the model at the server.
    pub name: String,
    /// Display name of the model.
    pub title: Option<String>,
    /// Maximum number of tokens of the prompt. On some servers, the limit includes the answer.
    pub context_window: Option<u64>,
    /// Maximum number of tokens of an answer.
    pub max_output_tokens: Option<u64>,
}

/// One page of a list of models.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ModelPage {
    /// Models on this page.
    pub models: Vec<ServedModel>,
    /// Path of the next page. `None` on the last page.
    pub next: Option<String>,
}

impl<C: ProviderConfig> HttpClient<C> {
    /// Creates a client. It does not connect yet.
    ///
    /// Fails with [`ModelErrorKind::Configuration`] if [`ProviderConfig::validate_config`] fails or
    /// a header cannot be sent.
    pub fn new(config: C) -> Result<Self, ModelError> {
        config.validate_config()?;
        let headers = config.headers();
        headers.check_headers(config.provider())?;
        let transport = HttpTransport::new(config.provider(), &config.transport_config())?;
        let server = SharedClient {
            config,
            transport,
            headers,
            tool_schemas: ToolSchemas::default(),
            chat_request_target: Mutex::default(),
        };
        Ok(Self {
            server: Arc::new(server),
        })
    }

    /// Returns the configuration of the server.
    pub fn config(&self) -> &C {
        &self.server.config
    }

    /// Returns the model `name` with the provider's default protocol. Does not check that the
    /// server has the model.
    pub fn model(&self, name: impl Into<String>) -> HttpModel<C::DefaultWire> {
        self.model_with_protocol(name)
    }

    /// Returns the model `name` with protocol `W`. Does not check that the server has the model.
    pub fn model_with_protocol<W: WireProtocol<Config = C>>(
        &self,
        name: impl Into<String>,
    ) -> HttpModel<W> {
        let id = ModelId::new(self.config().provider(), name.into());
        HttpModel::with_client(self.clone(), id)
    }

    /// Requests the list of models, in the server's order, 20 pages at most.
    ///
    /// Fails with [`ModelErrorKind::Protocol`] if the answer is not a list of models.
    pub async fn list_models(&self) -> Result<Vec<ServedModel>, ModelError> {
        let mut models = Vec::new();
        let mut path = C::MODELS_PATH.to_owned();
        for _ in 0..MAX_PAGES {
            let read = |body: &Value| self.config().parse_model_list(body);
            let page = self.get_json(&path, "a list of models", read).await?;
            models.extend(page.models);
            match page.next {
                Some(next) if next != path => path = next,
                _ => break,
            }
        }
        Ok(models)
    }

    /// Requests the JSON document at `path` and converts it with `read`.
    ///
    /// Fails with [`ModelErrorKind::Protocol`] if the response is not JSON or `read` returns
    /// `None`. The error message contains `expected`, a description such as "a list of models".
    pub async fn get_json<T>(
        &self,
        path: &str,
        expected: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<T, ModelError> {
        let transport = &self.server.transport;
        self.get_json_with_transport(transport, path, expected, read)
            .await
    }

    /// Requests the JSON document at `path` over `transport`, for example to use other time-outs
    /// than those of this client. See [`get_json`](Self::get_json).
    pub async fn get_json_with_transport<T>(
        &self,
        transport: &HttpTransport,
        path: &str,
        expected: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<T, ModelError> {
        let request = self
            .build_request(path)
            .expect_media_types(JSON_MEDIA_TYPES);
        let answer = transport.get(&request, C::ERROR_TABLE).await;
        self.read_document(answer, expected, read).await
    }

    /// Sends `body` by POST to `path` and converts the JSON document of the answer with `read`.
    /// Fails for the same reasons as [`get_json`](Self::get_json).
    pub async fn post_json<T>(
        &self,
        path: &str,
        body: impl Into<Bytes>,
        expected: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<T, ModelError> {
        let request = self
            .build_request(path)
            .with_json(body)
            .expect_media_types(JSON_MEDIA_TYPES);
        let transport = &self.server.transport;
        let answer = transport.post(&request, C::ERROR_TABLE).await;
        self.read_document(answer, expected, read).await
    }

    /// Sends a chat request: once, or with retries if `repeat` is true.
    pub(super) async fn send_chat_request<W: WireProtocol<Config = C>>(
        &self,
        sent: &SentRequest,
        repeat: bool,
    ) -> Result<HttpAnswer, ModelError> {
        let (transport, errors) = (&self.server.transport, C::ERROR_TABLE);
        let answer = match self.chat_request_target::<W>(sent) {
            Ok(target) => {
                let body = Some(sent.body.clone());
                transport.post_body(&target, body, repeat, errors).await
            }
            Err(error) => Err(error),
        };
        answer.map_err(|error| self.config().add_error_advice(error))
    }

    /// Returns the checked address and headers of a chat request. Returns them from the cache if
    /// the path, the stream format and the streaming flag are those of the last chat request.
    fn chat_request_target<W: WireProtocol<Config = C>>(
        &self,
        sent: &SentRequest,
    ) -> Result<Arc<RequestTarget>, ModelError> {
        let last = &self.server.chat_request_target;
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((path, format, streams, target)) = &*last
            && (path, *format, *streams) == (&sent.path, W::FORMAT, sent.streams)
            && sent.headers.is_empty()
        {
            return Ok(Arc::clone(target));
        }
        let request = W::FORMAT
            .accept_media_types(self.build_request(&sent.path), sent.streams)
            .with_headers(&sent.headers)
            .with_json(Bytes::new());
        let target = Arc::new(RequestTarget::new(&self.server.transport, &request)?);
        if sent.headers.is_empty() {
            let path = sent.path.clone();
            *last = Some((path, W::FORMAT, sent.streams, Arc::clone(&target)));
        }
        Ok(target)
    }

    pub(super) fn tool_schemas(&self) -> &ToolSchemas {
        &self.server.tool_schemas
    }

    pub(super) fn retry_policy(&self) -> &RetryPolicy {
        self.server.transport.retry_policy()
    }

    fn build_request(&self, path: &str) -> HttpRequest {
        HttpRequest::new(self.config().endpoint(path)).with_headers(&self.server.headers)
    }

    async fn read_document<T>(
        &self,
        answer: Result<HttpAnswer, ModelError>,
        expected: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<T, ModelError> {
        let config = self.config();
        let answer = answer.map_err(|error| config.add_error_advice(error))?;
        let body = read_to_end(config.provider(), answer.body, MAX_FRAME_BYTES).await?;
        let body = serde_json::from_slice::<Value>(&body).ok();
        body.as_ref().and_then(read).ok_or_else(|| {
            let address = redacted_address(config.base_url());
            let message = format!("the answer is not {expected}: check the base address {address}");
            ModelError::new(config.provider(), ModelErrorKind::Protocol, message)
                .with_status(answer.status)
                .with_request_id(answer.request_id)
        })
    }
}

/// Media types of a JSON document. Some servers send JSON as `text/plain`.
const JSON_MEDIA_TYPES: &[&str] = &["application/json", "text/plain"];
