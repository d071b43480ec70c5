//! The options of the HTTP server: tokens, limits and time-outs.

use std::time::Duration;

use axum::http::HeaderValue;
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use switchboard_domain::Principal;

/// The options of the server. The comment of each field states its default. Lists are empty by
/// default.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerOptions {
    /// The access tokens. A server without tokens accepts all clients, and may listen only on a
    /// loopback address.
    pub tokens: Vec<AccessToken>,
    /// Host names that the header `Host` of a request may contain, besides `localhost`, loopback
    /// addresses and the listening address. Requests with other names are refused, because the DNS
    /// name of an attacker's site may point to this server (DNS rebinding).
    pub hosts: Vec<String>,
    /// Origins of web pages that may use the server, such as `https://app.example.com`. By default,
    /// only the server's own web page may use it.
    pub origins: Vec<HeaderValue>,
    /// Maximum number of active runs. The default is 256.
    pub max_runs: usize,
    /// Maximum number of active runs of one principal. The default is 256.
    pub max_runs_each: usize,
    /// Maximum number of open requests and streams. The default is 2,048. `/healthz`, `/readyz` and
    /// `/metrics` do not count. Requests that control runs (`POST` below `/runs/`) may use 64 more
    /// slots.
    pub max_requests: usize,
    /// Maximum number of open requests of one principal. The default is 1,024. `/metrics` and
    /// requests that control runs do not count.
    pub max_requests_each: usize,
    /// Maximum number of open connections. The default is 4,096.
    pub max_connections: usize,
    /// Maximum size of a request body in bytes. The default is 16 MiB, so that images and documents
    /// fit.
    pub max_body: usize,
    /// Maximum size of the request line and headers in bytes. The default is 32 KiB.
    pub max_headers: usize,
    /// Maximum time until all headers of a request have arrived. An idle connection that sends no
    /// further request is closed after this time too. The default is 15 s.
    pub header_time: Duration,
    /// Maximum time until the body of a request has arrived completely. The default is 30 s.
    pub body_time: Duration,
    /// Time after which a connection is closed if its client reads no data. The default is 60 s. A
    /// client that reads occasionally keeps its connection.
    pub write_time: Duration,
    /// Maximum time until the response to a request starts. The default is 30 s. `POST` requests
    /// have no limit, because they may wait for a run.
    pub request_time: Duration,
    /// Interval at which an event stream without new events sends a comment, so that the connection
    /// stays open. The default is 15 s.
    pub keep_alive: Duration,
    /// Time that a run waits in memory for an approval decision of a person. The default is 10 min.
    /// After that, a durable run is stored, and the next decision resumes it. For an ephemeral run,
    /// the waiting calls are denied.
    pub approval_time: Duration,
    /// Maximum time of the whole shutdown. The default is 10 s. Runs that are still active are
    /// interrupted earlier, [`ServerOptions::run_drain_time`] after the start of the shutdown.
    pub drain_time: Duration,
    /// Maximum size in bytes of the events that one run keeps in memory. The default is 1 MiB.
    /// Older events are read from the store.
    pub log_bytes: usize,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            tokens: Vec::new(),
            hosts: Vec::new(),
            origins: Vec::new(),
            max_runs: 256,
            max_runs_each: 256,
            max_requests: 2_048,
            max_requests_each: 1_024,
            max_connections: 4_096,
            max_body: 16 << 20,
            max_headers: 32 << 10,
            header_time: Duration::from_secs(15),
            body_time: Duration::from_secs(30),
            write_time: Duration::from_mins(1),
            request_time: Duration::from_secs(30),
            keep_alive: Duration::from_secs(15),
            approval_time: Duration::from_mins(10),
            drain_time: Duration::from_secs(10),
            log_bytes: 1 << 20,
        }
    }
}

impl ServerOptions {
    /// Returns how long active runs may take to end after the shutdown starts: `drain_time` minus
    /// two seconds, but at least half of `drain_time`.
    pub fn run_drain_time(&self) -> Duration {
        let without_close = self.drain_time.saturating_sub(CLOSE_TIME);
        without_close.max(self.drain_time / 2)
    }

    /// Returns the maximum time of the whole shutdown: `drain_time`, but at least one second more
    /// than [`ServerOptions::run_drain_time`].
    pub fn shutdown_time(&self) -> Duration {
        self.drain_time.max(self.run_drain_time() + MIN_CLOSE_TIME)
    }
}

/// Part of `drain_time` that remains for closing connections after the runs have ended.
const CLOSE_TIME: Duration = Duration::from_secs(2);
/// Minimum time for closing connections after the runs have ended, even if `drain_time` is shorter.
const MIN_CLOSE_TIME: Duration = Duration::from_secs(1);

/// An access token and the principal that the token authenticates. Only the SHA-256 digest of the
/// token is stored.
#[derive(Clone, derive_more::Debug)]
#[debug("AccessToken {{ principal: {principal:?}, .. }}")]
pub struct AccessToken {
    digest: [u8; 32],
    principal: Principal,
}

/// Minimum length of an access token in bytes. Shorter tokens could be guessed.
pub const MIN_TOKEN_LENGTH: usize = 16;

impl AccessToken {
    /// Creates an access token for a principal. Returns `None` unless the text has at least
    /// [`MIN_TOKEN_LENGTH`] printable ASCII characters without spaces.
    pub fn new(token: &SecretString, principal: Principal) -> Option<Self> {
        let token = token.expose_secret();
        let can_be_sent = token.bytes().all(|byte| byte.is_ascii_graphic());
        (can_be_sent && token.len() >= MIN_TOKEN_LENGTH).then(|| Self {
            digest: hash_token(token.as_bytes()),
            principal,
        })
    }
}

fn hash_token(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// Returns the principal of the token `given`, or `None` if the token is unknown. All tokens are
/// compared in constant time, so that the response time does not reveal a partial match.
pub(crate) fn token_owner<'t>(tokens: &'t [AccessToken], given: &[u8]) -> Option<&'t Principal> {
    let given = hash_token(given);
    let mut owner = None;
    for token in tokens {
        if bool::from(token.digest.ct_eq(&given)) {
            owner = Some(&token.principal);
        }
    }
    owner
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(text: &str, user: &str) -> Option<AccessToken> {
        let principal = Principal {
            tenant: "t".to_owned(),
            user: user.to_owned(),
        };
        AccessToken::new(&SecretString::from(text), principal)
    }

    #[test]
    fn drain_time_is_divided_between_runs_and_closing() {
        let times = |drain_time| {
            let options = ServerOptions {
                drain_time: Duration::from_millis(drain_time),
                ..ServerOptions::default()
            };
            (
                options.run_drain_time().as_millis(),
                options.shutdown_time().as_millis(),
            )
        };
        assert_eq!(times(10_000), (8_000, 10_000));
        assert_eq!(times(3_000), (1_500, 3_000));
        assert_eq!(times(100), (50, 1_050));
        assert_eq!(times(0), (0, 1_000));
    }

    #[test]
    fn a_token_identifies_its_principal_and_is_not_shown() {
        let tokens = [
            token("0123456789abcdef", "ann").unwrap(),
            token("fedcba9876543210", "bob").unwrap(),
        ];
        let user = |given: &str| token_owner(&tokens, given.as_bytes()).map(|it| it.user.clone());
        assert_eq!(user("0123456789abcdef").as_deref(), Some("ann"));
        assert_eq!(user("fedcba9876543210").as_deref(), Some("bob"));
        assert_eq!(user("0123456789abcdeF"), None);
        assert_eq!(user("0123456789abcde"), None);
        assert_eq!(user(""), None);
        assert!(!format!("{tokens:?}").contains("0123456789abcdef"));
    }

    #[test]
    fn short_and_unsendable_tokens_are_refused() {
        assert!(token("short", "a").is_none());
        assert!(token("with a space in the middle", "a").is_none());
        assert!(token("schlüssel-schlüssel", "a").is_none());
    }
}
