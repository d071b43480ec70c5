//! Messages that precede the first turn of a scenario.

use serde::Deserialize;
use switchboard_domain::Message;

/// A message that precedes the first turn, such as system instructions or an earlier answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EarlierMessage {
    /// The author of the message: the system, the user or the model.
    pub role: MessageRole,
    /// Text of the message for the model.
    pub text: String,
}

/// Author of a message that precedes the first turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MessageRole {
    /// The message contains system instructions.
    System,
    /// The user wrote the message.
    User,
    /// The model wrote the message as an earlier answer.
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
