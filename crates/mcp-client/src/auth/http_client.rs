//! HTTP client for MCP requests to servers (streamable HTTP).

use std::{collections::HashMap, net::IpAddr, time::Duration};

use reqwest::{
    Client, StatusCode, Url,
    header::{HeaderName, HeaderValue},
    redirect::Policy,
};
use secrecy::{ExposeSecret, SecretString};

use crate::primitives::error::{StartError, root_cause};

const MAX_REDIRECTS: usize = 5;
/// Idle time after which a connection in the pool is closed. If the server restarts during the idle
/// time, the next request on the connection fails.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(20);
/// Lower-case names of the headers that the MCP client sets on each request. A configuration that
/// contains one of them is rejected.
const RESERVED_HEADERS: [&str; 4] = [
    "accept",
    "mcp-session-id",
    "mcp-protocol-version",
    "last-event-id",
];

/// Creates the HTTP client for one server. The client limits only the time to connect: the deadline
/// of a call limits the response time, and event streams have no time limit.
pub(crate) fn build_client(url: &str, connect_timeout: Duration) -> Result<Client, StartError> {
    let mut builder = Client::builder();
    if is_loopback(url) {
        // A proxy on another machine cannot reach this machine at a loopback address.
        builder = builder.no_proxy();
    }
    builder
        .user_agent(concat!("switchboard/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(connect_timeout)
        .redirect(same_origin_redirects())
        .pool_idle_timeout(POOL_IDLE_TIMEOUT)
        .build()
        .map_err(|error| StartError::Configuration {
            reason: root_cause(&error),
        })
}

fn is_loopback(url: &str) -> bool {
    let url = Url::parse(url).ok();
    match url.as_ref().and_then(Url::host_str) {
        Some("localhost") => true,
        Some(host) => host
            .trim_matches(['[', ']'])
            .parse()
            .is_ok_and(|address: IpAddr| address.is_loopback()),
        None => false,
    }
}

/// Converts the configured headers to HTTP headers, and marks their values as sensitive so that
/// logs do not show them. Returns an error for an invalid or reserved header.
pub(crate) fn parse_headers(
    configured: &[(String, SecretString)],
) -> Result<HashMap<HeaderName, HeaderValue>, StartError> {
    let unusable = |reason: String| StartError::Configuration { reason };
    configured
        .iter()
        .map(|(name, value)| {
            let key = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| unusable(format!("`{name}` is not a valid header name")))?;
            if RESERVED_HEADERS.contains(&key.as_str()) {
                return Err(unusable(format!(
                    "header `{name}` is set by the protocol: remove it from `headers`"
                )));
            }
            let mut value = HeaderValue::from_str(value.expose_secret()).map_err(|_| {
                unusable(format!(
                    "the value of header `{name}` contains invalid characters"
                ))
            })?;
            value.set_sensitive(true);
            Ok((key, value))
        })
        .collect()
}

/// Returns a policy that follows only redirects with status 307 or 308, which repeat the request
/// with its body. The redirects must have the same origin, because another origin would receive the
/// configured headers with their secrets.
fn same_origin_redirects() -> Policy {
    Policy::custom(|attempt| {
        let keeps_message = matches!(
            attempt.status(),
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
        );
        let same_origin = attempt
            .previous()
            .first()
            .is_some_and(|first| first.origin() == attempt.url().origin());
        if keeps_message && same_origin && attempt.previous().len() <= MAX_REDIRECTS {
            attempt.follow()
        } else {
            attempt.stop()
        }
    })
}

#[cfg(test)]
#[path = "http_client_tests.rs"]
mod redirect_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_proxy_is_used_for_loopback_addresses() {
        for (url, expected) in [
            ("http://localhost:8080/mcp", true),
            ("http://127.0.0.1/mcp", true),
            ("http://127.9.9.9/mcp", true),
            ("http://[::1]:80/mcp", true),
            ("http://localhost.example.org/mcp", false),
            ("http://10.0.0.1/mcp", false),
            ("not a URL", false),
        ] {
            assert_eq!(is_loopback(url), expected, "{url}");
        }
    }

    #[test]
    fn headers_are_validated_and_not_shown() {
        let valid = [("X-Key".to_owned(), "secret-1".into())];
        let converted = parse_headers(&valid).unwrap();
        assert!(!format!("{converted:?}").contains("secret-1"));
        for (name, value, expected) in [
            ("no name", "v", "`no name` is not a valid header name"),
            ("X-Key", "line\nsecret-2", "the value of header `X-Key`"),
            ("Mcp-Session-Id", "v", "is set by the protocol"),
        ] {
            let error = parse_headers(&[(name.to_owned(), value.into())])
                .unwrap_err()
                .to_string();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains("secret-2"), "{error}");
        }
    }
}
