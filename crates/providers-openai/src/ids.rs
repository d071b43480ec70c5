//! The tool-use ids of a conversation.

use std::collections::HashSet;

use switchboard_domain::ChatRequest;

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
    pub(crate) fn claim(&mut self, wire: Option<&str>) -> String {
        if let Some(id) = wire
            && self.used.insert(id.to_owned())
        {
            return id.to_owned();
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
