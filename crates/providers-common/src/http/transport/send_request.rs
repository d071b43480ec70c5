//! Sending of one HTTP request, and conversion of its response into an answer or an error.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use switchboard_domain::{ModelError, ModelErrorKind, TimeoutPhase};
use tokio::time::timeout;

use super::{
    HttpAnswer, HttpTransport, MAX_ERROR_BODY_BYTES, RequestTarget, ResponseErrorContext, body,
    connection_errors::{add_default_retry_hint, connection_error},
    redact, response_headers,
};
use crate::{ClassifiedError, ErrorClassifier, HttpFailure, http::error_classifier};

/// Maximum time to read the body of a failed answer.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// An HTTP request whose address and headers were checked. It can be sent any number of times.
pub(super) struct CheckedRequest<'a> {
    pub(super) transport: &'a HttpTransport,
    pub(super) method: Method,
    pub(super) target: &'a RequestTarget,
    pub(super) body: Option<Bytes>,
    /// Maximum time from sending the request to the first byte of the response.
    pub(super) limit: Duration,
}

/// An HTTP response whose headers have arrived.
enum OpenedResponse {
    /// Successful response and the first piece of its body, which is `None` for an empty body.
    Success(reqwest::Response, Option<Bytes>),
    /// Failed response. The text is the reason why its body cannot be used, such as an unexpected
    /// media type, or `None` if only the HTTP status shows the failure.
    Failure(reqwest::Response, Option<String>),
}

impl CheckedRequest<'_> {
    /// Returns the address of the request without secrets, for messages.
    fn address(&self) -> String {
        redact::strip_address_secrets(self.target.url.as_str())
    }

    /// Sends the request once. `number` is the number of the attempt in the log, from 1.
    pub(super) async fn send_once(
        &self,
        number: u32,
        classifier: &dyn ErrorClassifier,
    ) -> Result<HttpAnswer, ModelError> {
        let started = tracing::enabled!(tracing::Level::DEBUG).then(Instant::now);
        let result = self.send_with_timeout(classifier).await;
        let (status, error) = match &result {
            Ok(answer) => (Some(answer.status), None),
            Err(error) => (error.http_status(), Some(error.kind.as_str())),
        };
        tracing::debug!(
            provider = self.provider(),
            method = %self.method,
            address = self.address(),
            attempt = number,
            status,
            error,
            elapsed = ?started.map(|it| it.elapsed()).unwrap_or_default(),
            "sent a request"
        );
        result
    }

    async fn send_with_timeout(
        &self,
        classifier: &dyn ErrorClassifier,
    ) -> Result<HttpAnswer, ModelError> {
        let Ok(opened) = timeout(self.limit, self.open_response()).await else {
            let kind = ModelErrorKind::Timeout {
                phase: TimeoutPhase::FirstByte,
                after: self.limit,
            };
            let error = self.model_error(kind, self.address());
            return Err(add_default_retry_hint(error));
        };
        match opened? {
            OpenedResponse::Success(response, first) => Ok(self.to_http_answer(response, first)),
            OpenedResponse::Failure(response, fault) => {
                Err(Box::pin(self.read_error_response(response, fault, classifier)).await)
            }
        }
    }

    /// Converts a successful HTTP response into an answer. `first` is the piece of the body that
    /// was already read. The answer's body begins with it.
    fn to_http_answer(&self, mut response: reqwest::Response, first: Option<Bytes>) -> HttpAnswer {
        let status = response.status().as_u16();
        let headers = std::mem::take(response.headers_mut());
        let context = ResponseErrorContext {
            status,
            request_id: response_headers::request_id(&headers),
            redactor: self.target.redactor.clone(),
        };
        let beginning = first.unwrap_or_default();
        let shared = Arc::clone(&self.transport.shared);
        let rest = response.bytes_stream();
        let body = body::with_idle_timeout(beginning.clone(), rest, shared, context.clone());
        HttpAnswer {
            status,
            headers,
            request_id: context.request_id.clone(),
            beginning,
            body,
            context,
        }
    }

    fn build_request(&self) -> reqwest::Request {
        let mut request = reqwest::Request::new(self.method.clone(), self.target.url.clone());
        *request.headers_mut() = self.target.headers.clone();
        *request.body_mut() = self.body.clone().map(Into::into);
        request
    }

    /// Sends the request. Waits for the first byte of the body if the response is successful, and
    /// only for the headers if it is a failure.
    async fn open_response(&self) -> Result<OpenedResponse, ModelError> {
        let response = self.transport.client.execute(self.build_request()).await;
        let mut response = response.map_err(|error| self.connection_error(error))?;
        let fault = self.find_header_fault(response.headers());
        if fault.is_some() || !response.status().is_success() {
            return Ok(OpenedResponse::Failure(response, fault));
        }
        let first = body::read_first_chunk(&mut response).await;
        let first = first.map_err(|error| self.connection_error(error))?;
        Ok(OpenedResponse::Success(response, first))
    }

    /// Returns the reason why a response's body cannot be used: it is compressed, or its media type
    /// is not expected. Returns `None` if the headers show no such problem.
    fn find_header_fault(&self, headers: &HeaderMap) -> Option<String> {
        if let Some(coding) = response_headers::compression(headers) {
            return Some(format!(
                "the body is compressed with `{}`, which was not requested",
                coding.escape_debug()
            ));
        }
        let actual = response_headers::media_type_essence(headers)?;
        let expected = self.target.expected;
        if expected.is_empty() || response_headers::is_expected_media_type(actual, expected) {
            return None;
        }
        Some(format!(
            "{} sent `{}` instead of `{}`: check the address",
            self.address(),
            actual.to_ascii_lowercase().escape_debug(),
            expected.join("` or `")
        ))
    }

    /// Converts a failed HTTP response into an error.
    async fn read_error_response(
        &self,
        mut response: reqwest::Response,
        fault: Option<String>,
        classifier: &dyn ErrorClassifier,
    ) -> ModelError {
        let status = response.status();
        let headers = std::mem::take(response.headers_mut());
        if status.is_redirection()
            && let Some(location) = headers.get(header::LOCATION)
        {
            return self.redirect_error(status, location);
        }
        let idle = self.transport.shared.config.idle_timeout;
        let limit = ERROR_BODY_TIMEOUT.min(idle);
        let body = if response_headers::compression(&headers).is_some() {
            Bytes::new()
        } else {
            body::read_error_body(response, MAX_ERROR_BODY_BYTES, limit).await
        };
        // Secrets are redacted before the text is shortened, because a shortened key is not
        // recognized.
        let body = String::from_utf8_lossy(&body);
        let body = self.target.redactor.redact_known(&body);
        let retry_after = response_headers::retry_after(&headers, SystemTime::now());
        let ClassifiedError {
            kind,
            message,
            request_id,
        } = classifier.classify_failure(&HttpFailure {
            status: status.as_u16(),
            headers: &headers,
            body: body.as_bytes(),
            retry_after,
        });
        let message = match (fault, message.is_empty()) {
            (Some(fault), true) => fault,
            (Some(fault), false) if status.is_success() => format!("{fault} (response: {message})"),
            _ => message,
        };
        let error = self
            .model_error(kind, message)
            .with_status(status.as_u16())
            .with_request_id(request_id.or_else(|| response_headers::request_id(&headers)));
        let error = redact::redact_error(&self.target.redactor, error);
        let is_retryable =
            response_headers::should_retry(&headers).unwrap_or_else(|| error.is_transient());
        let pause = error.retry_after().or(retry_after);
        error.with_retry_hint(is_retryable, pause)
    }

    fn redirect_error(&self, status: StatusCode, location: &HeaderValue) -> ModelError {
        let location = String::from_utf8_lossy(location.as_bytes());
        let new_address = match self.target.url.join(&location) {
            Ok(url) => redact::strip_address_secrets(url.as_str()),
            Err(_) => redact::strip_address_secrets(&location),
        };
        let message = format!(
            "{} redirects to {}. Redirects are not followed, because they would send the API key \
             to another address. If the new address is correct, configure it",
            self.address(),
            self.target
                .redactor
                .redact_known(&error_classifier::body_excerpt(new_address.as_bytes())),
        );
        self.model_error(ModelErrorKind::Configuration, message)
            .with_status(status.as_u16())
            .with_retry_hint(false, None)
    }

    fn connection_error(&self, error: reqwest::Error) -> ModelError {
        let connect_timeout = self.transport.shared.config.connect_timeout;
        connection_error(self.provider(), &self.address(), connect_timeout, error)
    }

    fn provider(&self) -> &str {
        self.transport.provider()
    }

    fn model_error(&self, kind: ModelErrorKind, message: impl Into<String>) -> ModelError {
        ModelError::new(self.provider(), kind, message)
    }
}
