//! The API's errors: `{"error": {message, type, param, code}}`, and the variants of compatible
//! servers.

use serde_json::{Map, Value};
use switchboard_providers_common::provider::{ApiError, ErrorClass, ErrorRule, ErrorTable};

/// Table that assigns error classes to the error codes and messages of OpenAI's API and of
/// compatible servers.
pub(crate) static ERRORS: ErrorTable = ErrorTable {
    details: ignore_error_details,
    rules: RULES,
    not_found_hint: "the base address must end with /v1 or the equivalent path of this server",
};

fn ignore_error_details(_fields: &Map<String, Value>, _error: &mut ApiError) {}

const RULES: &[ErrorRule] = &[
    // Texts in error messages about a prompt that is too long. These servers send such messages
    // without an error code: vLLM, llama.cpp, xAI, and proxies to Gemini, Anthropic and Bedrock.
    ErrorRule::match_messages(
        &[
            "maximum context length",
            "maximum prompt length",
            "context window",
            "contextwindowexceeded",
            "exceeds the available context size",
            "exceeds the maximum number of tokens",
            "prompt is too long",
            "input is too long",
        ],
        ErrorClass::ContextOverflow,
    )
    .restrict_to_refused(),
    ErrorRule::match_codes(
        &[
            "insufficient_quota",
            "billing_hard_limit_reached",
            "billing_not_active",
            "insufficient_balance",
            "exceeded_current_quota_error",
        ],
        ErrorClass::QuotaExhausted,
    ),
    ErrorRule::match_codes(
        &[
            "context_length_exceeded",
            "context_window_exceeded",
            "exceed_context_size_error",
        ],
        ErrorClass::ContextOverflow,
    ),
    ErrorRule::match_codes(
        &[
            "content_filter",
            "content_policy_violation",
            "ResponsibleAIPolicyViolation",
            "moderation_blocked",
            "image_content_policy_violation",
            "bio_policy",
            "misalignment_policy_violation",
        ],
        ErrorClass::ContentFilter,
    ),
    ErrorRule::match_codes(
        &[
            "invalid_api_key",
            "authentication_error",
            "invalid_authentication_error",
        ],
        ErrorClass::Authentication,
    ),
    ErrorRule::match_codes(
        &[
            "permission_error",
            "permission_denied",
            "unsupported_country_region_territory",
        ],
        ErrorClass::Permission,
    ),
    ErrorRule::match_codes(
        &["model_not_found", "not_found_error", "NotFoundError"],
        ErrorClass::NotFound,
    ),
    ErrorRule::match_codes(
        &[
            "rate_limit_exceeded",
            "rate_limit_error",
            "rate_limit_reached_error",
        ],
        ErrorClass::RateLimited,
    ),
    ErrorRule::match_codes(
        &[
            "server_error",
            "internal_server_error",
            "InternalServerError",
            "overloaded_error",
            "engine_overloaded_error",
            "service_unavailable",
            "vector_store_timeout",
            "timeout",
        ],
        ErrorClass::Overloaded,
    ),
    // Error codes in the stream event `response.failed`. This event has no HTTP status and does not
    // name an invalid request field, so only the code shows that the request was invalid.
    ErrorRule::match_codes(
        &[
            "invalid_prompt",
            "data_residency_mismatch",
            "empty_image_file",
            "failed_to_download_image",
            "unsupported_image_media_type",
            "invalid_image*",
            "image_*",
            "invalid_base64_image",
        ],
        ErrorClass::InvalidRequest,
    ),
    ErrorRule::match_codes(&["invalid*", "Invalid*"], ErrorClass::InvalidRequest)
        .restrict_to_in_band(),
];

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
