//! `serve`: address, access tokens and limits of the HTTP server.

use std::{fmt, net::SocketAddr, time::Duration};

use secrecy::SecretString;
use serde_json::Value;
use switchboard_domain::Principal;
use switchboard_server::{AccessToken, SHORTEST_TOKEN, ServerOptions};

use super::{document::Fields, error::Problem};

/// Settings of the HTTP server. `None` is not configured.
#[derive(Clone, Default)]
pub(crate) struct ServeConfig {
    pub(crate) bind: Option<SocketAddr>,
    pub(crate) tokens: Option<Vec<AccessToken>>,
    /// Host names of the server.
    pub(crate) hosts: Option<Vec<String>>,
    /// Origins whose pages may use the server.
    pub(crate) origins: Option<Vec<String>>,
    max_runs: Option<u32>,
    max_runs_each: Option<u32>,
    max_requests: Option<u32>,
    max_requests_each: Option<u32>,
    max_connections: Option<u32>,
    max_body: Option<u32>,
    header_time: Option<Duration>,
    body_time: Option<Duration>,
    write_time: Option<Duration>,
    approval_time: Option<Duration>,
    drain_time: Option<Duration>,
    keep_alive: Option<Duration>,
    /// The tokens as text, for redaction. `tokens` has only their digests.
    secrets: Vec<SecretString>,
}

impl fmt::Debug for ServeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServeConfig")
            .field("bind", &self.bind)
            .field("tokens", &self.tokens.as_ref().map(Vec::len))
            .field("hosts", &self.hosts)
            .field("origins", &self.origins)
            .finish_non_exhaustive()
    }
}

const KEYS: [&str; 16] = [
    "bind",
    "tokens",
    "hosts",
    "origins",
    "max_runs",
    "max_runs_each",
    "max_requests",
    "max_requests_each",
    "max_connections",
    "max_body",
    "header_time",
    "body_time",
    "write_time",
    "approval_time",
    "drain_time",
    "keep_alive",
];

impl ServeConfig {
    /// Merges `over`, key by key.
    #[must_use]
    pub(super) fn merged_with(mut self, over: Self) -> Self {
        self.secrets.extend(over.secrets);
        Self {
            secrets: self.secrets,
            bind: over.bind.or(self.bind),
            tokens: over.tokens.or(self.tokens),
            hosts: over.hosts.or(self.hosts),
            origins: over.origins.or(self.origins),
            max_runs: over.max_runs.or(self.max_runs),
            max_runs_each: over.max_runs_each.or(self.max_runs_each),
            max_requests: over.max_requests.or(self.max_requests),
            max_requests_each: over.max_requests_each.or(self.max_requests_each),
            max_connections: over.max_connections.or(self.max_connections),
            max_body: over.max_body.or(self.max_body),
            header_time: over.header_time.or(self.header_time),
            body_time: over.body_time.or(self.body_time),
            write_time: over.write_time.or(self.write_time),
            approval_time: over.approval_time.or(self.approval_time),
            drain_time: over.drain_time.or(self.drain_time),
            keep_alive: over.keep_alive.or(self.keep_alive),
        }
    }

    /// Returns the tokens of all files, including replaced ones.
    pub(crate) fn secrets(&self) -> &[SecretString] {
        &self.secrets
    }

    pub(crate) fn options(&self) -> ServerOptions {
        let mut options = ServerOptions::default();
        let count = |to: &mut usize, from: Option<u32>| {
            if let Some(from) = from.and_then(|it| usize::try_from(it).ok()) {
                *to = from;
            }
        };
        count(&mut options.max_runs, self.max_runs);
        count(&mut options.max_runs_each, self.max_runs_each);
        count(&mut options.max_requests, self.max_requests);
        count(&mut options.max_requests_each, self.max_requests_each);
        count(&mut options.max_connections, self.max_connections);
        count(&mut options.max_body, self.max_body);
        let time = |to: &mut Duration, from: Option<Duration>| *to = from.unwrap_or(*to);
        time(&mut options.header_time, self.header_time);
        time(&mut options.body_time, self.body_time);
        time(&mut options.write_time, self.write_time);
        time(&mut options.approval_time, self.approval_time);
        time(&mut options.drain_time, self.drain_time);
        time(&mut options.keep_alive, self.keep_alive);
        options.tokens = self.tokens.clone().unwrap_or_default();
        options.hosts = self.hosts.clone().unwrap_or_default();
        let origins = self.origins.iter().flatten();
        options.origins = origins.filter_map(|origin| origin.parse().ok()).collect();
        options
    }
}

pub(super) fn read(value: &Value) -> Result<ServeConfig, Problem> {
    let fields = Fields::of(value, "serve", &KEYS)?;
    Ok(ServeConfig {
        bind: fields.read(
            "bind",
            "an address with its port, such as 127.0.0.1:8484",
            |value| value.as_str()?.trim().parse().ok(),
        )?,
        tokens: fields.get("tokens").map(tokens).transpose()?,
        hosts: fields.read("hosts", "a list of host names without ports", |value| {
            let is_name = |name: &&str| {
                !name.is_empty()
                    && name
                        .chars()
                        .all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
            };
            let names = value.as_array()?.iter();
            let names = names.map(|name| Some(name.as_str().filter(is_name)?.to_owned()));
            names.collect()
        })?,
        origins: fields.read(
            "origins",
            "a list of origins such as https://app.example.com",
            |value| {
                let origins = value.as_array()?.iter();
                origins.map(|origin| origin_of(origin.as_str()?)).collect()
            },
        )?,
        max_runs: fields.count("max_runs")?,
        max_runs_each: fields.count("max_runs_each")?,
        max_requests: fields.count("max_requests")?,
        max_requests_each: fields.count("max_requests_each")?,
        max_connections: fields.count("max_connections")?,
        max_body: fields.count("max_body")?,
        header_time: fields.seconds("header_time")?,
        body_time: fields.seconds("body_time")?,
        write_time: fields.seconds("write_time")?,
        approval_time: fields.seconds("approval_time")?,
        drain_time: fields.seconds("drain_time")?,
        keep_alive: fields.seconds("keep_alive")?,
        secrets: fields.get("tokens").map(secrets).unwrap_or_default(),
    })
}

fn secrets(tokens: &Value) -> Vec<SecretString> {
    let items = tokens.as_array().into_iter().flatten();
    let texts = items.filter_map(|item| item.as_str().or_else(|| item.get("token")?.as_str()));
    texts.map(SecretString::from).collect()
}

/// Returns an origin as browsers send it: scheme, host and port.
fn origin_of(text: &str) -> Option<String> {
    let host = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"))?;
    let is_host = !host.is_empty()
        && host
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._:[]".contains(c));
    is_host.then(|| text.to_owned())
}

/// Parses a list of tokens. Each is a string, or a map with its principal.
fn tokens(value: &Value) -> Result<Vec<AccessToken>, Problem> {
    let Some(items) = value.as_array().filter(|items| !items.is_empty()) else {
        return Err(Problem::wrong(
            "serve.tokens",
            "a list of tokens, not empty",
        ));
    };
    let each = items.iter().enumerate();
    each.map(|(n, item)| {
        let place = format!("serve.tokens.{n}");
        let (text, principal) = if item.is_string() {
            (item.as_str().map(str::to_owned), Principal::default())
        } else {
            let fields = Fields::of(item, &place, &["token", "user", "tenant"])?;
            let principal = Principal {
                tenant: fields.text("tenant")?.unwrap_or_default(),
                user: fields.text("user")?.unwrap_or_default(),
            };
            (fields.text("token")?, principal)
        };
        let token = text.and_then(|text| AccessToken::new(&SecretString::from(text), principal));
        // The error must not contain the value.
        token.ok_or_else(|| {
            let expected = format!(
                "a token of at least {SHORTEST_TOKEN} letters, digits or signs, without spaces; `openssl rand -hex 32` \
                 makes one"
            );
            Problem::wrong(place, expected)
        })
    })
    .collect()
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod tests;
