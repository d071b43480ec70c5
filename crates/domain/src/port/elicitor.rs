use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::JsonObject;

/// Asks the person something that a server wants to know in the middle of a call.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Elicitor: Send + Sync {
    /// Waits for the answer. Dropping the future withdraws the question.
    async fn elicit(&self, elicitation: &Elicitation) -> ElicitationAnswer;
}

/// What a server wants to know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Elicitation {
    /// The server that asks, by its configured name. To be shown: the person must know who asks.
    pub server: String,
    /// What it says; untrusted.
    pub message: String,
    /// The call within which it asks, by its [`ToolCall::idempotency_key`](super::ToolCall), where that is known.
    /// Several runs may be at work with one server, and a question is for nobody but the person of its run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// How it wants to be answered.
    #[serde(flatten)]
    pub form: ElicitationForm,
}

/// How a server wants to be answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "form", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ElicitationForm {
    /// By filling in fields. Never for secrets: those have [`Url`](Self::Url).
    Fields {
        /// A JSON Schema: an object of strings, numbers, booleans and enumerations, one level deep,
        /// with defaults. What comes back fits it.
        schema: Value,
    },
    /// By visiting an address, in the person's own browser, once they agree to it. What they do there
    /// is between them and that address.
    Url {
        /// The address; untrusted.
        url: String,
        /// The server's name for the matter, by which it says later that it is done with.
        id: String,
    },
}

/// What the person says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum ElicitationAnswer {
    /// They agree, with the fields they filled in; none for an address.
    Accept {
        /// The fields by name.
        #[serde(default)]
        content: JsonObject,
    },
    /// They will not say.
    Decline,
    /// They went away, or nobody is there to ask.
    Cancel,
}
