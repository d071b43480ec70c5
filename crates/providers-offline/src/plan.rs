//! What the planner decides to do next.

use switchboard_domain::JsonObject;

/// The next step of a conversation.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Plan {
    /// These tools are to be called, at the same time.
    Call(Vec<PlannedCall>),
    /// Something is missing, and the person is asked for it.
    Ask(Ask),
    /// The answer, from results.
    Answer {
        /// What to say.
        text: String,
    },
    /// No tool fits, or none may be used; says that this is no language model.
    Decline {
        /// What to say.
        text: String,
    },
}

/// A tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedCall {
    /// Unique in the conversation: `call_1`, `call_2`…
    pub id: String,
    /// The tool's name as declared.
    pub name: String,
    /// The input, which fits the tool's schema.
    pub input: JsonObject,
}

/// A question to the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// What to say.
    pub text: String,
    /// The tool that waits, its name as declared.
    pub tool: String,
    /// The parameters it waits for.
    pub missing: Vec<String>,
}

impl Plan {
    /// The calls; empty if there are none.
    pub fn calls(&self) -> &[PlannedCall] {
        match self {
            Self::Call(calls) => calls,
            _ => &[],
        }
    }

    /// What is said; `None` with calls, which are made without words.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Call(_) => None,
            Self::Ask(ask) => Some(&ask.text),
            Self::Answer { text } | Self::Decline { text } => Some(text),
        }
    }
}
