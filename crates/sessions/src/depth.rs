//! The nesting of what is stored.

use switchboard_domain::{MAX_DOCUMENT_DEPTH, SessionStoreError, check_document_depth};

/// Refuses a document that could be written and not be read again.
pub(crate) fn check(what: &'static str, json: &str) -> Result<(), SessionStoreError> {
    let checked = check_document_depth(json.as_bytes());
    checked.map_err(|_| too_deep(what, MAX_DOCUMENT_DEPTH))
}

/// Returns the error for more than `max` levels. How many there are is not counted.
pub(crate) fn too_deep(what: &'static str, max: usize) -> SessionStoreError {
    let most = max.try_into().unwrap_or(u64::MAX);
    SessionStoreError::TooLarge {
        what,
        actual: most.saturating_add(1),
        most,
        unit: "levels",
    }
}
