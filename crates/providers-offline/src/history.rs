//! The conversation as the planner reads it: what was asked, what was called, what came back.

use std::sync::Arc;

use switchboard_domain::{JsonObject, Message, Part, Role, ToolResult};

/// A call in the conversation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    /// The tool's name as declared.
    pub(crate) name: String,
    /// Its input; empty if it was malformed.
    pub(crate) input: JsonObject,
    /// What came back, if anything did.
    pub(crate) result: Option<ToolResult>,
    /// The place of the message with the call.
    pub(crate) at: usize,
}

/// The conversation.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    /// The person's messages, with their places; without text where there is none.
    pub(crate) asked: Vec<(usize, String)>,
    /// All calls in order.
    pub(crate) calls: Vec<Call>,
    /// Ids of tool uses that are taken.
    pub(crate) ids: Vec<String>,
    /// What the assistant said, with places.
    pub(crate) said: Vec<(usize, String)>,
}

impl History {
    /// Reads messages.
    pub(crate) fn new(messages: &[Arc<Message>]) -> Self {
        let mut history = Self::default();
        for (at, message) in messages.iter().enumerate() {
            let text = message.text();
            match message.role {
                // A picture alone is a question too, though one that the planner cannot read.
                Role::User if message.results().next().is_none() || !text.trim().is_empty() => {
                    history.asked.push((at, text));
                }
                Role::Assistant if !text.trim().is_empty() => history.said.push((at, text)),
                _ => {}
            }
            for part in &message.parts {
                history.read(at, part);
            }
        }
        history
    }

    fn read(&mut self, at: usize, part: &Part) {
        match part {
            Part::ToolUse(tool_use) => {
                self.ids.push(tool_use.id.clone());
                self.calls.push(Call {
                    name: tool_use.name.clone(),
                    input: tool_use.input.as_object().cloned().unwrap_or_default(),
                    result: None,
                    at,
                });
            }
            Part::ToolResult(result) => {
                let waiting = self
                    .ids
                    .iter()
                    .zip(&mut self.calls)
                    .rev()
                    .find(|(id, call)| **id == result.tool_use_id && call.result.is_none());
                if let Some((_, call)) = waiting {
                    call.result = Some(result.clone());
                }
            }
            _ => {}
        }
    }

    /// The calls made from a message on, up to but without another.
    pub(crate) fn calls_between(&self, from: usize, until: usize) -> Vec<&Call> {
        self.calls
            .iter()
            .filter(|call| from <= call.at && call.at < until)
            .collect()
    }
}
