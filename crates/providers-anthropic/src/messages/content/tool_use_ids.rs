//! Replaces tool use ids that the API does not accept.

use std::borrow::Cow;

use switchboard_providers_common::tool_use_ids::hash_tool_use_id;

/// Returns a tool use id that matches `^[a-zA-Z0-9_-]+$`, as the API requires.
///
/// An id of another provider that does not match is replaced by a hash. The hash is the same in
/// the call and in its result, on every machine and in every release.
pub(crate) fn to_valid_tool_use_id(id: &str) -> Cow<'_, str> {
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !id.is_empty() && id.bytes().all(is_valid) {
        return Cow::Borrowed(id);
    }
    Cow::Owned(format!("call_{:016x}", hash_tool_use_id(id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_ids_are_sent_unchanged() {
        for id in ["toolu_01A-b", "call_1", "0"] {
            assert_eq!(to_valid_tool_use_id(id), id);
        }
    }

    #[test]
    fn an_invalid_id_is_always_replaced_by_the_same_valid_one() {
        for id in ["functions.get:0", "", "ü", "a b", "chatcmpl/1"] {
            let sent = to_valid_tool_use_id(id);
            assert!(sent.starts_with("call_") && sent.is_ascii(), "{sent}");
            assert_eq!(sent, to_valid_tool_use_id(&sent), "already valid");
        }
        // The hash must never change, because prompt caches need identical requests.
        assert_eq!(
            to_valid_tool_use_id("functions.get:0"),
            "call_26b11359279f1206"
        );
        assert_ne!(
            to_valid_tool_use_id("functions.get:0"),
            to_valid_tool_use_id("functions.get:1")
        );
    }
}
