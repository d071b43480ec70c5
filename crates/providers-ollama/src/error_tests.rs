use http::HeaderMap;
use serde_json::json;
use switchboard_providers_common::{
    ClassifiedError, ErrorClassifier as _, HttpFailure, provider::ProviderConfig as _,
};

use super::*;
use crate::OllamaConfig;

fn classified_body(status: u16, body: &[u8]) -> ClassifiedError {
    ERRORS.classify_failure(&HttpFailure {
        status,
        headers: &HeaderMap::new(),
        body,
        retry_after: None,
    })
}

fn classified(status: u16, message: &str) -> ClassifiedError {
    let body = json!({ "error": message }).to_string();
    classified_body(status, body.as_bytes())
}

/// Returns the error message with the advice for the user.
fn shown_by(host: &str, status: u16, message: &str) -> String {
    let ClassifiedError { kind, message, .. } = classified(status, message);
    let error = ModelError::new("ollama", kind, message);
    let config = OllamaConfig::for_host(host).unwrap();
    config.add_error_advice(error).message().to_owned()
}

fn unsupported(feature: &str) -> ModelErrorKind {
    ModelErrorKind::Unsupported {
        feature: feature.to_owned(),
    }
}

fn invalid(field: Option<&str>) -> ModelErrorKind {
    ModelErrorKind::InvalidRequest {
        field: field.map(str::to_owned),
    }
}

#[test]
fn a_missing_model_is_reported_with_its_download_command() {
    for message in [
        "model 'qwen3:8b' not found",
        "model \"qwen3:8b\" not found, try pulling it first",
    ] {
        let found = classified(404, message);
        assert_eq!(found.kind, ModelErrorKind::NotFound);
        let shown = shown_by("", 404, message);
        assert!(
            shown.ends_with("; install it with `ollama pull qwen3:8b`"),
            "{shown}"
        );
    }
    // A model name with unsafe characters is not inserted into a command.
    let odd = "model 'x; rm -rf ~' not found";
    assert_eq!(shown_by("", 404, odd), odd);
    let cloud = shown_by("ollama.com", 404, "model 'qwen3' not found");
    assert!(!cloud.contains("pull"), "{cloud}");
}

#[test]
fn a_wrong_address_is_distinguished_from_a_missing_model() {
    let found = classified_body(404, b"404 page not found");
    assert_eq!(found.kind, ModelErrorKind::NotFound);
    assert!(found.message.contains("/v1"), "{}", found.message);
}

#[test]
fn what_a_model_cannot_do_is_unsupported() {
    let library = "registry.ollama.ai/library/gemma:2b does not support tools";
    for (message, feature) in [
        (library, TOOLS),
        ("\"llama3.2\" does not support thinking", THINKING),
        (
            "think value \"high\" is not supported for this model",
            THINKING_LEVELS,
        ),
        (
            "\"nomic-embed-text\" does not support chat",
            "chat with this model",
        ),
        (
            "this model is missing data required for image input",
            "image input for this model",
        ),
    ] {
        assert_eq!(classified(400, message).kind, unsupported(feature));
    }
    // Status 500 alone would mean a server failure, which is retried.
    let memory = "model requires more system memory (9.1 GiB) than is available (5.2 GiB)";
    let found = classified(500, memory);
    assert!(matches!(found.kind, ModelErrorKind::Unsupported { .. }));
    assert_eq!(found.message, memory);
}

#[test]
fn errors_are_classified_by_message_or_status() {
    use ModelErrorKind::{
        Authentication, ContextOverflow, NotFound, Overloaded, Permission, QuotaExhausted,
        RateLimited,
    };
    let busy = "server busy, please try again.  maximum pending requests exceeded";
    let limit = "you (someone) have reached your weekly usage limit, upgrade for higher limits";
    let long = "the prompt is longer than the context length currently available to the model";
    let overloaded = Overloaded { retry_after: None };
    let rate = RateLimited { retry_after: None };
    for (status, message, expected) in [
        (503, busy, overloaded.clone()),
        (429, limit, QuotaExhausted),
        (429, "too many requests", rate),
        (400, long, ContextOverflow),
        (
            500,
            "the input length exceeds the context length",
            ContextOverflow,
        ),
        (401, "unauthorized", Authentication),
        (403, "remote model is unavailable", Permission),
        (
            500,
            "llama runner process has terminated",
            overloaded.clone(),
        ),
        (499, "request canceled", overloaded),
        (404, "file not found", NotFound),
        (400, "model is required", invalid(None)),
        (400, "missing request body", invalid(None)),
    ] {
        assert_eq!(classified(status, message).kind, expected, "{message}");
    }
    let unauthorized = shown_by("", 401, "unauthorized");
    assert!(unauthorized.contains("OLLAMA_API_KEY"));
}

#[test]
fn an_error_names_the_invalid_field() {
    let go = "json: cannot unmarshal bool into Go struct field ChatRequest.tools.function.parameters.properties of type api.ToolProperty";
    for (message, field) in [
        (go, "tools.function.parameters.properties"),
        ("invalid format: \"xml\"; expected \"json\" or …", "format"),
        ("invalid think value: \"extreme\" (must be …)", "think"),
        ("option \"num_ctx\" must be of type integer", "options"),
        ("illegal base64 data at input byte 4", "messages.images"),
    ] {
        assert_eq!(classified(400, message).kind, invalid(Some(field)));
    }
}

#[test]
fn a_body_without_an_error_is_classified_by_its_status() {
    for body in [
        &b"<html>bad gateway"[..],
        b"{}",
        b"{\"error\": null}",
        b"[1]",
        b"",
    ] {
        let found = classified_body(502, body);
        assert_eq!(found.kind, ModelErrorKind::Overloaded { retry_after: None });
    }
    // Compatible servers may send the error as an object.
    let nested = br#"{"error": {"message": "model 'x' not found", "type": "not_found"}}"#;
    let found = classified_body(404, nested);
    assert_eq!(found.message, "model 'x' not found");
}

#[test]
fn case_15_in_the_middle_of_an_answer_an_error_without_a_reason_breaks_it_off() {
    let in_band = |message: &str| {
        let error = ERRORS.read_error_object(&json!(message));
        ERRORS.in_band_error("ollama", error).kind
    };
    assert_eq!(
        in_band("an error was encountered while running the model"),
        ModelErrorKind::Interrupted
    );
    assert_eq!(
        in_band("the input length exceeds the context length"),
        ModelErrorKind::ContextOverflow
    );
    assert_eq!(in_band("model 'x' not found"), ModelErrorKind::NotFound);
}
