//! The route that lists audit records.

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::sessions::check_list_limit;
use crate::{
    App, Problem,
    http::{extractors::QueryParameters, security::Caller},
    openapi::schema,
};

/// The query parameters of `GET /audit`.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditQuery {
    /// Maximum number of records in the response. The default is 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// The value of `next` in the previous response. The response contains only older records.
    before: Option<String>,
}

/// Audit records of the caller.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditList {
    /// The records, newest first.
    #[schema(value_type = Vec<schema::AuditRecord>)]
    records: Vec<Value>,
    /// The value of `before` for older records. Absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<String>,
}

/// List your audit records
#[utoipa::path(
    get, path = "/audit", operation_id = "listAuditRecords", tag = "runs",
    params(AuditQuery),
    responses((status = 200, description = "The records, newest first.", body = AuditList))
)]
pub(super) async fn list(
    State(app): State<App>,
    Caller(principal): Caller,
    QueryParameters(query): QueryParameters<AuditQuery>,
) -> Result<Json<AuditList>, Problem> {
    let limit = check_list_limit(query.limit)?;
    let before = query.before.unwrap_or_default();
    if before.len() > 32 || !before.chars().all(|it| it.is_ascii_hexdigit()) {
        let expected = "`before` must be the `next` of an earlier response";
        return Err(Problem::invalid_field("before", expected));
    }
    // One more record shows whether there are older ones.
    let listed = app
        .engine()
        .list_audit_records(&principal, &before, limit + 1);
    let mut records = listed.await?;
    let has_more = records.len() > limit as usize;
    records.truncate(limit as usize);
    Ok(Json(AuditList {
        next: records.last().filter(|_| has_more).map(|it| it.id.clone()),
        records: records.into_iter().map(|it| it.record).collect(),
    }))
}
