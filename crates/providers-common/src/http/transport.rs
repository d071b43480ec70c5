//! The HTTP client of a provider, with time-outs and retry.

mod body;
mod config;
mod connection_errors;
mod redact;
mod request;
mod response_headers;
mod send_request;
mod target;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method};
use reqwest::Client;
use switchboard_domain::{ModelError, ModelErrorKind, redact::Redactor};

pub(crate) use self::config::AttemptCounter;
use self::send_request::CheckedRequest;
pub(crate) use self::target::RequestTarget;
pub use self::{
    config::{RetryPolicy, TransportConfig},
    request::{Headers, HttpRequest},
};
use crate::{ByteStream, ErrorClassifier};

/// Maximum number of bytes that are read from the body of a failed response: 64 KiB.
pub const MAX_ERROR_BODY_BYTES: usize = 64 * 1024;

/// Maximum time from sending a GET request to the first byte of its response.
const GET_TIMEOUT: Duration = Duration::from_secs(30);

/// Time after which an unused connection is closed. Common load balancers close it after 60 s, and
/// a request at that moment would fail.
const IDLE_CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// An HTTP client for one provider. Clones share the connections.
///
/// - HTTP/2 where the server offers it over TLS, else HTTP/1.1. Compression is not requested.
/// - **Retry**: requests with a transient error before the first byte of a successful answer are
///   repeated according to the [`RetryPolicy`]. [`retry`](crate::http::retry) repeats after later
///   errors. The response header `x-should-retry` overrides the decision by status. A request that
///   an HTTP/2 server refused without processing it is repeated immediately, twice at most.
/// - **Redirects are not followed**: the key would be sent along, and a POST may become a GET. The
///   error names the target.
/// - **Secrets** (secret headers, and user, password and well-known query parameters of the
///   address) are redacted in errors and logs, also where the provider echoes them: in failed
///   answers, and in successful ones by [`ResponseErrorContext::add_context_to_error`].
/// - Dropping the future or the body aborts the request.
#[derive(Clone, derive_more::Debug)]
#[debug("HttpTransport({:?}, {:?})", shared.provider, shared.config)]
pub struct HttpTransport {
    client: Client,
    shared: Arc<TransportSettings>,
}

struct TransportSettings {
    provider: String,
    config: TransportConfig,
}

/// A successful HTTP response whose first byte has arrived, or whose body is empty.
#[derive(derive_more::Debug)]
#[debug(
    "HttpAnswer {{ status: {status:?}, request_id: {request_id:?}, media_type: {:?}, .. }}",
    self.media_type()
)]
pub struct HttpAnswer {
    /// HTTP status of the response, from 200 to 299.
    pub status: u16,
    /// Headers of the response.
    pub headers: HeaderMap,
    /// The provider's id of the request, from the header `request-id`, `x-request-id` or
    /// `apim-request-id` (Azure).
    pub request_id: Option<String>,
    /// Body of the response. Reading fails with [`ModelErrorKind::Interrupted`] if the connection
    /// breaks, and with [`ModelErrorKind::Timeout`] in phase
    /// [`Idle`](switchboard_domain::TimeoutPhase::Idle) if no data arrives within the idle
    /// time-out.
    pub body: ByteStream,
    /// First non-empty piece of the body, or empty if the body is empty. It shows whether the body
    /// is one JSON document or a stream. `body` contains it too.
    beginning: Bytes,
    context: ResponseErrorContext,
}

/// Status and request id of an HTTP response, which are added to errors that its body reports. Also
/// contains the secrets to redact in these errors.
#[derive(Debug, Clone)]
pub struct ResponseErrorContext {
    status: u16,
    request_id: Option<String>,
    redactor: Redactor,
}

impl ResponseErrorContext {
    /// Adds the status and the request id to an error that was found in the body of this response.
    /// Redacts the request's secrets in the error and its causes, because a gateway's successful
    /// response may quote an error of the server behind it.
    pub fn add_context_to_error(&self, error: ModelError) -> ModelError {
        let mut error = redact::redact_error(&self.redactor, error);
        if error.request_id().is_none() {
            // An error that already has an HTTP status belongs to another request, so the id of
            // this request is not added.
            let id = self
                .request_id
                .clone()
                .filter(|_| error.http_status().is_none());
            error = error.with_request_id(id);
        }
        match error.http_status() {
            Some(_) => error,
            None => error.with_status(self.status),
        }
    }
}

impl HttpAnswer {
    /// Returns the context that adds the HTTP status and request id to errors found in the body.
    pub fn error_context(&self) -> ResponseErrorContext {
        self.context.clone()
    }

    /// Returns the media type of the response without parameters, in lower case, such as
    /// `text/event-stream`. Returns `None` if `content-type` is missing or empty.
    pub fn media_type(&self) -> Option<String> {
        response_headers::media_type(&self.headers)
    }

    /// Returns the first bytes of the body, at least one unless the body is empty. The body still
    /// contains them.
    pub fn first_body_bytes(&self) -> &Bytes {
        &self.beginning
    }

    /// Returns whether the body is one JSON document and not a stream of events. Some servers
    /// ignore the requested format or send the wrong media type, so the first visible byte decides:
    /// `{` or `[` begins a document. If only white space has arrived, the media type decides (some
    /// servers send blank lines while the model works).
    pub fn is_json_document(&self) -> bool {
        let beginning = self.beginning.strip_prefix(BYTE_ORDER_MARK);
        let mut bytes = beginning.unwrap_or(&self.beginning).iter();
        match bytes.find(|byte| !byte.is_ascii_whitespace()) {
            Some(visible) => matches!(visible, b'{' | b'['),
            None => response_headers::media_type_essence(&self.headers)
                .is_some_and(|it| response_headers::ends_with_ignore_case(it, "json")),
        }
    }
}

impl HttpTransport {
    /// Creates a client for `provider`. It does not connect yet.
    ///
    /// Fails with [`ModelErrorKind::Configuration`], for instance when the system has no
    /// certificates to trust.
    pub fn new(provider: impl Into<String>, config: &TransportConfig) -> Result<Self, ModelError> {
        let provider = provider.into();
        let client = client_builder(config).build().map_err(|error| {
            let message = format!(
                "the HTTP client could not be created: {}",
                connection_errors::root_cause(&error)
            );
            ModelError::new(&provider, ModelErrorKind::Configuration, message)
                .with_source(error.without_url())
        })?;
        let shared = TransportSettings {
            provider,
            config: config.clone(),
        };
        Ok(Self {
            client,
            shared: Arc::new(shared),
        })
    }

    /// Returns the provider's name, which errors and logs contain.
    pub fn provider(&self) -> &str {
        &self.shared.provider
    }

    /// Sends `request` by POST and returns when a successful answer begins.
    ///
    /// Fails with the error of `classifier` if the answer is unsuccessful, with
    /// [`ModelErrorKind::Connection`] or [`ModelErrorKind::Timeout`] if there is no answer, with
    /// [`ModelErrorKind::Configuration`] if the request cannot be sent or is redirected, and with
    /// [`ModelErrorKind::Protocol`] if the media type is unexpected.
    pub async fn post(
        &self,
        request: &HttpRequest,
        classifier: &dyn ErrorClassifier,
    ) -> Result<HttpAnswer, ModelError> {
        let target = RequestTarget::new(self, request)?;
        self.post_body(&target, request.body.clone(), true, classifier)
            .await
    }

    /// Sends `body` by POST. If `repeat` is `true`, failed attempts are repeated as the
    /// [`RetryPolicy`] allows. If it is `false`, the request is sent once, and the caller is
    /// responsible for retries; see [`retry`](crate::http::retry). Fails for the same reasons as
    /// [`post`](HttpTransport::post).
    pub(crate) async fn post_body(
        &self,
        target: &RequestTarget,
        body: Option<Bytes>,
        repeat: bool,
        classifier: &dyn ErrorClassifier,
    ) -> Result<HttpAnswer, ModelError> {
        let call = CheckedRequest {
            transport: self,
            method: Method::POST,
            target,
            body,
            limit: self.shared.config.first_byte_timeout,
        };
        if repeat {
            self.send_with_retry(&call, classifier).await
        } else {
            call.send_once(1, classifier).await
        }
    }

    /// Sends `request` by GET, for example for a list of models. Each attempt may take 30 s until
    /// the first byte of the response, or less if [`TransportConfig::first_byte_timeout`] is
    /// shorter. Errors are the same as those of [`post`](HttpTransport::post).
    pub async fn get(
        &self,
        request: &HttpRequest,
        classifier: &dyn ErrorClassifier,
    ) -> Result<HttpAnswer, ModelError> {
        let call = CheckedRequest {
            transport: self,
            method: Method::GET,
            target: &RequestTarget::new(self, request)?,
            body: request.body.clone(),
            limit: self.shared.config.first_byte_timeout.min(GET_TIMEOUT),
        };
        self.send_with_retry(&call, classifier).await
    }

    /// Returns the policy that decides when a request is sent again.
    pub fn retry_policy(&self) -> &RetryPolicy {
        &self.shared.config.retry
    }

    async fn send_with_retry(
        &self,
        call: &CheckedRequest<'_>,
        classifier: &dyn ErrorClassifier,
    ) -> Result<HttpAnswer, ModelError> {
        let mut attempts = self.retry_policy().new_attempt_counter();
        loop {
            let error = match call.send_once(attempts.attempt_number(), classifier).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let Some(pause) = attempts.take_retry_delay(&error) else {
                return Err(error);
            };
            tracing::debug!(
                provider = self.provider(),
                ?pause,
                "retrying the request after a delay"
            );
            tokio::time::sleep(pause).await;
        }
    }
}

/// Returns a client builder with the connect time-out, user agent and proxy setting of `config`.
/// The client does not follow redirects.
fn client_builder(config: &TransportConfig) -> reqwest::ClientBuilder {
    let builder = Client::builder()
        .connect_timeout(config.connect_timeout)
        .pool_idle_timeout(IDLE_CONNECTION_TIMEOUT)
        .user_agent(&config.user_agent)
        .redirect(reqwest::redirect::Policy::none());
    if config.system_proxy {
        builder
    } else {
        builder.no_proxy()
    }
}

#[cfg(test)]
mod unprocessed_tests;
