//! Ids of tool uses, both ways.

use std::{borrow::Cow, collections::HashSet};

use switchboard_domain::ChatRequest;

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

/// The tool-use ids of a conversation. Gives out an id of its own where the server gives none, or
/// one that is taken: an id answers to one call in the whole conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LocalIds {
    used: HashSet<String>,
    next: u32,
}

impl LocalIds {
    /// The ids that are free after a conversation.
    pub fn after(request: &ChatRequest) -> Self {
        let messages = request.messages.iter();
        let used = messages.flat_map(|message| message.tool_uses().map(|it| it.id.clone()));
        Self {
            used: used.collect(),
            next: 1,
        }
    }

    /// The server's id if it is new, else `call_local_<n>`, counted from 1 within the conversation.
    pub(crate) fn claim(&mut self, wire: &str) -> String {
        if !wire.is_empty() && self.used.insert(wire.to_owned()) {
            return wire.to_owned();
        }
        loop {
            let id = format!("call_local_{}", self.next.max(1));
            self.next = self.next.max(1).saturating_add(1);
            if self.used.insert(id.clone()) {
                return id;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchboard_domain::{Message, Part, Role, ToolInput, ToolUse};

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

    #[test]
    fn blank_and_taken_ids_are_replaced() {
        let call = ToolUse::new("toolu_1", "f", ToolInput::parse(""));
        let said = Message::new(Role::Assistant, [Part::ToolUse(call)]);
        let mut ids = LocalIds::after(&ChatRequest::new([said]));
        assert_eq!(ids.claim("toolu_2"), "toolu_2");
        assert_eq!(ids.claim("toolu_1"), "call_local_1");
        assert_eq!(ids.claim(""), "call_local_2");
        assert_eq!(ids.claim("toolu_2"), "call_local_3");
    }
}
