//! Ids of tool uses as the API takes them.

use std::borrow::Cow;

/// The id as the API takes it: `^[a-zA-Z0-9_-]+$`.
///
/// An id that breaks the pattern, because another provider minted it, is replaced by a short hash of
/// it: the same in the call and in its result, on every machine and in every release.
pub(crate) fn wire_id(id: &str) -> Cow<'_, str> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !id.is_empty() && id.bytes().all(legal) {
        return Cow::Borrowed(id);
    }
    Cow::Owned(format!("call_{:016x}", digest(id)))
}

/// 64-bit FNV-1a.
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_fit_are_sent_as_they_are() {
        for id in ["toolu_01A-b", "call_1", "0"] {
            assert_eq!(wire_id(id), id);
        }
    }

    #[test]
    fn foreign_ids_become_the_same_lawful_one_each_time() {
        for id in ["functions.get:0", "", "ü", "a b", "chatcmpl/1"] {
            let sent = wire_id(id);
            assert!(sent.starts_with("call_") && sent.is_ascii(), "{sent}");
            assert_eq!(sent, wire_id(&sent), "lawful already");
        }
        // A prompt cache needs the same bytes in the next release too.
        assert_eq!(wire_id("functions.get:0"), "call_26b11359279f1206");
        assert_ne!(wire_id("functions.get:0"), wire_id("functions.get:1"));
    }
}
