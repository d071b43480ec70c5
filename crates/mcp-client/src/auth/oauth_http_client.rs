//! HTTP client for OAuth. Checks each URL with `NetworkGuard`, and limits response size and time.

pub(crate) mod ssrf_guard;

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
        oauth_http_client::ssrf_guard::{NetworkGuard, TargetHosts},
    },
    config::redaction::redact_url,
    primitives::error::root_cause,
};

/// Time limit of an OAuth HTTP request, including the response body.
const TIMEOUT: Duration = Duration::from_secs(15);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size in bytes of a metadata or token response. Usual responses have a few kilobytes.
const MAX_ANSWER: usize = 256 * 1024;
const MAX_REDIRECTS: usize = 3;

/// HTTP client for OAuth requests: metadata, client registration and tokens.
#[derive(Clone)]
pub(super) struct OAuthHttpClient {
    client: Client,
    targets: TargetHosts,
    pub(super) guard: NetworkGuard,
}

/// HTTP response with its JSON body. `json` is `Null` if the body is not JSON.
pub(super) struct JsonResponse {
    pub(super) status: StatusCode,
    pub(super) json: Value,
}

impl OAuthHttpClient {
    pub(super) fn new(guard: NetworkGuard) -> Result<Self, AuthError> {
        let targets = TargetHosts::default();
        let mut builder = Client::builder()
            .user_agent(concat!("switchboard/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TIMEOUT)
            // reqwest follows no redirects: `get_json` checks each redirect target first, and
            // `send_post` rejects redirects.
            .redirect(Policy::none())
            .referer(false)
            .dns_resolver(guard.build_resolver(targets.clone()));
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

    /// Fetches a JSON object. Follows at most three redirects. [`NetworkGuard`] checks the URL and
    /// the target of each redirect. Returns `None` for HTTP status 4xx and for a body that is not a
    /// JSON object.
    pub(super) async fn get_json(
        &self,
        what: &'static str,
        url: &Url,
    ) -> Result<Option<Value>, AuthError> {
        let mut url = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            self.guard.check_url(what, &url)?;
            self.targets.add_host(&url);
            let request = self.client.get(url.clone());
            let sent = request.header(ACCEPT, "application/json").send().await;
            let response = sent.map_err(|error| unreachable_error(what, &url, &error))?;
            let status = response.status();
            if status.is_redirection() {
                url = redirect_target(what, &url, &response)?;
                continue;
            }
            if !status.is_success() {
                return if status.is_client_error() {
                    Ok(None)
                } else {
                    Err(bad_response(what, &url, format!("HTTP {status}")))
                };
            }
            let answer = read_response(what, &url, response).await?;
            // Web servers often send an HTML page with status 200 if metadata do not exist.
            return Ok(Some(answer.json).filter(Value::is_object));
        }
        let reason = format!("more than {MAX_REDIRECTS} redirects");
        Err(bad_response(what, &url, reason))
    }

    /// Sends a POST request. Rejects redirects, because only this URL may receive the credentials.
    pub(super) async fn send_post(
        &self,
        what: &'static str,
        url: &Url,
        (content_type, body): (&str, String),
        authorization: Option<HeaderValue>,
    ) -> Result<JsonResponse, AuthError> {
        self.guard.check_url(what, url)?;
        self.targets.add_host(url);
        let mut request = self
            .client
            .post(url.clone())
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, content_type)
            .body(body);
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let sent = request.send().await;
        let response = sent.map_err(|error| unreachable_error(what, url, &error))?;
        if response.status().is_redirection() {
            return Err(bad_response(what, url, "a redirect"));
        }
        read_response(what, url, response).await
    }
}

fn redirect_target(what: &'static str, url: &Url, response: &Response) -> Result<Url, AuthError> {
    response
        .headers()
        .get(LOCATION)
        .and_then(|location| location.to_str().ok())
        .and_then(|location| url.join(location).ok())
        .ok_or_else(|| bad_response(what, url, "a redirect without a valid target"))
}

async fn read_response(
    what: &'static str,
    url: &Url,
    mut response: Response,
) -> Result<JsonResponse, AuthError> {
    let status = response.status();
    let mut body = Vec::new();
    let failed = |error| unreachable_error(what, url, &error);
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if body.len() + chunk.len() > MAX_ANSWER {
            let reason = format!("more than {MAX_ANSWER} bytes");
            return Err(bad_response(what, url, reason));
        }
        body.extend_from_slice(&chunk);
    }
    let json = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Ok(JsonResponse { status, json })
}

fn unreachable_error(what: &'static str, url: &Url, error: &reqwest::Error) -> AuthError {
    let (url, reason) = (redact_url(url.as_str()), root_cause(error));
    AuthError::Failed(format!("no response from the {what} `{url}`: {reason}"))
}

pub(super) fn bad_response(what: &'static str, url: &Url, reason: impl Display) -> AuthError {
    let url = redact_url(url.as_str());
    AuthError::Failed(format!(
        "invalid response from the {what} `{url}`: {reason}"
    ))
}

/// Encodes name-value pairs as `application/x-www-form-urlencoded`.
pub(super) fn encode_form(pairs: &[(&str, &str)]) -> String {
    // The form is encoded as the query of a dummy URL: reqwest exports no other form encoder.
    let Ok(mut carrier) = Url::parse("http://h/") else {
        return String::new();
    };
    carrier.query_pairs_mut().extend_pairs(pairs);
    carrier.query().unwrap_or_default().to_owned()
}
