//! Messages before the first turn.

use serde::Deserialize;
use switchboard_domain::Message;

/// A message before the first turn of a scenario.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EarlierMessage {
    /// The author.
    pub role: MessageRole,
    /// The text.
    pub text: String,
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MessageRole {
    /// Instructions.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
}

impl EarlierMessage {
    /// Returns the message for a request.
    pub fn to_message(&self) -> Message {
        match self.role {
            MessageRole::System => Message::system(&self.text),
            MessageRole::User => Message::user(&self.text),
            MessageRole::Assistant => Message::assistant(&self.text),
        }
    }
}
