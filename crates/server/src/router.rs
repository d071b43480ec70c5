//! The router: all routes and their middleware.

use std::{net::IpAddr, sync::Arc, time::Instant};

use axum::{
    Router,
    extract::{MatchedPath, OriginalUri, Request, State},
    http::{HeaderValue, Method, header},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
};
use tower_http::catch_panic::CatchPanicLayer;
use tracing::Instrument as _;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    App, Problem, ProblemKind, dialects,
    http::{
        concurrency_limits,
        security::{self, AllowedHostNames},
    },
    openapi::document,
    routes,
};

fn protected_routes() -> OpenApiRouter<App> {
    routes::protected_routes().merge(dialects::routes())
}

fn public_routes() -> OpenApiRouter<App> {
    routes::public_routes().routes(routes!(openapi))
}

/// Returns all routes and middleware for a server that listens on the address `bound`.
pub(crate) fn build_router(app: &App, bound: IpAddr) -> Router {
    let (guarded, _) = protected_routes().split_for_parts();
    let guarded = guarded
        .route_layer(middleware::from_fn(add_matched_route))
        .method_not_allowed_fallback(method_not_allowed)
        .fallback(route_not_found)
        .layer(middleware::from_fn_with_state(
            app.clone(),
            security::authenticate,
        ));
    let (open, _) = public_routes().split_for_parts();
    let open: Router<App> = open.merge(routes::page::routes());
    let names = AllowedHostNames::new(app.options(), bound);
    let router = open
        .route_layer(middleware::from_fn(add_matched_route))
        .method_not_allowed_fallback(method_not_allowed)
        .fallback_service(guarded.with_state(app.clone()))
        .layer(middleware::from_fn_with_state(
            Arc::clone(app.concurrency_limits()),
            concurrency_limits::limit_requests,
        ))
        .layer(CatchPanicLayer::custom(panic_response))
        .layer(middleware::from_fn_with_state(
            (app.clone(), names),
            security::check_request_head,
        ));
    let router = match security::cors_layer(app.options()) {
        Some(cors) => router.layer(cors),
        None => router,
    };
    router
        .layer(middleware::from_fn_with_state(app.clone(), observe_request))
        .with_state(app.clone())
}

/// Read the OpenAPI document of the server
///
/// Needs no access token.
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "openapi", tag = "operation", security(()),
    responses((status = 200, description = "An OpenAPI 3.1 document.", body = serde_json::Value))
)]
async fn openapi(State(app): State<App>, request: Request) -> Response {
    let document = app.openapi_document().get_or_init(|| {
        let documented = protected_routes().merge(public_routes());
        let document = document::complete_document(documented.into_openapi());
        serde_json::to_string(&document).unwrap_or_default()
    });
    let content_type = HeaderValue::from_static("application/json");
    let document = document::add_server_prefix(document, nested_path_prefix(&request));
    ([(header::CONTENT_TYPE, content_type)], document).into_response()
}

async fn route_not_found(OriginalUri(uri): OriginalUri) -> Problem {
    Problem::not_found(format!(
        "no route matches {}: /openapi.json lists the routes",
        uri.path()
    ))
}

async fn method_not_allowed(method: Method, OriginalUri(uri): OriginalUri) -> Problem {
    let detail = format!(
        "{} does not support {method}: the header Allow lists the supported methods",
        uri.path()
    );
    Problem::new(ProblemKind::NoMethod, detail)
}

fn panic_response(_: Box<dyn std::any::Any + Send>) -> Response {
    // The panic hook has already logged the message of the panic.
    tracing::error!("the handler of a request panicked");
    Problem::internal_error().into_response()
}

/// Outermost middleware. It traces and counts a request, adds common headers to the response, and
/// converts errors to the format of OpenAI or Anthropic if the path belongs to their API.
async fn observe_request(State(app): State<App>, request: Request, next: Next) -> Response {
    let start = Instant::now();
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let prefix = nested_path_prefix(&request).to_owned();
    // The tracing span omits query and headers, which may contain secrets.
    let span = tracing::info_span!(
        "http request",
        http.request.method = %method,
        url.path = %path,
        http.response.status_code = tracing::field::Empty,
    );
    // The metrics count the request as open until this value is dropped.
    let open_request = Arc::clone(&app.metrics().open_requests);
    let mut response = next.run(request).instrument(span.clone()).await;
    let route = response.extensions_mut().remove::<MatchedPath>();
    if let Some(problem) = response.extensions_mut().remove::<Problem>()
        && let Some(mut converted) = dialects::to_dialect_error_response(&path, &problem)
    {
        // CORS and other layers may have added headers, which the converted error needs too.
        for (name, value) in response.headers() {
            if name != header::CONTENT_TYPE && name != header::CONTENT_LENGTH {
                converted.headers_mut().insert(name.clone(), value.clone());
            }
        }
        response = converted;
    }
    let status = response.status();
    span.record("http.response.status_code", status.as_u16());
    // Only the start of the response is recorded: an event stream continues after it.
    tracing::debug!(parent: &span, "the response started");
    let route = route.as_ref().map_or("other", MatchedPath::as_str);
    app.metrics()
        .record_response(method.as_str(), route, status.as_u16(), start.elapsed());
    let headers = response.headers_mut();
    if !prefix.is_empty()
        && let Some(location) = headers
            .get(header::LOCATION)
            .and_then(|value| value.to_str().ok())
        && location.starts_with('/')
        && let Ok(nested) = HeaderValue::from_str(&format!("{prefix}{location}"))
    {
        headers.insert(header::LOCATION, nested);
    }
    let nosniff = HeaderValue::from_static("nosniff");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    // Without `X-DNS-Prefetch-Control: off`, browsers may resolve the host names of links in model
    // output before a click. Such DNS requests could leak data.
    let off = HeaderValue::from_static("off");
    headers.insert(header::X_DNS_PREFETCH_CONTROL, off);
    let no_store = HeaderValue::from_static("no-store");
    headers.entry(header::CACHE_CONTROL).or_insert(no_store);
    // By default, a browser must load nothing for a response that it shows as a page. The handlers
    // of the web page set their own policy.
    let policy = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(policy);
    concurrency_limits::hold_until_response_sent(response, open_request)
}

/// Returns the path prefix, such as `/tools`, below which the embedding program nested the server's
/// routes. Returns an empty string if the routes are not nested.
fn nested_path_prefix(request: &Request) -> &str {
    let inner = request.uri().path();
    let original = request.extensions().get::<OriginalUri>();
    let Some(OriginalUri(original)) = original else {
        return "";
    };
    // If the request path is exactly the prefix, such as `/tools`, `inner` is `/`, which is not a
    // suffix of the original path.
    let prefix = original.path().strip_suffix(inner);
    prefix.unwrap_or(original.path()).trim_end_matches('/')
}

/// Adds the matched route pattern, such as `/runs/{id}`, to the response, so that
/// [`observe_request`] can record it in the metrics.
async fn add_matched_route(request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let mut response = next.run(request).await;
    if let Some(route) = route {
        response.extensions_mut().insert(route);
    }
    response
}
