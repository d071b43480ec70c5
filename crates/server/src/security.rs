//! Who may come in: names and origins, tokens, and how many at once.

use std::{net::IpAddr, sync::Arc};

use axum::{
    extract::{FromRequestParts, Request, State},
    http::{
        HeaderMap, HeaderValue, Method, StatusCode, Uri, header, request::Parts, uri::Authority,
    },
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use switchboard_domain::Principal;
use tokio::sync::OwnedSemaphorePermit;
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::{App, Problem, ServerOptions, options, page};

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
    bound: Option<IpAddr>,
}

impl Names {
    pub(crate) fn of(options: &ServerOptions, bound: Option<IpAddr>) -> Self {
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
        address.is_loopback()
            || self
                .bound
                .is_some_and(|bound| bound.is_unspecified() || bound == address)
    }
}

/// Refuses requests that were meant for another name, or that another site's page makes.
pub(crate) async fn check_origin(
    State((app, names)): State<(App, Names)>,
    request: Request,
    next: Next,
) -> Response {
    match origin_problem(request.headers(), request.uri(), &app, &names) {
        Some(problem) => problem.into_response(),
        None => next.run(request).await,
    }
}

fn origin_problem(headers: &HeaderMap, uri: &Uri, app: &App, names: &Names) -> Option<Problem> {
    let authority = match authority(headers, uri) {
        Ok(authority) => authority,
        Err(problem) => return Some(problem),
    };
    if !names.has(authority.host()) {
        return Some(Problem::new(
            StatusCode::FORBIDDEN,
            "foreign-host",
            "The server is not called so",
            format!(
                "the server is not known as `{}`: call it by its address, or add the name to `serve.hosts`",
                authority.host()
            ),
        ));
    }
    if page::is_asset(uri.path()) {
        return None;
    }
    let origin = headers.get(header::ORIGIN)?;
    let is_own = is_same(origin, &authority);
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

/// By which name and port the server was called.
fn authority(headers: &HeaderMap, uri: &Uri) -> Result<Authority, Problem> {
    let unclear =
        || Problem::malformed("the header Host is missing, is there twice, or is no name");
    if let Some(authority) = uri.authority() {
        return Ok(authority.clone());
    }
    let mut hosts = headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => {
            let host = host.as_bytes();
            let authority = Authority::try_from(host).map_err(|_| unclear())?;
            // `user@host` is no Host.
            if host.contains(&b'@') || authority.host().is_empty() {
                return Err(unclear());
            }
            Ok(authority)
        }
        _ => Err(unclear()),
    }
}

/// Whether a page of this origin came from this server itself.
fn is_same(origin: &HeaderValue, authority: &Authority) -> bool {
    let Some((scheme, of_origin)) = origin.to_str().ok().and_then(|it| it.split_once("://")) else {
        // `null`: a sandboxed frame, a file, and whoever hides.
        return false;
    };
    let default = match scheme {
        "http" => 80,
        "https" => 443,
        _ => return false,
    };
    let Ok(of_origin) = Authority::try_from(of_origin) else {
        return false;
    };
    of_origin.host().eq_ignore_ascii_case(authority.host())
        && of_origin.port_u16().unwrap_or(default) == authority.port_u16().unwrap_or(default)
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
            request.extensions_mut().insert(Caller(principal));
            next.run(request).await
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

/// Takes no more requests at once than it may.
pub(crate) async fn limit(State(app): State<App>, request: Request, next: Next) -> Response {
    let Some(place) = app.place() else {
        let most = app.options().max_requests;
        let detail =
            format!("{most} requests are open, and the server takes no more at once: try again");
        return Problem::unavailable(detail, None).into_response();
    };
    // Only `POST` waits for runs. Until an answer begins: it may be a stream.
    let most = app.options().request_time;
    let response = if request.method() == Method::POST {
        next.run(request).await
    } else if let Ok(response) = tokio::time::timeout(most, next.run(request)).await {
        response
    } else {
        let detail = format!("this took longer than {} s: try again", most.as_secs_f64());
        Problem::unavailable(detail, None).into_response()
    };
    // It is held until the last byte of the body was sent or given up.
    response.map(|body| {
        axum::body::Body::new(Held {
            body,
            _place: place,
        })
    })
}

/// A body that holds a place.
struct Held {
    body: axum::body::Body,
    _place: OwnedSemaphorePermit,
}

impl hyper::body::Body for Held {
    type Data = bytes::Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Self::Data>, Self::Error>>> {
        std::pin::Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.body.size_hint()
    }
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
