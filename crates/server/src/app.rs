//! The router: every route, with what stands before it.

use std::{
    net::IpAddr,
    sync::{Arc, OnceLock},
    time::Instant,
};

use axum::{
    Router,
    extract::{MatchedPath, OriginalUri, Request, State},
    http::{HeaderValue, Method, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
};
use tower_http::catch_panic::CatchPanicLayer;
use tracing::Instrument as _;
use utoipa_axum::router::OpenApiRouter;

use crate::{
    Engine, Problem, ServerOptions,
    counts::ServerMetrics,
    document,
    hub::Hub,
    page,
    places::{self, Places},
    project,
    readiness::StoreCheck,
    routes,
    security::{self, Names},
};

/// What every handler sees. Cheap to clone.
#[derive(Clone)]
pub(crate) struct App {
    shared: Arc<Shared>,
}

struct Shared {
    hub: Hub,
    metrics: ServerMetrics,
    places: Places,
    store_check: StoreCheck,
    document: OnceLock<String>,
}

impl App {
    pub(crate) fn new(hub: Hub) -> Self {
        let shared = Shared {
            places: Places::new(hub.options()),
            metrics: ServerMetrics::new(hub.metrics()),
            hub,
            store_check: StoreCheck::default(),
            document: OnceLock::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    pub(crate) fn hub(&self) -> &Hub {
        &self.shared.hub
    }

    pub(crate) fn engine(&self) -> &dyn Engine {
        &**self.hub().engine()
    }

    pub(crate) fn options(&self) -> &ServerOptions {
        self.hub().options()
    }

    pub(crate) fn metrics(&self) -> &ServerMetrics {
        &self.shared.metrics
    }

    /// Returns whether the session store can be read and written.
    pub(crate) async fn store_is_ready(&self) -> bool {
        let ping = self.hub().sessions().ping();
        self.shared.store_check.passes(ping).await
    }

    /// Places for requests.
    pub(crate) fn places(&self) -> &Places {
        &self.shared.places
    }

    /// The OpenAPI document as JSON.
    pub(crate) fn document(&self) -> &str {
        self.shared.document.get_or_init(|| {
            let text = serde_json::to_string(&document::of(parts().into_openapi()));
            text.unwrap_or_default()
        })
    }
}

/// Every route that the document describes.
pub(crate) fn parts() -> OpenApiRouter<App> {
    guarded().merge(routes::open())
}

fn guarded() -> OpenApiRouter<App> {
    routes::guarded().merge(project::routes())
}

/// Everything, for a server at this address.
pub(crate) fn router(app: &App, bound: IpAddr) -> Router {
    let (guarded, _) = guarded().split_for_parts();
    let guarded = guarded
        .route_layer(middleware::from_fn(note_route))
        .method_not_allowed_fallback(no_method)
        .fallback(no_route)
        .layer(middleware::from_fn_with_state(
            app.clone(),
            security::authenticate,
        ));
    let (open, _) = routes::open().split_for_parts();
    let open: Router<App> = open.merge(page::routes());
    let names = Names::of(app.options(), bound);
    let router = open
        .route_layer(middleware::from_fn(note_route))
        .method_not_allowed_fallback(no_method)
        .fallback_service(guarded.with_state(app.clone()))
        .layer(middleware::from_fn_with_state(app.clone(), places::limit))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(middleware::from_fn_with_state(
            (app.clone(), names),
            security::check_head,
        ));
    let router = match security::cors(app.options()) {
        Some(cors) => router.layer(cors),
        None => router,
    };
    router
        .layer(middleware::from_fn_with_state(app.clone(), observe))
        .with_state(app.clone())
}

async fn no_route(OriginalUri(uri): OriginalUri) -> Problem {
    Problem::not_found(format!(
        "there is nothing at {}; /openapi.json describes what there is",
        uri.path()
    ))
}

async fn no_method(method: Method, OriginalUri(uri): OriginalUri) -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "no-method",
        "There is no such method here",
        format!(
            "{} does not take {method}; the header Allow says what it takes",
            uri.path()
        ),
    )
}

fn panicked(_: Box<dyn std::any::Any + Send>) -> Response {
    // The panic itself was reported where it happened.
    tracing::error!("a request ended in a panic");
    Problem::internal().into_response()
}

/// The outermost: a span and counts for every request, headers of every answer, and errors in the form that the
/// client knows.
async fn observe(State(app): State<App>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let prefix = prefix(&request).to_owned();
    // No query and no headers: these may hold what is secret.
    let span = tracing::info_span!(
        "http request",
        http.request.method = %method,
        url.path = %path,
        http.response.status_code = tracing::field::Empty,
    );
    // A client that goes away in the middle ends this at any of its waits.
    let open = app.metrics().open_requests.open();
    let mut response = next.run(request).instrument(span.clone()).await;
    let route = response.extensions_mut().remove::<Route>();
    if let Some(problem) = response.extensions_mut().remove::<Problem>()
        && let Some(mut other) = project::problem(&path, &problem)
    {
        problem.set_headers(&mut other);
        // What layers on the way added, such as who may read it, holds for both forms.
        for (name, value) in response.headers() {
            if name != header::CONTENT_TYPE && name != header::CONTENT_LENGTH {
                other.headers_mut().insert(name.clone(), value.clone());
            }
        }
        response = other;
    }
    let status = response.status();
    span.record("http.response.status_code", status.as_u16());
    // A stream goes on behind this.
    tracing::debug!(parent: &span, "answered");
    let route = route.map_or_else(|| "other".to_owned(), |route| route.0);
    app.metrics()
        .responded(method.as_str(), &route, status.as_u16(), began.elapsed());
    let headers = response.headers_mut();
    if !prefix.is_empty()
        && let Some(location) = headers
            .get(header::LOCATION)
            .and_then(|it| it.to_str().ok())
        && location.starts_with('/')
        && let Ok(nested) = HeaderValue::from_str(&format!("{prefix}{location}"))
    {
        headers.insert(header::LOCATION, nested);
    }
    let nosniff = HeaderValue::from_static("nosniff");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    // No name that a model or a server wrote is looked up before a person follows it. Frames inherit this.
    let off = HeaderValue::from_static("off");
    headers.insert(header::X_DNS_PREFETCH_CONTROL, off);
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    if !headers.contains_key(header::CONTENT_SECURITY_POLICY) {
        // What is no page is not to be shown as one.
        let policy = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    places::held(response, open)
}

/// Returns the path below which the routes are nested; empty where they are not.
pub(crate) fn prefix(request: &Request) -> &str {
    let inner = request.uri().path();
    let original = request.extensions().get::<OriginalUri>();
    let Some(OriginalUri(original)) = original else {
        return "";
    };
    // The root of a nested router is also found without its slash.
    let prefix = original.path().strip_suffix(inner);
    prefix.unwrap_or(original.path()).trim_end_matches('/')
}

/// The pattern of the route that answered.
#[derive(Debug, Clone)]
struct Route(String);

/// Notes which route answers.
async fn note_route(request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let mut response = next.run(request).await;
    if let Some(route) = route {
        let route = Route(route.as_str().to_owned());
        response.extensions_mut().insert(route);
    }
    response
}
