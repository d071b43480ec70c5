//! Messages that precede the first turn of a scenario.

use serde::Deserialize;
use switchboard_domain::Message;

/// A message that precedes the first turn of a scenario.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EarlierMessage {
    /// The author of the message.
    pub role: MessageRole,
    /// The text of the message.
    pub text: String,
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MessageRole {
    /// System instructions.
    System,
    /// A message of the user.
    User,
    /// A message of the model.
    Assistant,
}

impl EarlierMessage {
    /// Converts the message to a message of a model request.
    pub fn to_message(&self) -> Message {
        match self.role {
            MessageRole::System => Message::system(&self.text),
            MessageRole::User => Message::user(&self.text),
            MessageRole::Assistant => Message::assistant(&self.text),
        }
    }
}
