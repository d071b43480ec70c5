//! HTTP to the services: time-outs, retries, limits, and failures in words that a model can act on.

use std::time::{Duration, SystemTime};

use reqwest::{Client, Method, StatusCode, Url, header, redirect};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    options::BteOptions,
    trapi::{MetaKnowledgeGraph, Query, QueryGraph, Response},
};
use crate::graph::model::{cut, one_line};

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(10);
/// No call takes longer, whatever was set.
const LONGEST: Duration = Duration::from_hours(24);
/// How often a request is sent at most.
const ATTEMPTS: u32 = 3;
/// The pause before the second attempt, which doubles from then on, if the service wishes no other.
const PAUSE: Duration = Duration::from_secs(1);
/// How much of an unsuccessful answer is read.
const SAID_BYTES: usize = 64 * 1024;
/// How much of what the service says goes to the model, in characters.
const SAID: usize = 300;

/// A service on the web. Clones share its connections.
#[derive(Debug, Clone)]
pub(super) struct ServiceClient {
    http: Client,
    base: Url,
    timeout: Duration,
    max_answer_bytes: usize,
}

/// Why there is no answer. The text is for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Failure {
    #[error("The service at {url} cannot be reached: {reason}.")]
    Unreachable { url: String, reason: String },
    #[error(
        "The service gave no whole answer within {} seconds. Ask for less (fewer categories, one \
         entity), or try again later.",
        after.as_secs_f64()
    )]
    Slow { after: Duration },
    #[error("The service is busy ({status}) after {}.{}", times(*attempts), advice(*wish))]
    Busy {
        status: u16,
        attempts: u32,
        wish: Option<Duration>,
    },
    #[error("The service refused the query ({status}){}", because(said))]
    Refused { status: u16, said: String },
    #[error("The service failed ({status}) after {}{}", times(*attempts), because(said))]
    Broken {
        status: u16,
        attempts: u32,
        said: String,
    },
    #[error(
        "The service is at another address ({status}), so nothing was asked. Whoever runs this \
         server must set its address anew."
    )]
    Moved { status: u16 },
    #[error(
        "The answer of the service is larger than {limit} bytes and was not read. Ask for less: \
         fewer categories, one entity."
    )]
    TooLarge { limit: usize },
    #[error("The answer of the service cannot be read: {reason}.")]
    Unreadable { reason: String },
}

/// An attempt that failed.
struct Failed {
    failure: Failure,
    /// Whether another attempt may do better.
    again: bool,
    /// How long the service wishes to be left alone.
    wish: Option<Duration>,
}

impl ServiceClient {
    /// It does not connect yet. The error says what is wrong with the address.
    pub(super) fn new(url: &str, options: &BteOptions) -> Result<Self, String> {
        let base = base(url)?;
        let mut builder = Client::builder()
            .connect_timeout(CONNECT)
            // A query that is sent elsewhere as a GET, or to a host that nobody chose, helps nobody.
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

    /// The address of the service.
    pub(super) fn url(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// When a call that begins now must be over.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.timeout.min(LONGEST)
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

    /// What is at a path, with these parameters.
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
        let slow = Failure::Slow {
            after: self.timeout,
        };
        let bytes = timeout_at(deadline, attempts).await.map_err(|_| slow)??;
        // Tens of megabytes take a while, in which others must not wait.
        let read = move || serde_json::from_slice(&bytes);
        let read = tokio::task::spawn_blocking(read).await;
        let unreadable = |reason: String| Failure::Unreadable {
            reason: cut(&one_line(&reason), SAID),
        };
        read.map_err(|error| unreadable(error.to_string()))?
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
            let pause = pause(number, failed.wish);
            let too_late = Instant::now()
                .checked_add(pause)
                .is_none_or(|then| then >= deadline);
            if !failed.again || number == ATTEMPTS || too_late {
                return Err(failed.failure);
            }
            tracing::debug!(?pause, failure = %failed.failure, "trying again after a pause");
            sleep(pause).await;
            number += 1;
        }
    }

    async fn attempt(
        &self,
        method: Method,
        url: Url,
        body: Option<Vec<u8>>,
        number: u32,
    ) -> Result<Vec<u8>, Failed> {
        let mut request = self
            .http
            .request(method, url)
            .header(header::ACCEPT, "application/json");
        if let Some(body) = body {
            request = request
                .header(header::CONTENT_TYPE, "application/json")
                .body(body);
        }
        // Queries change nothing, so they may be sent again whatever became of them.
        let lost = |error: reqwest::Error| Failed {
            failure: self.unreachable(&root_cause(&error)),
            again: true,
            wish: None,
        };
        let answer = request.send().await.map_err(lost)?;
        let status = answer.status();
        if status.is_success() {
            return self.body(answer).await.map_err(|error| match error {
                Some(error) => lost(error),
                None => Failed {
                    failure: Failure::TooLarge {
                        limit: self.max_answer_bytes,
                    },
                    again: false,
                    wish: None,
                },
            });
        }
        let wish = answer.headers().get(header::RETRY_AFTER);
        let wish = wish.and_then(|it| retry_after(it.to_str().ok()?, SystemTime::now()));
        Err(Failed {
            failure: unsuccessful(status, number, wish, answer).await,
            again: matches!(status.as_u16(), 408 | 429 | 502..=504),
            wish,
        })
    }

    /// The whole body. The error is `None` for one that is too large.
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
            reason: cut(&one_line(reason), SAID),
        }
    }
}

async fn unsuccessful(
    status: StatusCode,
    attempts: u32,
    wish: Option<Duration>,
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
            wish,
        };
    }
    let mut bytes = Vec::new();
    while bytes.len() < SAID_BYTES
        && let Ok(Some(chunk)) = answer.chunk().await
    {
        bytes.extend_from_slice(&chunk);
    }
    bytes.truncate(SAID_BYTES);
    let said = reason(&bytes);
    if status.is_server_error() || number == 408 {
        Failure::Broken {
            status: number,
            attempts,
            said,
        }
    } else {
        Failure::Refused {
            status: number,
            said,
        }
    }
}

/// TRAPI services give a string, or an object with a `description`; frameworks give a `detail`.
fn reason(bytes: &[u8]) -> String {
    let text = match serde_json::from_slice(bytes) {
        Ok(Value::String(text)) => text,
        Ok(Value::Object(object)) => {
            let keys = ["description", "detail", "error", "message"];
            let text = keys.iter().find_map(|key| object.get(*key)?.as_str());
            text.unwrap_or_default().to_owned()
        }
        Ok(_) => String::new(),
        // A page of HTML says nothing to a model.
        Err(_) if bytes.trim_ascii_start().starts_with(b"<") => String::new(),
        Err(_) => String::from_utf8_lossy(bytes).into_owned(),
    };
    cut(&one_line(&text), SAID)
}

/// The base URL with a `/` at its end, so that paths come below it.
fn base(text: &str) -> Result<Url, String> {
    let mut url = Url::parse(text.trim()).map_err(|error| {
        format!("it is no URL ({error}); write it like https://bte.transltr.io/v1")
    })?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err("it must begin with https:// or http://".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it must not hold a user name or a password".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("it must have no part after ? or #".to_owned());
    }
    let path = url.path().trim_end_matches('/');
    // What people copy is often the address of a query.
    let path = path.strip_suffix("/query").unwrap_or(path);
    let path = format!("{path}/");
    url.set_path(&path);
    Ok(url)
}

/// A proxy cannot reach what listens on this machine only.
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

fn pause(number: u32, wish: Option<Duration>) -> Duration {
    wish.unwrap_or_else(|| PAUSE * 2_u32.saturating_pow(number.saturating_sub(1)))
}

/// Seconds, or a date (RFC 9110, 10.2.3).
fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or(Duration::ZERO))
}

/// What is at the bottom of an error, without the address.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    // Its own text would repeat the address.
    if std::ptr::addr_eq(cause, error) {
        return if error.is_timeout() {
            "it took too long".to_owned()
        } else {
            "the connection failed".to_owned()
        };
    }
    cause.to_string()
}

fn times(number: u32) -> String {
    match number {
        1 => "1 attempt".to_owned(),
        number => format!("{number} attempts"),
    }
}

fn advice(wish: Option<Duration>) -> String {
    match wish.map(|wish| wish.as_secs()) {
        None | Some(0) => " Try again later.".to_owned(),
        Some(1) => " It wants to be asked again in a second.".to_owned(),
        Some(seconds) if seconds <= LONGEST.as_secs() => {
            format!(" It wants to be asked again in {seconds} seconds.")
        }
        Some(_) => " It does not want to be asked again today.".to_owned(),
    }
}

fn because(said: &str) -> String {
    if said.is_empty() {
        ", without a reason.".to_owned()
    } else {
        format!(": {said}")
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
