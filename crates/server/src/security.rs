//! Who may come in: how much a request says before its body, names and origins, and tokens.

use std::{
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
};

use axum::{
    extract::{FromRequestParts, Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header, request::Parts},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use switchboard_domain::Principal;
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::{App, Problem, ServerOptions, options, page, places};

/// On whose behalf a request is made.
#[derive(Debug, Clone)]
pub(crate) struct Caller(pub(crate) Principal);

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Self>().cloned();
        // Every route that takes one stands behind `authenticate`.
        caller.ok_or_else(Problem::internal)
    }
}

/// The names by which the server may be called.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    /// Configured ones, lower case, without ports.
    configured: Arc<[String]>,
    bound: IpAddr,
}

impl Names {
    pub(crate) fn of(options: &ServerOptions, bound: IpAddr) -> Self {
        let configured = options.hosts.iter().map(|name| name.to_ascii_lowercase());
        Self {
            configured: configured.collect(),
            bound,
        }
    }

    /// Whether it may be called so. A name that anybody could have point here is none of ours; an address cannot be
    /// made to point elsewhere.
    fn has(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let plain = host.trim_start_matches('[').trim_end_matches(']');
        if plain == "localhost" || self.configured.iter().any(|name| name == plain) {
            return true;
        }
        let Ok(address) = plain.parse::<IpAddr>() else {
            return false;
        };
        address.is_loopback() || self.bound.is_unspecified() || self.bound == address
    }
}

/// Refuses requests that say too much before their body, that were meant for another name, or that another site's
/// page makes.
pub(crate) async fn check_head(
    State((app, names)): State<(App, Names)>,
    request: Request,
    next: Next,
) -> Response {
    match head_problem(&request, &app, &names) {
        Some(problem) => problem.into_response(),
        None => next.run(request).await,
    }
}

fn head_problem(request: &Request, app: &App, names: &Names) -> Option<Problem> {
    let most = app.options().max_headers;
    // The connection looks at this only when it has to read on.
    if head_length(request) > most {
        return Some(Problem::new(
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            "too-large",
            "The headers are too large",
            format!("the request's line and headers may have {most} bytes together: send less"),
        ));
    }
    origin_problem(request.headers(), request.uri(), app, names)
}

/// Bytes of a request's line and headers, as HTTP/1 writes them.
fn head_length(request: &Request) -> usize {
    let uri = request.uri();
    let target = uri.path_and_query().map_or(0, |it| it.as_str().len());
    let scheme = uri.scheme_str().map_or(0, |it| it.len() + "://".len());
    let authority = uri.authority().map_or(0, |it| it.as_str().len());
    let line = request.method().as_str().len() + scheme + authority + target;
    let headers = request.headers().iter();
    let headers: usize = headers
        .map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len())
        .sum();
    line + "  HTTP/1.1\r\n".len() + headers + "\r\n".len()
}

fn origin_problem(headers: &HeaderMap, uri: &Uri, app: &App, names: &Names) -> Option<Problem> {
    let called = match called(headers, uri) {
        Ok(called) => called,
        Err(problem) => return Some(problem),
    };
    if !names.has(called.host) {
        return Some(Problem::new(
            StatusCode::FORBIDDEN,
            "foreign-host",
            "The server is not called so",
            format!(
                "the server is not known as `{}`: call it by its address, or add the name to `serve.hosts`",
                called.host
            ),
        ));
    }
    if page::is_asset(uri.path()) {
        return None;
    }
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let origin = origins.next()?;
    if origins.next().is_some() {
        return Some(Problem::malformed("the header Origin is there twice"));
    }
    let is_own = is_same(origin, called);
    let is_known = app.options().origins.contains(origin);
    (!is_own && !is_known).then(|| {
        Problem::new(
            StatusCode::FORBIDDEN,
            "foreign-origin",
            "Pages of other sites may not use the server",
            format!(
                "pages of `{}` may not use this server: add that origin to `serve.origins` if they should",
                origin.to_str().unwrap_or("this origin")
            ),
        )
    })
}

/// A host and, where one is said, its port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HostPort<'t> {
    /// A name or an address; one of IPv6 in its brackets.
    host: &'t str,
    port: Option<u16>,
}

impl<'t> HostPort<'t> {
    /// What may stand in a `Host`, and behind the scheme of an `Origin` (RFC 9110 section 4.2.3): no user, brackets
    /// around addresses of IPv6 only, and a port that can be one.
    fn read(text: &'t str) -> Option<Self> {
        let (host, port) = if text.starts_with('[') {
            let end = text.find(']')?;
            text[1..end].parse::<Ipv6Addr>().ok()?;
            text.split_at(end + 1)
        } else {
            text.split_at(text.find(':').unwrap_or(text.len()))
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=%".contains(c);
        if host.is_empty() || !(host.starts_with('[') || host.chars().all(is_name)) {
            return None;
        }
        let port = match port.strip_prefix(':') {
            None if port.is_empty() => None,
            // It may be left out behind its colon.
            Some("") => None,
            Some(digits) if digits.bytes().all(|it| it.is_ascii_digit()) => {
                Some(digits.parse().ok()?)
            }
            _ => return None,
        };
        Some(Self { host, port })
    }
}

/// By which name and port the server was called.
fn called<'r>(headers: &'r HeaderMap, uri: &'r Uri) -> Result<HostPort<'r>, Problem> {
    let text = if let Some(authority) = uri.authority() {
        Some(authority.as_str())
    } else {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (host, more) = (hosts.next(), hosts.next());
        host.filter(|_| more.is_none())
            .and_then(|host| host.to_str().ok())
    };
    text.and_then(HostPort::read).ok_or_else(|| {
        Problem::malformed("the header Host is missing, is there twice, or is no name")
    })
}

/// Whether a page of this origin came from this server itself. Behind a proxy that ends TLS its scheme is `https`.
fn is_same(origin: &HeaderValue, called: HostPort<'_>) -> bool {
    let Some((scheme, of_origin)) = origin.to_str().ok().and_then(|it| it.split_once("://")) else {
        // `null`: a sandboxed frame, a file, and whoever hides.
        return false;
    };
    let default = match scheme {
        "http" => 80,
        "https" => 443,
        _ => return false,
    };
    HostPort::read(of_origin).is_some_and(|of_origin| {
        of_origin.host.eq_ignore_ascii_case(called.host)
            && of_origin.port.unwrap_or(default) == called.port.unwrap_or(default)
    })
}

/// Finds out on whose behalf a request is made. Where no tokens are configured, everybody is the same principal.
pub(crate) async fn authenticate(
    State(app): State<App>,
    mut request: Request,
    next: Next,
) -> Response {
    let tokens = &app.options().tokens;
    let caller = if tokens.is_empty() {
        Some(Principal::default())
    } else {
        token(request.headers())
            .and_then(|token| options::owner(tokens, token))
            .cloned()
    };
    match caller {
        Some(principal) => {
            request
                .extensions_mut()
                .insert(Caller(principal.clone()));
            places::limit_each(&app, &principal, request, next).await
        }
        None => Problem::new(
            StatusCode::UNAUTHORIZED,
            "no-access",
            "An access token is needed",
            "no known access token was sent: send one of `serve.tokens` as `Authorization: Bearer TOKEN`",
        )
        .into_response(),
    }
}

/// The token of a request: `Authorization: Bearer`, or `x-api-key`, which Anthropic's SDKs send.
fn token(headers: &HeaderMap) -> Option<&[u8]> {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| {
        let (scheme, token) = value.as_bytes().split_at_checked(7)?;
        scheme
            .eq_ignore_ascii_case(b"bearer ")
            .then(|| token.trim_ascii())
    });
    let key = || headers.get("x-api-key").map(HeaderValue::as_bytes);
    bearer.or_else(key)
}

/// Lets pages of the configured origins use the server from a browser; of no others.
pub(crate) fn cors(options: &ServerOptions) -> Option<CorsLayer> {
    if options.origins.is_empty() {
        return None;
    }
    let layer = CorsLayer::new()
        .allow_origin(AllowOrigin::list(options.origins.iter().cloned()))
        .allow_methods([Method::GET, Method::POST, Method::PATCH, Method::DELETE])
        .allow_headers(tower_http::cors::AllowHeaders::mirror_request())
        .expose_headers([
            header::LOCATION,
            header::RETRY_AFTER,
            header::HeaderName::from_static("x-switchboard-run-id"),
            header::HeaderName::from_static("x-switchboard-session-id"),
            header::HeaderName::from_static("x-vercel-ai-ui-message-stream"),
        ]);
    Some(layer)
}

#[cfg(test)]
#[path = "security_tests.rs"]
mod tests;
