//! The tool-use ids of a conversation.

use std::{collections::HashSet, fmt, sync::Arc};

use switchboard_domain::{ChatRequest, Message};

/// So many ids are looked for in the conversation itself. A list of all of its ids is made for more:
/// most answers have a few calls or none, and most conversations are longer than that.
const MAX_SEARCHES: u32 = 8;

/// The tool-use ids of a conversation. Gives out an id of its own where the server gives none, or one
/// that is taken: an id answers to one call in the whole conversation.
///
/// ```
/// use switchboard_domain::ChatRequest;
/// use switchboard_providers_common::LocalIds;
///
/// let mut ids = LocalIds::after(&ChatRequest::default());
/// assert_eq!(ids.claim(Some("call_7")), "call_7");
/// assert_eq!(ids.claim(Some("call_7")), "call_local_1");
/// assert_eq!(ids.claim(None), "call_local_2");
/// ```
#[derive(Clone, Default)]
pub struct LocalIds {
    /// The messages with calls, unless their ids are in `used`.
    before: Vec<Arc<Message>>,
    /// How often it was searched.
    searches: u32,
    used: HashSet<String>,
    /// The number of the last one of ours.
    last: u32,
}

/// Without the conversation.
impl fmt::Debug for LocalIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalIds")
            .field("last", &self.last)
            .finish_non_exhaustive()
    }
}

impl LocalIds {
    /// The ids that are free after a conversation.
    pub fn after(request: &ChatRequest) -> Self {
        let messages = request.messages.iter();
        let calling = messages.filter(|message| message.tool_uses().next().is_some());
        Self {
            before: calling.cloned().collect(),
            ..Self::default()
        }
    }

    /// The server's id if it is new, else `call_local_<n>`, counted from 1 within the conversation. A
    /// blank one counts as none.
    pub fn claim(&mut self, wire: Option<&str>) -> String {
        if let Some(id) = wire.filter(|id| !id.trim().is_empty())
            && self.take(id)
        {
            return id.to_owned();
        }
        loop {
            self.last = self.last.saturating_add(1);
            let id = format!("call_local_{}", self.last);
            if self.take(&id) {
                return id;
            }
        }
    }

    /// Takes an id; `false` if it is taken.
    fn take(&mut self, id: &str) -> bool {
        if self.searches < MAX_SEARCHES {
            self.searches += 1;
            if self.before().any(|used| used == id) {
                return false;
            }
        } else if !self.before.is_empty() {
            let used: Vec<String> = self.before().map(str::to_owned).collect();
            self.used.extend(used);
            self.before.clear();
        }
        self.used.insert(id.to_owned())
    }

    /// The ids of the conversation.
    fn before(&self) -> impl Iterator<Item = &str> {
        let uses = self.before.iter().flat_map(|message| message.tool_uses());
        uses.map(|it| it.id.as_str())
    }
}

#[cfg(test)]
mod tests {
    use switchboard_domain::{Message, Part, Role, ToolInput, ToolUse};

    use super::*;

    #[test]
    fn an_id_is_given_out_once_in_a_conversation() {
        let used = ["a", "call_local_1"]
            .map(|id| Part::ToolUse(ToolUse::new(id, "t", ToolInput::parse(""))));
        let request = ChatRequest::new([Message::new(Role::Assistant, used)]);
        let mut ids = LocalIds::after(&request);
        assert_eq!(ids.claim(Some("b")), "b");
        assert_eq!(ids.claim(Some("b")), "call_local_2");
        assert_eq!(ids.claim(Some("a")), "call_local_3");
        assert_eq!(ids.claim(None), "call_local_4");
        assert_eq!(ids.claim(Some(" ")), "call_local_5");
        // One that the server chose, though it looks like ours.
        assert_eq!(ids.claim(Some("call_local_6")), "call_local_6");
        assert_eq!(ids.claim(Some("")), "call_local_7");
        assert_eq!(LocalIds::default().claim(None), "call_local_1");
    }

    #[test]
    fn however_many_are_claimed_none_is_given_out_twice() {
        let id = |n: u32| format!("call_{n}");
        let used = (0..40).map(|n| {
            let call = ToolUse::new(id(n), "t", ToolInput::parse(""));
            Message::new(Role::Assistant, [Part::ToolUse(call)])
        });
        let mut ids = LocalIds::after(&ChatRequest::new(used));
        let mut given = HashSet::new();
        // Every other one was used before, and each is claimed twice.
        for n in (0..80).step_by(2).chain((0..80).step_by(2)) {
            let claimed = ids.claim(Some(&id(n)));
            let is_new = n >= 40 && !given.contains(&id(n));
            assert_eq!(claimed == id(n), is_new, "{n}");
            assert!(given.insert(claimed), "{n}");
        }
    }
}
