//! Errors of the API: `{"error": "…"}`, a text without a code.
//!
//! The texts come from the server's source (`server/routes.go`, `server/sched.go`,
//! `llm/llama_server.go`) and, for the cloud, from public issue threads.

use std::{error::Error as _, iter};

use serde_json::{Map, Value};
use switchboard_domain::{ModelError, ModelErrorKind, TimeoutPhase};
use switchboard_providers_common::provider::{ApiError, ErrorClass, ErrorRule, ErrorTable};

/// Feature that an error names as unsupported if the model does not support tools.
pub(crate) const TOOLS: &str = "tool use for this model";
/// Advice in an error if the model does not support tools.
pub(crate) const TOOLS_REMEDY: &str =
    "set `tools_by_prompt` to describe tools in the prompt instead";
/// Feature that an error names as unsupported if the model does not support reasoning.
pub(crate) const THINKING: &str = "thinking by this model";
/// Feature that an error names as unsupported if the server refuses a reasoning level, such as
/// `high`. Older servers accept levels for few models.
pub(crate) const THINKING_LEVELS: &str = "this thinking level (`think`)";

/// Table with the rules that classify errors of Ollama servers by their messages.
pub(crate) static ERRORS: ErrorTable = ErrorTable {
    details: set_invalid_field,
    rules: RULES,
    not_found_hint: "check that the address is an Ollama server and does not end with /v1 or /api",
};

const RULES: &[ErrorRule] = &[
    ErrorRule::match_messages(&["does not support tools"], ErrorClass::Unsupported(TOOLS)),
    ErrorRule::match_messages(
        &["does not support thinking"],
        ErrorClass::Unsupported(THINKING),
    ),
    ErrorRule::match_messages(&["invalid think value"], ErrorClass::InvalidRequest),
    // Older servers send "think value \"high\" is not supported for this model".
    ErrorRule::match_messages(&["think value"], ErrorClass::Unsupported(THINKING_LEVELS)),
    ErrorRule::match_messages(
        &[
            "does not support vision",
            "does not support image",
            "image input is not supported",
            "missing data required for image input",
        ],
        ErrorClass::Unsupported("image input for this model"),
    ),
    ErrorRule::match_messages(
        &["does not support chat", "does not support completion"],
        ErrorClass::Unsupported("chat with this model"),
    ),
    ErrorRule::match_messages(
        &[
            "longer than the context length",
            "exceeds the context length",
            "exceeds maximum context length",
            "exceeds the available context",
        ],
        ErrorClass::ContextOverflow,
    ),
    // The model does not fit in memory, so a retry is useless. The server answers with status 500.
    ErrorRule::match_messages(
        &["requires more system memory", "out of memory"],
        ErrorClass::Unsupported("a model of this size on this server"),
    ),
    // Ollama's cloud answers 429 when an hourly, session or weekly limit is reached. It sends no
    // time for a retry.
    ErrorRule::match_messages(&["usage limit"], ErrorClass::QuotaExhausted),
    // "request canceled" (status 499) means that the request was dropped while the model was
    // loaded.
    ErrorRule::match_messages(&["server busy", "request canceled"], ErrorClass::Overloaded),
    ErrorRule::match_messages(&["not found"], ErrorClass::NotFound).restrict_to_in_band(),
];

/// Sets `error.field` to the name of the invalid request field, if the error message names or
/// implies one. Ollama has no separate field for it.
fn set_invalid_field(_fields: &Map<String, Value>, error: &mut ApiError) {
    const FIELDS: [(&str, &str); 5] = [
        ("invalid format", "format"),
        ("invalid think value", "think"),
        ("think must be", "think"),
        ("option \"", "options"),
        ("illegal base64", "messages.images"),
    ];
    let message = &error.message;
    // Some messages are decoding errors of Go: "json: cannot unmarshal bool into Go struct field
    // ChatRequest.tools.… of type …".
    let name = message.split_once("Go struct field ");
    let name = name.and_then(|(_, rest)| rest.split_whitespace().next());
    error.field = match name {
        Some(name) => Some(name.split_once('.').map_or(name, |(_, field)| field)),
        None => FIELDS
            .iter()
            .find(|(text, _)| message.contains(text))
            .map(|(_, field)| *field),
    }
    .map(str::to_owned);
}

/// Returns whether an error message means that the server could not parse the model's tool call.
pub(crate) fn is_malformed_call_error(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    message.contains("error parsing tool call") || message.contains("invalid tool call")
}

/// Returns advice for the user about an error, or `None` if there is none. `is_cloud` is `true` if
/// the server is Ollama's cloud.
pub(crate) fn find_error_advice(error: &ModelError, is_cloud: bool) -> Option<String> {
    Some(match &error.kind {
        ModelErrorKind::NotFound if is_cloud => {
            "the cloud models are listed at ollama.com/search?c=cloud".to_owned()
        }
        ModelErrorKind::NotFound => {
            let model = find_missing_model(error.message())?;
            format!("install it with `ollama pull {model}`")
        }
        ModelErrorKind::Authentication => {
            "set OLLAMA_API_KEY, or run `ollama signin` on the server".to_owned()
        }
        ModelErrorKind::Unsupported { feature } if feature == TOOLS => TOOLS_REMEDY.to_owned(),
        _ => return None,
    })
}

/// Returns the name of the model in "model 'x' not found" or "model \"x\" not found, try pulling it
/// first". Returns `None` for a name that is not safe in a command.
fn find_missing_model(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("model ")?;
    let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let (name, _) = rest.get(1..)?.split_once(quote)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._:/-".contains(c);
    (!name.is_empty() && name.chars().all(is_plain)).then_some(name)
}

/// Returns whether the server does not have the requested endpoint, such as `api/show` or
/// `api/tags`. Servers that are compatible with Ollama may have only the chat endpoint.
pub fn is_missing_endpoint(error: &ModelError) -> bool {
    match error.http_status() {
        // The status is also 404 if the endpoint exists but the server does not have the model.
        Some(404) => !error.message().contains("model"),
        status => matches!(status, Some(405 | 501)),
    }
}

/// Returns whether the connection to the server could not be established. Returns `false` if the
/// server closed an established connection.
pub(crate) fn is_connection_failure(error: &ModelError) -> bool {
    match error.kind {
        ModelErrorKind::Timeout {
            phase: TimeoutPhase::Connect,
            ..
        } => true,
        ModelErrorKind::Connection => {
            let mut causes = iter::successors(error.source(), |&cause| cause.source());
            // This crate does not depend on the HTTP client and its error types. It therefore
            // searches the texts of the causes for the stage that failed: "client error (Connect)".
            causes.any(|cause| cause.to_string().contains("(Connect)"))
        }
        _ => false,
    }
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
