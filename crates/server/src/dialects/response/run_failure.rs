//! Converts failed runs to HTTP statuses and error messages.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use switchboard_orchestration::{
    Outcome, RunErrorKind, RunReport, strategy::formatter::AnswerSchema,
};

/// The HTTP status and error message for a run that ended without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunFailure<'a> {
    pub(crate) status: StatusCode,
    /// The error code for clients: usually the error kind of the run report, otherwise a code such
    /// as `cancelled` or `interrupted`.
    pub(crate) code: String,
    pub(crate) message: &'a str,
}

impl<'a> RunFailure<'a> {
    /// Returns the failure of a run, or `None` if the run has an answer. A run that reached a limit
    /// has an answer if it wrote any text. A refused or filtered answer is not a failure.
    pub(crate) fn from_report(report: &'a RunReport) -> Option<Self> {
        let (status, code, message) = match (report.outcome, &report.error) {
            (Outcome::Completed, _) => return None,
            (Outcome::Limited, _) if !report.answer.is_empty() => return None,
            (Outcome::Failed, _) if is_refused_or_filtered(report) => return None,
            (Outcome::Cancelled, _) => (
                StatusCode::CONFLICT,
                "cancelled".to_owned(),
                "the run was cancelled",
            ),
            (_, Some(error)) => (
                http_status(&error.kind),
                error_code(&error.kind),
                error.message.as_str(),
            ),
            (_, None) => {
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                (status, "internal".to_owned(), "the run failed")
            }
        };
        Some(Self {
            status,
            code,
            message,
        })
    }

    /// Returns a failure if a completed run's answer does not match the requested JSON Schema.
    /// Other runs are not checked, because their finish reason shows the problem.
    pub(crate) fn from_answer_mismatch(report: &'a RunReport, form: &AnswerSchema) -> Option<Self> {
        let is_complete = report.outcome == Outcome::Completed && report.error.is_none();
        (is_complete && !form.accepts_json_text(&report.answer)).then(|| Self {
            status: StatusCode::BAD_GATEWAY,
            code: "malformed_answer".to_owned(),
            message: "the answer does not match the requested schema: send the request again, or \
                      use another model",
        })
    }

    /// Adds the header `Retry-After` with the value 1 (second) if the failure has the status 503.
    pub(crate) fn set_retry_after(&self, response: &mut Response) {
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            let seconds = HeaderValue::from_static("1");
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
    }

    /// Creates the failure of a response that ends before its run has finished.
    pub(crate) fn from_interruption(reason: &'a str) -> Self {
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            code: "interrupted".to_owned(),
            message: reason,
        }
    }
}

/// Returns whether the model refused to answer or a content filter removed the answer. Such runs
/// are not failures, because every client protocol has a finish reason for them.
pub(crate) fn is_refused_or_filtered(report: &RunReport) -> bool {
    let kind = report.error.as_ref().map(|error| &error.kind);
    matches!(
        kind,
        Some(RunErrorKind::Refusal | RunErrorKind::ContentFilter)
    )
}

/// Returns the error kind as it appears in the JSON of the run report.
pub(crate) fn error_code(kind: &RunErrorKind) -> String {
    match serde_json::to_value(kind) {
        Ok(serde_json::Value::String(code)) => code,
        _ => "internal".to_owned(),
    }
}

fn http_status(kind: &RunErrorKind) -> StatusCode {
    match kind {
        RunErrorKind::Model(kind) => match kind.as_str() {
            "invalid_request" | "unsupported" => StatusCode::BAD_REQUEST,
            "not_found" => StatusCode::NOT_FOUND,
            "rate_limited" | "quota_exhausted" => StatusCode::TOO_MANY_REQUESTS,
            "overloaded" => StatusCode::SERVICE_UNAVAILABLE,
            "timeout" => StatusCode::GATEWAY_TIMEOUT,
            // Other errors, such as a rejected API key, concern the server and not its client.
            _ => StatusCode::BAD_GATEWAY,
        },
        RunErrorKind::ContextOverflow | RunErrorKind::InvalidSchema => StatusCode::BAD_REQUEST,
        RunErrorKind::StepLimit
        | RunErrorKind::ToolCallLimit
        | RunErrorKind::TokenLimit
        | RunErrorKind::CostLimit
        | RunErrorKind::TimeLimit
        | RunErrorKind::OutputLimit => StatusCode::UNPROCESSABLE_ENTITY,
        RunErrorKind::ServerUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        RunErrorKind::EmptyAnswer
        | RunErrorKind::MalformedAnswer
        | RunErrorKind::MalformedToolCall => StatusCode::BAD_GATEWAY,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
