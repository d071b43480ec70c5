//! Unique tool-use ids for the tool calls of a conversation.

use std::collections::HashSet;

use switchboard_domain::ChatRequest;

/// Returns the 64-bit FNV-1a hash of a tool-use id, for an API that does not accept the id. It is
/// the same on every machine and in every release, because prompt caches match only identical
/// requests.
pub fn hash_tool_use_id(id: &str) -> u64 {
    id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Beginning of the created ids, such as `call_local_1`.
const PREFIX: &str = "call_local_";

/// The tool-use ids of a conversation. Creates an id where the server sends none or one that is
/// already used: an id must be unique in the conversation.
///
/// ```
/// use switchboard_domain::ChatRequest;
/// use switchboard_providers_common::ToolUseIds;
///
/// let mut ids = ToolUseIds::from_request(&ChatRequest::default());
/// assert_eq!(ids.claim_tool_use_id(Some("call_7")), "call_7");
/// assert_eq!(ids.claim_tool_use_id(Some("call_7")), "call_local_1");
/// assert_eq!(ids.claim_tool_use_id(None), "call_local_2");
/// ```
#[derive(Debug, Clone, Default)]
pub struct ToolUseIds {
    used: HashSet<String>,
    /// Number in the last created id, such as 2 in `call_local_2`.
    last: u32,
    /// Prefix of the created ids, if it differs from [`PREFIX`].
    prefix: Option<&'static str>,
}

impl ToolUseIds {
    /// Collects the tool-use ids of a conversation, so that new ids differ from them.
    pub fn from_request(request: &ChatRequest) -> Self {
        let messages = request.messages.iter();
        let tool_uses = messages.flat_map(|message| message.tool_uses());
        Self {
            used: tool_uses.map(|tool_use| tool_use.id.clone()).collect(),
            ..Self::default()
        }
    }

    /// Sets the prefix of the created ids.
    pub(crate) fn with_prefix(self, prefix: &'static str) -> Self {
        Self {
            prefix: Some(prefix),
            ..self
        }
    }

    /// Returns the id `wire` that the server sent, if it is not blank and not yet used in the
    /// conversation. Otherwise returns a new id, such as `call_local_1`. The returned id then
    /// counts as used.
    pub fn claim_tool_use_id(&mut self, wire: Option<&str>) -> String {
        if let Some(id) = wire.filter(|id| !id.trim().is_empty())
            && self.used.insert(id.to_owned())
        {
            return id.to_owned();
        }
        loop {
            self.last = self.last.saturating_add(1);
            let id = format!("{}{}", self.prefix.unwrap_or(PREFIX), self.last);
            if self.used.insert(id.clone()) {
                return id;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use switchboard_domain::{Message, Part, Role, ToolInput, ToolUse};

    use super::*;

    #[test]
    fn an_id_is_given_out_once_in_a_conversation() {
        let used = ["a", "call_local_1"]
            .map(|id| Part::ToolUse(ToolUse::new(id, "t", ToolInput::parse_input(""))));
        let request = ChatRequest::new([Message::new(Role::Assistant, used)]);
        let mut ids = ToolUseIds::from_request(&request);
        assert_eq!(ids.claim_tool_use_id(Some("b")), "b");
        assert_eq!(ids.claim_tool_use_id(Some("b")), "call_local_2");
        assert_eq!(ids.claim_tool_use_id(Some("a")), "call_local_3");
        assert_eq!(ids.claim_tool_use_id(None), "call_local_4");
        assert_eq!(ids.claim_tool_use_id(Some(" ")), "call_local_5");
        // An id from the server may have the form of a local id.
        assert_eq!(ids.claim_tool_use_id(Some("call_local_6")), "call_local_6");
        assert_eq!(ids.claim_tool_use_id(Some("")), "call_local_7");
        assert_eq!(
            ToolUseIds::default().claim_tool_use_id(None),
            "call_local_1"
        );
    }
}
