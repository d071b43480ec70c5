//! HTTP client of the services, with time-outs, retries, limits and errors for models.

use std::time::{Duration, SystemTime};

use reqwest::{Client, Method, StatusCode, Url, header, redirect};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    options::BteOptions,
    trapi::{MetaKnowledgeGraph, Query, QueryGraph, Response},
};
use crate::graph::model::{one_line, truncate};

/// Time-out of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Upper limit of the configured time-out.
const MAX_TIMEOUT: Duration = Duration::from_hours(24);
/// Maximum number of attempts of a request.
const MAX_ATTEMPTS: u32 = 3;
/// Interval before the second attempt. It doubles for each further attempt, unless the service sends
/// `Retry-After`.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of bytes to read of an error response.
const MAX_ERROR_BYTES: usize = 64 * 1024;
/// Maximum length of an error text of the service for the model, in characters.
const MAX_REASON_CHARS: usize = 300;

/// A client of one service. Clones share its connections.
#[derive(Debug, Clone)]
pub(super) struct ServiceClient {
    http: Client,
    base: Url,
    timeout: Duration,
    max_answer_bytes: usize,
}

/// A failed request. The text is for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Failure {
    #[error("The service at {url} cannot be reached: {reason}.")]
    Unreachable { url: String, reason: String },
    #[error(
        "The service did not respond completely within {} seconds. Use fewer categories or one \
         entity, or try again later.",
        after.as_secs_f64()
    )]
    Timeout { after: Duration },
    #[error("The service is busy ({status}) after {}.{}", attempts_text(*attempts), retry_advice(*retry_after))]
    Busy {
        status: u16,
        attempts: u32,
        retry_after: Option<Duration>,
    },
    #[error("The service refused the query ({status}){}", with_reason(reason))]
    Refused { status: u16, reason: String },
    #[error("The service failed ({status}) after {}{}", attempts_text(*attempts), with_reason(reason))]
    Broken {
        status: u16,
        attempts: u32,
        reason: String,
    },
    #[error(
        "The service redirects to another address ({status}). The operator of this server must \
         change the configured address."
    )]
    Moved { status: u16 },
    #[error(
        "The response of the service is larger than {limit} bytes. Use fewer categories or one \
         entity."
    )]
    TooLarge { limit: usize },
    #[error("The response of the service is invalid: {reason}.")]
    Unreadable { reason: String },
}

/// A failed attempt.
struct FailedAttempt {
    failure: Failure,
    /// Another attempt may succeed.
    is_retryable: bool,
    /// Interval that the service requests.
    retry_after: Option<Duration>,
}

impl ServiceClient {
    /// Creates a client without connecting. The error describes the problem of the address.
    pub(super) fn new(url: &str, options: &BteOptions) -> Result<Self, String> {
        let base = base(url)?;
        let mut builder = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            // A redirect could change the method, or the host that the user has chosen.
            .redirect(redirect::Policy::none())
            .user_agent(concat!("switchboard/", env!("CARGO_PKG_VERSION")));
        if is_loopback(&base) {
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(|error| root_cause(&error))?;
        Ok(Self {
            http,
            base,
            timeout: options.timeout,
            max_answer_bytes: options.max_answer_bytes,
        })
    }

    /// Returns the base URL of the service.
    pub(super) fn url(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// Returns the deadline of a call that begins now.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.timeout.min(MAX_TIMEOUT)
    }

    pub(super) async fn query(
        &self,
        query: &QueryGraph,
        deadline: Instant,
    ) -> Result<Response, Failure> {
        let body = serde_json::to_vec(&Query::new(query)).map_err(|error| Failure::Unreadable {
            reason: error.to_string(),
        })?;
        let url = self.address("query", &[]);
        self.send(Method::POST, url, Some(body), deadline).await
    }

    pub(super) async fn meta_knowledge_graph(&self) -> Result<MetaKnowledgeGraph, Failure> {
        self.get("meta_knowledge_graph", &[]).await
    }

    /// Sends a GET request.
    pub(super) async fn get<T: DeserializeOwned + Send + 'static>(
        &self,
        path: &str,
        parameters: &[(&str, &str)],
    ) -> Result<T, Failure> {
        let url = self.address(path, parameters);
        self.send(Method::GET, url, None, self.deadline()).await
    }

    fn address(&self, path: &str, parameters: &[(&str, &str)]) -> Url {
        let mut url = self.base.clone();
        // The base ends with `/`.
        url.set_path(&format!("{}{path}", self.base.path()));
        if !parameters.is_empty() {
            url.query_pairs_mut().extend_pairs(parameters);
        }
        url
    }

    async fn send<T: DeserializeOwned + Send + 'static>(
        &self,
        method: Method,
        url: Url,
        body: Option<Vec<u8>>,
        deadline: Instant,
    ) -> Result<T, Failure> {
        let attempts = self.attempts(method, url, body, deadline);
        let timeout = Failure::Timeout {
            after: self.timeout,
        };
        let bytes = timeout_at(deadline, attempts)
            .await
            .map_err(|_| timeout)??;
        // Parsing tens of megabytes would block other tasks.
        let parse = move || serde_json::from_slice(&bytes);
        let parsed = tokio::task::spawn_blocking(parse).await;
        let unreadable = |reason: String| Failure::Unreadable {
            reason: truncate(&one_line(&reason), MAX_REASON_CHARS),
        };
        parsed
            .map_err(|error| unreadable(error.to_string()))?
            .map_err(|error| unreadable(error.to_string()))
    }

    async fn attempts(
        &self,
        method: Method,
        url: Url,
        body: Option<Vec<u8>>,
        deadline: Instant,
    ) -> Result<Vec<u8>, Failure> {
        let mut number = 1;
        loop {
            let failed = match self
                .attempt(method.clone(), url.clone(), body.clone(), number)
                .await
            {
                Ok(bytes) => return Ok(bytes),
                Err(failed) => failed,
            };
            let interval = retry_interval(number, failed.retry_after);
            let too_late = Instant::now()
                .checked_add(interval)
                .is_none_or(|then| then >= deadline);
            if !failed.is_retryable || number == MAX_ATTEMPTS || too_late {
                return Err(failed.failure);
            }
            tracing::debug!(?interval, failure = %failed.failure, "retrying a request");
            sleep(interval).await;
            number += 1;
        }
    }

    async fn attempt(
        &self,
        method: Method,
        url: Url,
        body: Option<Vec<u8>>,
        number: u32,
    ) -> Result<Vec<u8>, FailedAttempt> {
        let mut request = self
            .http
            .request(method, url)
            .header(header::ACCEPT, "application/json");
        if let Some(body) = body {
            request = request
                .header(header::CONTENT_TYPE, "application/json")
                .body(body);
        }
        // Queries have no side effects, so they are always safe to retry.
        let connection_failed = |error: reqwest::Error| FailedAttempt {
            failure: self.unreachable(&root_cause(&error)),
            is_retryable: true,
            retry_after: None,
        };
        let answer = request.send().await.map_err(connection_failed)?;
        let status = answer.status();
        if status.is_success() {
            return self.body(answer).await.map_err(|error| match error {
                Some(error) => connection_failed(error),
                None => FailedAttempt {
                    failure: Failure::TooLarge {
                        limit: self.max_answer_bytes,
                    },
                    is_retryable: false,
                    retry_after: None,
                },
            });
        }
        let retry_after = answer.headers().get(header::RETRY_AFTER);
        let retry_after =
            retry_after.and_then(|it| parse_retry_after(it.to_str().ok()?, SystemTime::now()));
        Err(FailedAttempt {
            failure: unsuccessful(status, number, retry_after, answer).await,
            is_retryable: matches!(status.as_u16(), 408 | 429 | 502..=504),
            retry_after,
        })
    }

    /// Reads the body. The error is `None` for a body that is too large.
    async fn body(&self, mut answer: reqwest::Response) -> Result<Vec<u8>, Option<reqwest::Error>> {
        let limit = self.max_answer_bytes;
        let announced = answer.content_length().unwrap_or(0);
        if usize::try_from(announced).map_or(true, |announced| announced > limit) {
            return Err(None);
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(Some)? {
            if bytes.len() + chunk.len() > limit {
                return Err(None);
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    fn unreachable(&self, reason: &str) -> Failure {
        Failure::Unreachable {
            url: self.url().to_owned(),
            reason: truncate(&one_line(reason), MAX_REASON_CHARS),
        }
    }
}

async fn unsuccessful(
    status: StatusCode,
    attempts: u32,
    retry_after: Option<Duration>,
    mut answer: reqwest::Response,
) -> Failure {
    let number = status.as_u16();
    if status.is_redirection() {
        return Failure::Moved { status: number };
    }
    if matches!(number, 429 | 503) {
        return Failure::Busy {
            status: number,
            attempts,
            retry_after,
        };
    }
    let mut bytes = Vec::new();
    while bytes.len() < MAX_ERROR_BYTES
        && let Ok(Some(chunk)) = answer.chunk().await
    {
        bytes.extend_from_slice(&chunk);
    }
    bytes.truncate(MAX_ERROR_BYTES);
    let reason = error_text(&bytes);
    if status.is_server_error() || number == 408 {
        Failure::Broken {
            status: number,
            attempts,
            reason,
        }
    } else {
        Failure::Refused {
            status: number,
            reason,
        }
    }
}

/// Extracts the error text: TRAPI services send a string or a `description`, web frameworks a
/// `detail`.
fn error_text(bytes: &[u8]) -> String {
    let text = match serde_json::from_slice(bytes) {
        Ok(Value::String(text)) => text,
        Ok(Value::Object(object)) => {
            let keys = ["description", "detail", "error", "message"];
            let text = keys.iter().find_map(|key| object.get(*key)?.as_str());
            text.unwrap_or_default().to_owned()
        }
        Ok(_) => String::new(),
        // An HTML page is not useful for a model.
        Err(_) if bytes.trim_ascii_start().starts_with(b"<") => String::new(),
        Err(_) => String::from_utf8_lossy(bytes).into_owned(),
    };
    truncate(&one_line(&text), MAX_REASON_CHARS)
}

/// Parses the base URL and appends `/`.
fn base(text: &str) -> Result<Url, String> {
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
    // Users often copy the address of a query.
    let path = path.strip_suffix("/query").unwrap_or(path);
    let path = format!("{path}/");
    url.set_path(&path);
    Ok(url)
}

/// Returns whether the host is this machine, which a proxy cannot reach.
fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            let address = host.parse::<std::net::IpAddr>();
            address.is_ok_and(|address| address.is_loopback())
        }
        None => false,
    }
}

fn retry_interval(number: u32, retry_after: Option<Duration>) -> Duration {
    retry_after.unwrap_or_else(|| RETRY_INTERVAL * 2_u32.saturating_pow(number.saturating_sub(1)))
}

/// Parses `Retry-After`: seconds or a date (RFC 9110, 10.2.3).
fn parse_retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or(Duration::ZERO))
}

/// Returns the innermost cause of an error, without the address.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    // The text of the error itself contains the address.
    if std::ptr::addr_eq(cause, error) {
        return if error.is_timeout() {
            "it took too long".to_owned()
        } else {
            "the connection failed".to_owned()
        };
    }
    cause.to_string()
}

fn attempts_text(number: u32) -> String {
    match number {
        1 => "1 attempt".to_owned(),
        number => format!("{number} attempts"),
    }
}

fn retry_advice(retry_after: Option<Duration>) -> String {
    match retry_after.map(|it| it.as_secs()) {
        None | Some(0) => " Try again later.".to_owned(),
        Some(1) => " Try again in 1 second.".to_owned(),
        Some(seconds) if seconds <= MAX_TIMEOUT.as_secs() => {
            format!(" Try again in {seconds} seconds.")
        }
        Some(_) => " It is not available today.".to_owned(),
    }
}

fn with_reason(reason: &str) -> String {
    if reason.is_empty() {
        ", without a reason.".to_owned()
    } else {
        format!(": {reason}")
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
