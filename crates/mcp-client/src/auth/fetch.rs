//! Requests to discovered URLs: checked by the guard, and limited in size and time.

pub(crate) mod guard;

use std::{fmt::Display, time::Duration};

use reqwest::{
    Client, Response, StatusCode, Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION},
    redirect::Policy,
};
use serde_json::Value;

use crate::{
    auth::{
        error::AuthError,
        fetch::guard::{Guard, Targets},
    },
    config::show::shown_url,
    primitives::error::root_cause,
};

/// Time limit of an HTTP request, including its response body.
const TIMEOUT: Duration = Duration::from_secs(15);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of a response in bytes. Metadata and tokens need a few kilobytes.
const MAX_ANSWER: usize = 256 * 1024;
const MAX_REDIRECTS: usize = 3;

/// HTTP client for requests to authorization servers.
#[derive(Clone)]
pub(super) struct Fetch {
    client: Client,
    targets: Targets,
    pub(super) guard: Guard,
}

/// HTTP response with a JSON body. A body that is not JSON becomes `Null`.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) json: Value,
}

impl Fetch {
    pub(super) fn new(guard: Guard) -> Result<Self, AuthError> {
        let targets = Targets::default();
        let mut builder = Client::builder()
            .user_agent(concat!("switchboard/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TIMEOUT)
            // The code below follows redirects itself: after a check of the URL, and never with a
            // secret.
            .redirect(Policy::none())
            .referer(false)
            .dns_resolver(guard.resolver(targets.clone()));
        if guard.is_loopback() {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| AuthError::Configuration {
            reason: root_cause(&error),
        })?;
        Ok(Self {
            client,
            targets,
            guard,
        })
    }

    /// Fetches a JSON document. Returns `None` if the document does not exist.
    pub(super) async fn get(
        &self,
        what: &'static str,
        url: &Url,
    ) -> Result<Option<Value>, AuthError> {
        let mut url = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            self.guard.check(what, &url)?;
            self.targets.add(&url);
            let request = self
                .client
                .get(url.clone())
                .header(ACCEPT, "application/json");
            let response = request
                .send()
                .await
                .map_err(|error| unreachable(what, &url, &error))?;
            let status = response.status();
            if status.is_redirection() {
                url = target(what, &url, &response)?;
                continue;
            }
            if !status.is_success() {
                return if status.is_client_error() {
                    Ok(None)
                } else {
                    Err(bad(what, &url, format!("HTTP {status}")))
                };
            }
            let answer = read(what, &url, response).await?;
            return match answer.json {
                Value::Object(_) => Ok(Some(answer.json)),
                // Many web servers return their web application for every unknown path.
                _ => Ok(None),
            };
        }
        Err(bad(
            what,
            &url,
            format!("more than {MAX_REDIRECTS} redirects"),
        ))
    }

    /// Sends a POST request. Does not follow redirects, because only this URL may receive the body.
    pub(super) async fn post(
        &self,
        what: &'static str,
        url: &Url,
        (content_type, body): (&str, String),
        authorization: Option<HeaderValue>,
    ) -> Result<Answer, AuthError> {
        self.guard.check(what, url)?;
        self.targets.add(url);
        let mut request = self
            .client
            .post(url.clone())
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, content_type)
            .body(body);
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let response = request
            .send()
            .await
            .map_err(|error| unreachable(what, url, &error))?;
        if response.status().is_redirection() {
            return Err(bad(what, url, "a redirect"));
        }
        read(what, url, response).await
    }
}

fn target(what: &'static str, url: &Url, response: &Response) -> Result<Url, AuthError> {
    response
        .headers()
        .get(LOCATION)
        .and_then(|location| location.to_str().ok())
        .and_then(|location| url.join(location).ok())
        .ok_or_else(|| bad(what, url, "a redirect without a valid target"))
}

async fn read(what: &'static str, url: &Url, mut response: Response) -> Result<Answer, AuthError> {
    let status = response.status();
    let mut body = Vec::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| unreachable(what, url, &error))?
    {
        if body.len() + chunk.len() > MAX_ANSWER {
            return Err(bad(what, url, format!("more than {MAX_ANSWER} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    let json = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Ok(Answer { status, json })
}

fn unreachable(what: &'static str, url: &Url, error: &reqwest::Error) -> AuthError {
    let (url, reason) = (shown_url(url.as_str()), root_cause(error));
    AuthError::Failed(format!("no answer from the {what} `{url}`: {reason}"))
}

pub(super) fn bad(what: &'static str, url: &Url, reason: impl Display) -> AuthError {
    let url = shown_url(url.as_str());
    AuthError::Failed(format!(
        "the answer of the {what} `{url}` is not valid: {reason}"
    ))
}

/// Encodes pairs as `application/x-www-form-urlencoded`.
pub(super) fn form(pairs: &[(&str, &str)]) -> String {
    // The form encoder of the `url` crate is only available through a URL.
    let Ok(mut carrier) = Url::parse("http://h/") else {
        return String::new();
    };
    carrier.query_pairs_mut().extend_pairs(pairs);
    carrier.query().unwrap_or_default().to_owned()
}
