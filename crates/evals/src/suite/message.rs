//! What was said before.

use serde::{Deserialize, Serialize};
use switchboard_domain::Message;

/// Something that was said before the first turn of a scenario.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Said {
    /// Who said it.
    pub role: Speaker,
    /// What was said.
    pub text: String,
}

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Speaker {
    /// Whoever instructs the model.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
}

impl Said {
    /// The same as a message.
    pub fn to_message(&self) -> Message {
        match self.role {
            Speaker::System => Message::system(&self.text),
            Speaker::User => Message::user(&self.text),
            Speaker::Assistant => Message::assistant(&self.text),
        }
    }
}
