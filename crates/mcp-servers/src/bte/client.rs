//! HTTP client for a TRAPI service or name resolver, with retries, limits and errors for models.

use std::{
    error::Error as _,
    sync::Arc,
    time::{Duration, SystemTime},
};

use reqwest::{Client, RequestBuilder, Url, header, redirect};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::{
    sample::Sample,
    trapi::{QueryGraph, Response},
};
use crate::{
    options::BteOptions,
    text::{format_quantity, to_single_line, truncate},
    tool::ToolError,
};

/// Maximum time for connecting to the service. The time-out of the tool call
/// ([`BteOptions::timeout`]) also includes this time.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of attempts for one request.
const MAX_ATTEMPTS: u32 = 3;
/// Delay before the second attempt. The delay before the third attempt is twice as long. A
/// `Retry-After` header in the response replaces these delays.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum size of an error response in bytes. The text of a larger error response is ignored.
const MAX_ERROR_BYTES: usize = 64 * 1024;
/// Maximum length, in characters, of the reason in an error message for the model. The reason may
/// be the error text of the service.
const MAX_REASON_CHARS: usize = 300;

/// An HTTP client for one TRAPI service or one name resolver. Clones share its connections.
#[derive(Debug, Clone)]
pub(super) struct ServiceClient {
    http: Client,
    base: Url,
    timeout: Duration,
    max_answer_bytes: usize,
    /// The data that replace the service if it cannot be reached. `None` disables this.
    sample: Option<Arc<Sample>>,
}

/// An error of a request to a service, with a message for the model.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct BteError {
    message: String,
    /// Whether another attempt may succeed. Repeating a request is safe, because queries have no
    /// side effects.
    is_retryable: bool,
    retry_after: Option<Duration>,
    /// Whether no connection to the service was possible, for example because its name does not
    /// resolve.
    pub(super) is_unreachable: bool,
}

impl From<BteError> for ToolError {
    fn from(failure: BteError) -> Self {
        Self::Refused(failure.message)
    }
}

impl BteError {
    pub(super) fn permanent_failure(message: String) -> Self {
        Self {
            message,
            is_retryable: false,
            retry_after: None,
            is_unreachable: false,
        }
    }
}

impl ServiceClient {
    /// Creates a client for the service with the base URL `url`, without connecting. The error
    /// describes why the URL is invalid.
    pub(super) fn new(
        url: &str,
        options: &BteOptions,
        sample: Option<&Arc<Sample>>,
    ) -> Result<Self, String> {
        let base = parse_base_url(url)?;
        let mut builder = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            // A redirect is an error, because following it could change the HTTP method or lead to
            // a host that the user did not configure.
            .redirect(redirect::Policy::none())
            .user_agent(concat!("switchboard/", env!("CARGO_PKG_VERSION")));
        if is_loopback(&base) {
            // The URL names the loopback interface, which a proxy on another machine cannot reach.
            builder = builder.no_proxy();
        }
        Ok(Self {
            http: builder.build().map_err(|error| root_cause(&error))?,
            base,
            timeout: options.timeout,
            max_answer_bytes: options.max_answer_bytes,
            sample: sample.cloned(),
        })
    }

    /// Returns the sample data, with a notice for the tool result, if the service cannot be reached
    /// and the sample is enabled. Otherwise returns `failure`.
    pub(super) fn sample_for(&self, failure: BteError) -> Result<(&Sample, String), BteError> {
        match &self.sample {
            Some(sample) if failure.is_unreachable => {
                let notice =
                    format!("These are bundled sample data, not results of the service. {failure}");
                Ok((sample, notice))
            }
            _ => Err(failure),
        }
    }

    pub(super) async fn query(&self, query: &QueryGraph) -> Result<Response, BteError> {
        let body = json!({"message": {"query_graph": query}, "submitter": "switchboard"});
        let request = self.http.post(self.build_url("query", &[]));
        let request = request.header(header::CONTENT_TYPE, "application/json");
        self.send(request.body(body.to_string())).await
    }

    /// Sends a GET request for `path` below the base URL, with retries, and parses the JSON
    /// response.
    pub(super) async fn get_json<T: DeserializeOwned>(
        &self,
        path: &str,
        parameters: &[(&str, &str)],
    ) -> Result<T, BteError> {
        self.send(self.http.get(self.build_url(path, parameters)))
            .await
    }

    fn build_url(&self, path: &str, parameters: &[(&str, &str)]) -> Url {
        let mut url = self.base.clone();
        // The path of the base URL ends with `/`, so the two paths are concatenated.
        url.set_path(&format!("{}{path}", self.base.path()));
        if !parameters.is_empty() {
            url.query_pairs_mut().extend_pairs(parameters);
        }
        url
    }

    async fn send<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, BteError> {
        let request = request.header(header::ACCEPT, "application/json");
        let attempts = timeout(self.timeout, self.send_with_retries(&request)).await;
        let bytes = attempts.unwrap_or_else(|_| {
            Err(BteError::permanent_failure(format!(
                "The service did not send a complete response within {} seconds. Use fewer \
                 categories or one entity, or try again later.",
                self.timeout.as_secs_f64()
            )))
        })?;
        serde_json::from_slice(&bytes).map_err(|error| {
            let reason = shorten_reason(&error.to_string());
            BteError::permanent_failure(format!(
                "The response of the service is invalid: {reason}."
            ))
        })
    }

    async fn send_with_retries(&self, request: &RequestBuilder) -> Result<Vec<u8>, BteError> {
        let started = Instant::now();
        let mut number = 1;
        loop {
            // Cloning fails only for a streaming body, which this client never sends.
            let Some(attempt) = request.try_clone() else {
                return Err(self.unreachable_error("the request cannot be repeated"));
            };
            let failure = match self.send_once(attempt, number).await {
                Ok(bytes) => return Ok(bytes),
                Err(failure) => failure,
            };
            let interval = failure.retry_after.unwrap_or(RETRY_INTERVAL * number);
            let has_sample = failure.is_unreachable && self.sample.is_some();
            let is_too_late = started.elapsed().saturating_add(interval) >= self.timeout;
            if !failure.is_retryable || has_sample || number == MAX_ATTEMPTS || is_too_late {
                return Err(failure);
            }
            tracing::debug!(?interval, %failure, "retrying a request");
            sleep(interval).await;
            number += 1;
        }
    }

    async fn send_once(&self, request: RequestBuilder, number: u32) -> Result<Vec<u8>, BteError> {
        let connection_failed = |error: reqwest::Error| BteError {
            is_unreachable: error.is_connect(),
            ..self.unreachable_error(&root_cause(&error))
        };
        let answer = request.send().await.map_err(connection_failed)?;
        let status = answer.status();
        if status.is_success() {
            let limit = self.max_answer_bytes;
            let body = read_body(answer, limit).await.map_err(connection_failed)?;
            return body.ok_or_else(|| {
                BteError::permanent_failure(format!(
                    "The response of the service is larger than {limit} bytes. Use fewer \
                     categories or one entity."
                ))
            });
        }
        let retry_after = answer.headers().get(header::RETRY_AFTER);
        let retry_after =
            retry_after.and_then(|it| parse_retry_after(it.to_str().ok()?, SystemTime::now()));
        let body = read_body(answer, MAX_ERROR_BYTES).await.ok().flatten();
        let status = status.as_u16();
        let reason = extract_error_text(&body.unwrap_or_default());
        let description = describe_http_status(status, number, retry_after, &reason);
        Err(BteError {
            is_retryable: matches!(status, 408 | 429 | 502..=504),
            retry_after,
            ..BteError::permanent_failure(format!("The service {description}"))
        })
    }

    fn unreachable_error(&self, cause: &str) -> BteError {
        let url = self.base.as_str().trim_end_matches('/');
        let reason = shorten_reason(cause);
        let message = format!("The service at {url} cannot be reached: {reason}.");
        BteError {
            is_retryable: true,
            ..BteError::permanent_failure(message)
        }
    }
}

/// Reads the body of a response. Returns `None` if the body is larger than `limit` bytes.
async fn read_body(
    mut answer: reqwest::Response,
    limit: usize,
) -> Result<Option<Vec<u8>>, reqwest::Error> {
    let announced = answer.content_length().unwrap_or_default();
    let mut bytes = Vec::new();
    if usize::try_from(announced).map_or(true, |announced| announced > limit) {
        return Ok(None);
    }
    while let Some(chunk) = answer.chunk().await? {
        if bytes.len() + chunk.len() > limit {
            return Ok(None);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(Some(bytes))
}

fn describe_http_status(
    status: u16,
    attempts: u32,
    retry_after: Option<Duration>,
    reason: &str,
) -> String {
    let attempts = format_quantity(usize::try_from(attempts).unwrap_or_default(), "attempt");
    let reason = if reason.is_empty() {
        ", without a reason.".to_owned()
    } else {
        format!(": {reason}")
    };
    match status {
        300..=399 => format!(
            "redirects to another address ({status}). The operator of this server must update the \
             configured address."
        ),
        429 | 503 => {
            let when = match retry_after.map_or(0, |it| it.as_secs()) {
                0 => "later".to_owned(),
                1 => "in 1 second".to_owned(),
                seconds => format!("in {seconds} seconds"),
            };
            format!("is busy ({status}) after {attempts}. Try again {when}.")
        }
        408 | 500.. => format!("failed ({status}) after {attempts}{reason}"),
        _ => format!("refused the query ({status}){reason}"),
    }
}

/// Extracts the error text from the body of an error response. TRAPI services send a string or an
/// object with a field `description`, web frameworks send a field `detail`. Returns an empty text
/// for other JSON values and for HTML.
fn extract_error_text(bytes: &[u8]) -> String {
    let text = match serde_json::from_slice(bytes) {
        Ok(Value::String(text)) => text,
        Ok(Value::Object(object)) => {
            let keys = ["description", "detail", "error", "message"];
            let text = keys.iter().find_map(|key| object.get(*key)?.as_str());
            text.unwrap_or_default().to_owned()
        }
        Ok(_) => String::new(),
        Err(_) if bytes.trim_ascii_start().starts_with(b"<") => String::new(),
        Err(_) => String::from_utf8_lossy(bytes).into_owned(),
    };
    shorten_reason(&text)
}

fn shorten_reason(text: &str) -> String {
    truncate(&to_single_line(text), MAX_REASON_CHARS)
}

/// Parses the base URL of a service. Removes `/query` from the end of its path and appends `/`. The
/// error describes why the URL is invalid.
fn parse_base_url(text: &str) -> Result<Url, String> {
    let mut url = Url::parse(text.trim()).map_err(|error| {
        format!("it is not a URL ({error}); an example is https://bte.transltr.io/v1")
    })?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err("it must begin with https:// or http://".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it must not contain a user name or a password".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("it must not contain ? or #".to_owned());
    }
    let path = url.path().trim_end_matches('/');
    // Users often configure the URL of the query operation, which ends with `/query`, instead of
    // the base URL.
    let path = path.strip_suffix("/query").unwrap_or(path);
    let path = format!("{path}/");
    url.set_path(&path);
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Parses the value of a `Retry-After` header: a number of seconds or a date (RFC 9110, 10.2.3).
/// Returns the time to wait from `now` on, or `None` for an invalid value. A date in the past means
/// zero.
fn parse_retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or(Duration::ZERO))
}

/// Returns the message of an error's innermost cause, because the message of the error itself
/// contains the URL.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    while let Some(deeper) = cause.and_then(std::error::Error::source) {
        cause = Some(deeper);
    }
    cause.map_or_else(|| "the connection failed".to_owned(), ToString::to_string)
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
