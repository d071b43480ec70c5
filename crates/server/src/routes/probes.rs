//! For those who watch over the server: health, readiness, metrics, and what it offers.

use axum::{
    Json,
    extract::{Request, State},
    http::{HeaderValue, header},
    response::{IntoResponse as _, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{App, Problem, app::prefix, document, problem::ProblemBody};

/// It is well.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// `ok`
    #[schema(example = "ok")]
    status: &'static str,
}

/// Say whether the server is alive
///
/// Needs no token.
#[utoipa::path(
    get, path = "/healthz", operation_id = "health", tag = "operation", security(()),
    responses((status = 200, description = "It is alive.", body = Health))
)]
pub(super) async fn healthz() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Say whether the server can take runs
///
/// It can if its store can be read and written, the MCP servers that are required are there, and it is not about to
/// stop. The store is checked once a second at most, and a check takes two seconds at most. Needs no token.
#[utoipa::path(
    get, path = "/readyz", operation_id = "readiness", tag = "operation", security(()),
    responses(
        (status = 200, description = "It can.", body = Health),
        (status = 503, description = "It cannot; `detail` says why.", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn readyz(State(app): State<App>) -> Result<Json<Health>, Problem> {
    let unready = |detail: String| Problem::unavailable(detail, None);
    if app.hub().is_stopping().is_cancelled() {
        return Err(unready("the server is about to stop".to_owned()));
    }
    if !app.store_is_ready().await {
        return Err(unready(
            "the session store cannot be read and written; the server's log says why".to_owned(),
        ));
    }
    app.engine().readiness().await.map_err(unready)?;
    Ok(Json(Health { status: "ready" }))
}

/// Count what was done
///
/// The text format `OpenMetrics` 1.0.0. Needs a token, where there are tokens: it names models and tools.
#[utoipa::path(
    get, path = "/metrics", operation_id = "metrics", tag = "operation",
    responses((status = 200, description = "Counters and gauges.", body = String, content_type = "application/openmetrics-text"))
)]
pub(super) async fn metrics(State(app): State<App>) -> Response {
    let text = app.metrics().text(app.hub());
    let kind =
        HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

/// Describe the server
///
/// This document. Needs no token.
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "openapi", tag = "operation", security(()),
    responses((status = 200, description = "OpenAPI 3.1.", body = serde_json::Value))
)]
pub(super) async fn openapi(State(app): State<App>, request: Request) -> Response {
    let kind = HeaderValue::from_static("application/json");
    let document = document::nested(app.document(), prefix(&request));
    ([(header::CONTENT_TYPE, kind)], document).into_response()
}
