//! Routes for monitoring: health, readiness and metrics.

use axum::{
    Json,
    extract::State,
    http::{HeaderValue, header},
    response::{IntoResponse as _, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{App, Problem};

/// The response of a health check.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// The health of the server: `ok` from `/healthz`, `ready` from `/readyz`.
    #[schema(example = "ok")]
    status: &'static str,
}

/// Check that the server is alive
///
/// Needs no access token.
#[utoipa::path(
    get, path = "/healthz", operation_id = "health", tag = "operation", security(()),
    responses((status = 200, description = "The server is alive.", body = Health))
)]
pub(super) async fn healthz() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Check that the server accepts runs
///
/// The server is ready if its store can be read and written, all required MCP servers are ready,
/// and it is not shutting down. The store is checked at most once per second, for at most two
/// seconds. Needs no access token.
#[utoipa::path(
    get, path = "/readyz", operation_id = "readiness", tag = "operation", security(()),
    responses(
        (status = 200, description = "The server is ready.", body = Health),
        (
            status = 503,
            description = "The server is not ready; `detail` contains the reason.",
            body = Problem
        ),
    )
)]
pub(super) async fn readyz(State(app): State<App>) -> Result<Json<Health>, Problem> {
    if app.hub().shutdown_token().is_cancelled() {
        return Err(Problem::server_unavailable("the server is shutting down"));
    }
    if !app.store_is_ready().await {
        let detail = "the session store cannot be read and written: see the server log";
        return Err(Problem::server_unavailable(detail));
    }
    let checked = app.engine().check_readiness().await;
    checked.map_err(Problem::server_unavailable)?;
    Ok(Json(Health { status: "ready" }))
}

/// Read the metrics
///
/// Returns `OpenMetrics` 1.0.0 text. Needs a token if tokens are configured, because metrics
/// contain names of models and tools.
#[utoipa::path(
    get, path = "/metrics", operation_id = "metrics", tag = "operation",
    responses((
        status = 200,
        description = "Counters and gauges.",
        body = String, content_type = "application/openmetrics-text"
    ))
)]
pub(super) async fn metrics(State(app): State<App>) -> Response {
    let text = app.metrics().format_metrics(app.hub());
    let content_type =
        HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    ([(header::CONTENT_TYPE, content_type)], text).into_response()
}
