//! Configuration section `serve`: address, access tokens and limits of the HTTP server.

use std::{
    net::SocketAddr,
    num::{NonZero, NonZeroUsize},
    time::Duration,
};

use secrecy::SecretString;
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, Unexpected},
};
use serde_json::Value;
use switchboard_domain::Principal;
use switchboard_server::{AccessToken, MIN_TOKEN_LENGTH, ServerOptions};

use super::field_parsing::{deserialize_converted, deserialize_seconds};

/// Settings of the HTTP server. A setting is `None` if it is not configured.
#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a map of settings")]
pub(crate) struct ServeConfig {
    #[serde(deserialize_with = "deserialize_address")]
    pub(crate) bind: Option<SocketAddr>,
    #[serde(deserialize_with = "deserialize_tokens")]
    tokens: Option<Vec<TokenConfig>>,
    /// Host names that requests may use, in addition to the listening address and `localhost`.
    /// Requests with other host names are refused.
    #[serde(deserialize_with = "deserialize_hosts")]
    pub(crate) hosts: Option<Vec<String>>,
    /// Web origins whose pages may send requests to the server from a browser.
    #[serde(deserialize_with = "deserialize_origins")]
    pub(crate) origins: Option<Vec<String>>,
    max_runs: Option<NonZeroUsize>,
    max_runs_each: Option<NonZeroUsize>,
    max_requests: Option<NonZeroUsize>,
    max_requests_each: Option<NonZeroUsize>,
    max_connections: Option<NonZeroUsize>,
    max_body: Option<NonZeroUsize>,
    #[serde(deserialize_with = "deserialize_seconds")]
    header_time: Option<Duration>,
    #[serde(deserialize_with = "deserialize_seconds")]
    body_time: Option<Duration>,
    #[serde(deserialize_with = "deserialize_seconds")]
    write_time: Option<Duration>,
    #[serde(deserialize_with = "deserialize_seconds")]
    approval_time: Option<Duration>,
    #[serde(deserialize_with = "deserialize_seconds")]
    drain_time: Option<Duration>,
    #[serde(deserialize_with = "deserialize_seconds")]
    keep_alive: Option<Duration>,
}

/// An access token that HTTP clients must send.
#[derive(Clone)]
struct TokenConfig {
    access: AccessToken,
    /// Text of the token, which is redacted in output. The field `access` has only its digest.
    text: SecretString,
}

impl ServeConfig {
    /// Returns the texts of the access tokens, so that output can be redacted.
    pub(crate) fn token_secrets(&self) -> impl Iterator<Item = &SecretString> {
        self.tokens.iter().flatten().map(|token| &token.text)
    }

    pub(crate) fn server_options(&self) -> ServerOptions {
        let mut options = ServerOptions::default();
        override_if_configured(&mut options.max_runs, self.max_runs);
        override_if_configured(&mut options.max_runs_each, self.max_runs_each);
        override_if_configured(&mut options.max_requests, self.max_requests);
        override_if_configured(&mut options.max_requests_each, self.max_requests_each);
        override_if_configured(&mut options.max_connections, self.max_connections);
        override_if_configured(&mut options.max_body, self.max_body);
        options.header_time = self.header_time.unwrap_or(options.header_time);
        options.body_time = self.body_time.unwrap_or(options.body_time);
        options.write_time = self.write_time.unwrap_or(options.write_time);
        options.approval_time = self.approval_time.unwrap_or(options.approval_time);
        options.drain_time = self.drain_time.unwrap_or(options.drain_time);
        options.keep_alive = self.keep_alive.unwrap_or(options.keep_alive);
        let tokens = self.tokens.iter().flatten();
        options.tokens = tokens.map(|token| token.access.clone()).collect();
        options.hosts = self.hosts.clone().unwrap_or_default();
        let origins = self.origins.iter().flatten();
        options.origins = origins.filter_map(|origin| origin.parse().ok()).collect();
        options
    }
}

fn override_if_configured(option: &mut usize, configured: Option<NonZeroUsize>) {
    *option = configured.map_or(*option, NonZero::get);
}

fn deserialize_address<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SocketAddr>, D::Error> {
    let expected = "an address with its port, such as 127.0.0.1:8484";
    deserialize_converted(deserializer, expected, |value| {
        value.as_str()?.trim().parse().ok()
    })
}

fn deserialize_hosts<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<String>>, D::Error> {
    let is_host = |name: &str| {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        !name.is_empty() && name.chars().all(is_allowed)
    };
    let expected = "a list of host names without ports";
    deserialize_converted(deserializer, expected, |value| {
        parse_text_list(value, is_host)
    })
}

/// Deserializes a list of web origins in the form that browsers send: scheme, host and optional
/// port, such as `https://app.example.com`.
fn deserialize_origins<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<String>>, D::Error> {
    let is_origin = |text: &str| {
        let is_allowed =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._:[]".contains(c);
        let host = text.strip_prefix("http://");
        let host = host.or_else(|| text.strip_prefix("https://"));
        host.is_some_and(|host| !host.is_empty() && host.chars().all(is_allowed))
    };
    let expected = "a list of origins such as https://app.example.com";
    deserialize_converted(deserializer, expected, |value| {
        parse_text_list(value, is_origin)
    })
}

/// Returns the items of a JSON list of texts. Returns `None` if `value` is not a list, or if an
/// item is not a text for which `is_valid` returns `true`.
fn parse_text_list(value: &Value, is_valid: impl Fn(&str) -> bool) -> Option<Vec<String>> {
    let items = value.as_array()?.iter();
    let texts = items.map(|item| item.as_str().filter(|text| is_valid(text)));
    texts.map(|text| text.map(str::to_owned)).collect()
}

fn deserialize_tokens<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<TokenConfig>>, D::Error> {
    let tokens: Option<Vec<TokenConfig>> = Option::deserialize(deserializer)?;
    if tokens.as_ref().is_some_and(Vec::is_empty) {
        let expected = &"a non-empty list of tokens";
        return Err(D::Error::invalid_value(Unexpected::Seq, expected));
    }
    Ok(tokens)
}

/// Deserializes an access token from a text, or from a map with the keys `token`, `user` and
/// `tenant`. The user and the tenant own the sessions of requests with this token.
impl<'de> Deserialize<'de> for TokenConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(deny_unknown_fields, expecting = "a token, or a map with `token`")]
        struct TokenFields {
            token: String,
            user: Option<String>,
            tenant: Option<String>,
        }
        let fields = match Value::deserialize(deserializer)? {
            Value::String(token) => TokenFields {
                token,
                ..TokenFields::default()
            },
            value => serde_json::from_value(value).map_err(D::Error::custom)?,
        };
        let principal = Principal {
            tenant: fields.tenant.unwrap_or_default(),
            user: fields.user.unwrap_or_default(),
        };
        let text = SecretString::from(fields.token);
        let access = AccessToken::new(&text, principal).ok_or_else(|| {
            let expected = format!(
                "a token of at least {MIN_TOKEN_LENGTH} letters, digits or symbols without spaces; \
                 `openssl rand -hex 32` creates one"
            );
            D::Error::invalid_value(Unexpected::Other("another text"), &expected.as_str())
        })?;
        Ok(Self { access, text })
    }
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod tests;
