//! Limits on the size and nesting of stored documents.

use std::sync::Arc;

use serde_json::Value;
use switchboard_domain::{
    MAX_DOCUMENT_DEPTH, MAX_JSON_DEPTH, MAX_RUN_PARAMETERS_BYTES, Message, SessionStoreError,
    check_depth, check_document_depth,
};

const RUN_PARAMETERS: &str = "the parameter object of a run";

/// Returns the error `TooLarge` if a JSON document has more than [`MAX_DOCUMENT_DEPTH`] nesting
/// levels. The store could not parse such a document again after reading it. `what` names the
/// document in the error.
pub(crate) fn check_json_nesting(what: &'static str, json: &str) -> Result<(), SessionStoreError> {
    let checked = check_document_depth(json.as_bytes());
    checked.map_err(|_| nesting_error(what, MAX_DOCUMENT_DEPTH))
}

/// Serializes messages to the JSON texts that are stored.
pub(crate) fn serialize_messages(
    operation: &'static str,
    messages: &[Arc<Message>],
) -> Result<Vec<String>, SessionStoreError> {
    let texts = messages.iter().map(|message| {
        let text = serde_json::to_string(message).map_err(|error| SessionStoreError::Storage {
            operation,
            source: error.into(),
        })?;
        check_json_nesting("a message", &text)?;
        Ok(text)
    });
    texts.collect()
}

/// Serializes the parameters of a run to JSON. Returns `None` for missing or `null` parameters, and
/// the error `TooLarge` for parameters that are too large or nested too deeply.
pub(crate) fn serialize_parameters(
    parameters: Option<&Value>,
) -> Result<Option<String>, SessionStoreError> {
    let Some(parameters) = parameters.filter(|parameters| !parameters.is_null()) else {
        return Ok(None);
    };
    check_depth(parameters).map_err(|_| nesting_error(RUN_PARAMETERS, MAX_JSON_DEPTH))?;
    let text = parameters.to_string();
    check_size(RUN_PARAMETERS, &text, MAX_RUN_PARAMETERS_BYTES)?;
    Ok(Some(text))
}

/// Returns the error `TooLarge` if a text has more than `max` bytes. `what` names the text in the
/// error.
pub(crate) fn check_size(
    what: &'static str,
    text: &str,
    max: usize,
) -> Result<(), SessionStoreError> {
    if text.len() > max {
        return Err(SessionStoreError::TooLarge {
            what,
            actual: text.len().try_into().unwrap_or(u64::MAX),
            most: max.try_into().unwrap_or(u64::MAX),
            unit: "bytes",
        });
    }
    Ok(())
}

/// Returns the error `TooLarge` for the document `what`, which has more than `max` nesting levels.
/// The error always reports `max + 1` levels, because the exact depth is not computed.
fn nesting_error(what: &'static str, max: usize) -> SessionStoreError {
    let most = max.try_into().unwrap_or(u64::MAX);
    SessionStoreError::TooLarge {
        what,
        actual: most.saturating_add(1),
        most,
        unit: "levels",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nested(levels: usize) -> Value {
        (0..levels).fold(json!(1), |inner, _| json!([inner]))
    }

    #[test]
    fn large_parameters_are_refused_with_their_size() {
        let long = |bytes: usize| json!("x".repeat(bytes - 2));
        let stored = serialize_parameters(Some(&long(MAX_RUN_PARAMETERS_BYTES)));
        assert_eq!(stored.unwrap().unwrap().len(), MAX_RUN_PARAMETERS_BYTES);
        let refused = serialize_parameters(Some(&long(MAX_RUN_PARAMETERS_BYTES + 1))).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the parameter object of a run has 65537 bytes; the maximum is 65536"
        );
        assert!(serialize_parameters(Some(&nested(MAX_JSON_DEPTH))).is_ok());
        let refused = serialize_parameters(Some(&nested(MAX_JSON_DEPTH + 1))).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the parameter object of a run has 65 levels; the maximum is 64"
        );
    }

    #[test]
    fn null_parameters_are_not_stored() {
        assert_eq!(serialize_parameters(None).unwrap(), None);
        assert_eq!(serialize_parameters(Some(&Value::Null)).unwrap(), None);
        let empty = serialize_parameters(Some(&json!({}))).unwrap();
        assert_eq!(empty.as_deref(), Some("{}"));
    }
}
