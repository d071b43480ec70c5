//! What went wrong in a run, as the status and the words that clients of HTTP APIs know.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use switchboard_orchestration::{Outcome, RunErrorKind, RunReport, strategy::formatter::Form};

/// Why a run has no answer to give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure<'a> {
    pub(crate) status: StatusCode,
    /// The kind in a word, as in the report.
    pub(crate) code: String,
    pub(crate) message: &'a str,
}

impl<'a> Failure<'a> {
    /// Why there is no answer, if there is none. A run at a limit has one, unless it said nothing at all.
    pub(crate) fn of(report: &'a RunReport) -> Option<Self> {
        let error = report.error.as_ref();
        match report.outcome {
            Outcome::Completed => return None,
            Outcome::Limited if !report.answer.is_empty() => return None,
            Outcome::Failed if is_declined(report) => return None,
            Outcome::Cancelled => {
                return Some(Self {
                    status: StatusCode::CONFLICT,
                    code: "cancelled".to_owned(),
                    message: "the run was cancelled",
                });
            }
            Outcome::Limited | Outcome::Failed => {}
        }
        let Some(error) = error else {
            return Some(Self {
                status: StatusCode::INTERNAL_SERVER_ERROR,
                code: "internal".to_owned(),
                message: "the run failed",
            });
        };
        Some(Self {
            status: status(&error.kind),
            code: code(&error.kind),
            message: &error.message,
        })
    }

    /// Why an answer that is there is none, if it is not in the form that was asked for. One that a limit cut short says so
    /// itself, and one that was declined has none.
    pub(crate) fn of_form(report: &'a RunReport, form: &Form) -> Option<Self> {
        let is_whole = report.outcome == Outcome::Completed && report.error.is_none();
        (is_whole && !form.fits(&report.answer)).then(|| Self {
            status: StatusCode::BAD_GATEWAY,
            code: "malformed_answer".to_owned(),
            message: "the model did not answer in the form that was asked for: ask again, or take another model",
        })
    }

    /// The headers that go with it.
    pub(crate) fn set_headers(&self, response: &mut Response) {
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            let soon = HeaderValue::from_static("1");
            response.headers_mut().insert(header::RETRY_AFTER, soon);
        }
    }

    /// The response ends before the run does.
    pub(crate) fn interrupted(why: &'a str) -> Self {
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            code: "interrupted".to_owned(),
            message: why,
        }
    }
}

/// The model declined, or a filter withheld what it said: an answer of a kind in every dialect.
pub(crate) fn is_declined(report: &RunReport) -> bool {
    let kind = report.error.as_ref().map(|error| &error.kind);
    matches!(
        kind,
        Some(RunErrorKind::Refusal | RunErrorKind::ContentFilter)
    )
}

/// The kind in a word, as in the report.
pub(crate) fn code(kind: &RunErrorKind) -> String {
    match serde_json::to_value(kind) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "internal".to_owned(),
    }
}

fn status(kind: &RunErrorKind) -> StatusCode {
    match kind {
        RunErrorKind::Model(word) => match word.as_str() {
            "invalid_request" | "unsupported" => StatusCode::BAD_REQUEST,
            "not_found" => StatusCode::NOT_FOUND,
            "rate_limited" | "quota_exhausted" => StatusCode::TOO_MANY_REQUESTS,
            "overloaded" => StatusCode::SERVICE_UNAVAILABLE,
            "timeout" => StatusCode::GATEWAY_TIMEOUT,
            // The key that was refused is the server's, not the client's.
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
