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

    /// Whether it is sure whom to ask where a question may belong to any of these calls. Where it is not, the
    /// question is held back for a moment, since most of them will be over soon, and then comes all the same.
    /// Does not wait.
    ///
    /// As it is, there is only one person.
    fn knows_whom_to_ask(&self, candidates: &Candidates) -> bool {
        let _ = candidates;
        true
    }
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
    /// Where the call is not known, what it may be. Of no interest to who is asked, who may be none of them.
    #[serde(skip)]
    pub candidates: Candidates,
    /// How it wants to be answered.
    #[serde(flatten)]
    pub form: ElicitationForm,
}

/// Within what a question may be asked of which the server does not say so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Candidates {
    /// Calls, by their [`ToolCall::idempotency_key`](super::ToolCall). Some may be over for us, but not for the
    /// server, which did not answer them.
    pub calls: Vec<String>,
    /// Whether it may also be something else: a call without a key, or a request that is no call.
    pub others: bool,
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
