//! Access control: limits header sizes, and checks host names, origins and tokens.

use std::{
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
};

use axum::{
    extract::{FromRequestParts, Request, State},
    http::{HeaderMap, HeaderValue, Method, Uri, header, request::Parts},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use switchboard_domain::Principal;
use tower_http::cors::{AllowOrigin, CorsLayer};

use super::{concurrency_limits::limit_principal_requests, run_headers};
use crate::{App, Problem, ProblemKind, ServerOptions, options};

/// An extractor of the principal that sends a request.
#[derive(Debug, Clone)]
pub(crate) struct Caller(pub(crate) Principal);

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Self>().cloned();
        // The middleware `authenticate` runs before every route with this extractor, so `Caller`
        // exists.
        caller.ok_or_else(Problem::internal_error)
    }
}

/// The host names that requests may have in the header `Host`.
#[derive(Debug, Clone)]
pub(crate) struct AllowedHostNames {
    /// The configured host names of this server, in lower case and without ports.
    configured: Arc<[String]>,
    bound: IpAddr,
}

impl AllowedHostNames {
    pub(crate) fn new(options: &ServerOptions, bound: IpAddr) -> Self {
        let configured = options.hosts.iter().map(|name| name.to_ascii_lowercase());
        Self {
            configured: configured.collect(),
            bound,
        }
    }

    /// Returns whether the header `Host` may contain this name. The allowed names are `localhost`,
    /// the configured names, loopback addresses and the listening address. A server that listens on
    /// all addresses allows every IP address. Other names are refused, because the DNS name of an
    /// attacker may point to this server (DNS rebinding).
    fn contains(&self, host: &str) -> bool {
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

/// Middleware that refuses requests with too large headers, for unknown hosts, or from web pages of
/// other origins.
pub(crate) async fn check_request_head(
    State((app, names)): State<(App, AllowedHostNames)>,
    request: Request,
    next: Next,
) -> Response {
    match check_size_host_and_origin(&request, app.options(), &names) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

fn check_size_host_and_origin(
    request: &Request,
    options: &ServerOptions,
    names: &AllowedHostNames,
) -> Result<(), Problem> {
    let (headers, uri) = (request.headers(), request.uri());
    let max_bytes = options.max_headers;
    // hyper compares the size with its own limit only before it reads more data, so larger headers
    // may arrive here.
    if request_head_length(request) > max_bytes {
        let detail = format!(
            "the request line and headers are larger than {max_bytes} bytes: send fewer or \
             shorter headers"
        );
        return Err(Problem::new(ProblemKind::HeadersTooLarge, detail));
    }
    let target = request_host_port(headers, uri)?;
    if !names.contains(target.host) {
        let detail = format!(
            "`{}` is not a host name of this server: use its address, or add the name to \
             `serve.hosts`",
            target.host
        );
        return Err(Problem::new(ProblemKind::ForeignHost, detail));
    }
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let (origin, more) = (origins.next(), origins.next());
    // Pages of all origins may load the files of the web page, because sandboxed frames load them
    // with the origin `null`.
    let Some(origin) = origin.filter(|_| !uri.path().starts_with("/assets/")) else {
        return Ok(());
    };
    if more.is_some() {
        return Err(Problem::malformed_request(
            "the header Origin occurs more than once",
        ));
    }
    if is_same_origin(origin, target) || options.origins.contains(origin) {
        return Ok(());
    }
    Err(Problem::new(
        ProblemKind::ForeignOrigin,
        format!(
            "requests from the origin `{}` are not allowed: add the origin to `serve.origins` to \
             allow them",
            String::from_utf8_lossy(origin.as_bytes())
        ),
    ))
}

/// Returns the length in bytes of the request line and headers, as HTTP/1 sends them.
fn request_head_length(request: &Request) -> usize {
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

/// A host name or IP address with an optional port, from a header or URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HostPort<'t> {
    /// A host name or an IP address. IPv6 addresses have brackets.
    host: &'t str,
    port: Option<u16>,
}

impl<'t> HostPort<'t> {
    /// Parses the value of the header `Host`, or of `Origin` without its scheme (RFC 9110 section
    /// 4.2.3). Returns `None` for a value with a user, an invalid port, or brackets without an IPv6
    /// address.
    fn parse_authority(text: &'t str) -> Option<Self> {
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
            // RFC 9110 allows a colon without a port.
            Some("") => None,
            Some(digits) if digits.bytes().all(|it| it.is_ascii_digit()) => {
                Some(digits.parse().ok()?)
            }
            _ => return None,
        };
        Some(Self { host, port })
    }
}

/// Returns the host and port to which the client sent the request, from the URI or else from the
/// header `Host`. Fails with status 400 if this header is missing, invalid or sent more than once.
fn request_host_port<'r>(headers: &'r HeaderMap, uri: &'r Uri) -> Result<HostPort<'r>, Problem> {
    let text = if let Some(authority) = uri.authority() {
        Some(authority.as_str())
    } else {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (host, more) = (hosts.next(), hosts.next());
        host.filter(|_| more.is_none())
            .and_then(|host| host.to_str().ok())
    };
    text.and_then(HostPort::parse_authority).ok_or_else(|| {
        Problem::malformed_request(
            "the header Host is missing, occurs more than once, or is invalid",
        )
    })
}

/// Returns whether the header `Origin` contains the host and port of the request (`target`). The
/// scheme may be `https`, because a proxy may add TLS.
fn is_same_origin(origin: &HeaderValue, target: HostPort<'_>) -> bool {
    let Some((scheme, authority)) = origin.to_str().ok().and_then(|it| it.split_once("://")) else {
        // Browsers send the origin `null` for sandboxed frames and local files.
        return false;
    };
    let default = match scheme {
        "http" => 80,
        "https" => 443,
        _ => return false,
    };
    HostPort::parse_authority(authority).is_some_and(|origin| {
        origin.host.eq_ignore_ascii_case(target.host)
            && origin.port.unwrap_or(default) == target.port.unwrap_or(default)
    })
}

/// Middleware that adds the [`Caller`], the principal of the access token, to a request. A missing
/// or unknown token gives the status 401. If no tokens are configured, all requests have the
/// default principal.
pub(crate) async fn authenticate(
    State(app): State<App>,
    mut request: Request,
    next: Next,
) -> Response {
    let tokens = &app.options().tokens;
    let caller = if tokens.is_empty() {
        Some(Principal::default())
    } else {
        access_token(request.headers())
            .and_then(|token| options::token_owner(tokens, token))
            .cloned()
    };
    match caller {
        Some(principal) => {
            request.extensions_mut().insert(Caller(principal.clone()));
            limit_principal_requests(app.concurrency_limits(), &principal, request, next).await
        }
        None => Problem::new(
            ProblemKind::NoAccess,
            "the access token is missing or unknown: send one of `serve.tokens` as `Authorization: \
             Bearer TOKEN`",
        )
        .into_response(),
    }
}

/// Returns the access token in the header `Authorization: Bearer`, or else in `x-api-key`, which
/// the SDKs of Anthropic send. Returns `None` if both are missing.
fn access_token(headers: &HeaderMap) -> Option<&[u8]> {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| {
        let (scheme, token) = value.as_bytes().split_at_checked(7)?;
        scheme
            .eq_ignore_ascii_case(b"bearer ")
            .then(|| token.trim_ascii())
    });
    let key = || headers.get("x-api-key").map(HeaderValue::as_bytes);
    bearer.or_else(key)
}

/// Returns a layer that permits requests from web pages of the configured origins (CORS), or `None`
/// if no origins are configured.
pub(crate) fn cors_layer(options: &ServerOptions) -> Option<CorsLayer> {
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
            run_headers::RUN_ID,
            run_headers::SESSION_ID,
            header::HeaderName::from_static("x-vercel-ai-ui-message-stream"),
        ]);
    Some(layer)
}

#[cfg(test)]
#[path = "security_tests.rs"]
mod tests;
