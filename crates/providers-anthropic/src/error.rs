//! The API's errors:
//! `{"type": "error", "error": {type, message, details: {error_code}}, "request_id"}`.
//!
//! Types and codes are those of the official SDK (anthropic 2.11.0). Errors about a prompt that is
//! too long and about an empty account have no code, so that only their messages show the cause.
//! The texts come from public issue threads (docker-agent#569, claude-code#12186,
//! claude-code#66314).

use serde_json::{Map, Value};
use switchboard_domain::{ModelError, ModelErrorKind};
use switchboard_providers_common::provider::{
    ApiError, ErrorClass, ErrorRule, ErrorTable, value_to_text,
};

/// The table that maps the API's error codes and messages to error classes.
pub(crate) static ERRORS: ErrorTable = ErrorTable {
    details: read_error_details,
    rules: RULES,
    not_found_hint: "",
};

const RULES: &[ErrorRule] = &[
    // An error about a spend limit may have HTTP status 429. Without this rule, such a request
    // would be retried like a rate-limited request.
    ErrorRule::match_codes(&["*_spend_limit_reached"], ErrorClass::QuotaExhausted),
    ErrorRule::match_codes(&["organization_on_hold"], ErrorClass::Permission),
    ErrorRule::match_messages(
        &[
            "prompt is too long",
            "exceed context limit",
            "exceeds the model's context",
            // Compatible servers send this text if the model is of another vendor.
            "maximum context length",
        ],
        ErrorClass::ContextOverflow,
    )
    .restrict_to_refused(),
    ErrorRule::match_messages(&["credit balance is too low"], ErrorClass::QuotaExhausted)
        .restrict_to_refused(),
    // This rule applies only to refused requests (HTTP status 400, 413 or 422, or an error in a
    // stream), because gateways send this type with every error and any HTTP status.
    ErrorRule::match_codes(&["invalid_request_error"], ErrorClass::InvalidRequest)
        .restrict_to_refused(),
    ErrorRule::match_codes(&["request_too_large"], ErrorClass::InvalidRequest),
    ErrorRule::match_codes(&["authentication_error"], ErrorClass::Authentication),
    ErrorRule::match_codes(&["billing_error"], ErrorClass::QuotaExhausted),
    ErrorRule::match_codes(&["permission_error"], ErrorClass::Permission),
    ErrorRule::match_codes(&["not_found_error"], ErrorClass::NotFound),
    ErrorRule::match_codes(&["rate_limit_error"], ErrorClass::RateLimited),
    ErrorRule::match_codes(
        &[
            "overloaded_error",
            "api_error",
            "timeout_error",
            "conflict_error",
        ],
        ErrorClass::Overloaded,
    ),
];

fn read_error_details(fields: &Map<String, Value>, error: &mut ApiError) {
    let code = fields.get("details").and_then(|it| it.get("error_code"));
    let code = value_to_text(code);
    if !code.is_empty() {
        error.codes.insert(0, code);
    }
    error.field = find_field_in_message(&error.message);
}

/// Returns the path of a request field from the start of an error message, such as
/// `messages.3.content.0.tool_result: …` or `max_tokens: 200000 > 128000, …`. Returns `None` if the
/// message does not start with a known field.
fn find_field_in_message(message: &str) -> Option<String> {
    const FIELDS: [&str; 13] = [
        "messages",
        "tools",
        "tool_choice",
        "system",
        "model",
        "max_tokens",
        "thinking",
        "output_config",
        "temperature",
        "top_p",
        "top_k",
        "stop_sequences",
        "metadata",
    ];
    let (path, _) = message.split_once(": ")?;
    let first = path.split('.').next()?;
    let is_path = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '[' | ']');
    (FIELDS.contains(&first) && path.chars().all(is_path)).then(|| path.to_owned())
}

/// Returns whether `error` shows that the API refused thinking blocks of earlier answers: the
/// blocks were changed, or their signature was created for a conversation with other first
/// messages.
pub(crate) fn is_thinking_block_refusal(error: &ModelError) -> bool {
    const MESSAGES: [&str; 3] = [
        "bound to a different conversation",
        "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be",
        "Invalid `signature` in `thinking` block",
    ];
    is_invalid_request(error) && MESSAGES.iter().any(|text| error.message().contains(text))
}

/// Returns whether `error` shows that the API refused a forced tool choice, for this model or
/// together with thinking. The messages of such errors are: "`tool_choice`: type "tool" and "any"
/// are not supported for this model", "`tool_choice` forces tool use is not compatible with this
/// model", "Thinking may not be enabled when `tool_choice` forces tool use".
pub(crate) fn is_tool_choice_refusal(error: &ModelError) -> bool {
    let message = error.message();
    is_invalid_request(error)
        && message.contains("tool_choice")
        && (message.contains("not supported for this model") || message.contains("forces tool use"))
}

fn is_invalid_request(error: &ModelError) -> bool {
    matches!(error.kind, ModelErrorKind::InvalidRequest { .. })
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
