use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::JsonObject;

/// Requests input from a person for an MCP server that needs the input during a tool call.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Elicitor: Send + Sync {
    /// Waits for the person's answer. Dropping the future withdraws the request.
    async fn elicit(&self, elicitation: &Elicitation) -> ElicitationAnswer;
}

/// A question of an MCP server to the user: the server needs input during a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Elicitation {
    /// The configured name of the server, which must be shown to the user.
    pub server: String,
    /// The message of the server to the person. It is untrusted.
    pub message: String,
    /// The [`ToolCall::idempotency_key`](super::ToolCall) of the tool call during which the server
    /// asks, if it is known. Several runs may use one server, and only the user of the call's run
    /// may see the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// If `call` is `None`, the tool calls that may have caused the request. The person does not
    /// see them.
    #[serde(skip)]
    pub candidates: CandidateToolCalls,
    /// The form that the person fills in, or the address that the person opens.
    #[serde(flatten)]
    pub form: ElicitationForm,
}

/// The tool calls that may have caused an elicitation. They are used if [`Elicitation::call`] is
/// `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CandidateToolCalls {
    /// The [`ToolCall::idempotency_key`](super::ToolCall)s of the calls. They include cancelled and
    /// timed-out calls that the server has not answered.
    pub calls: Vec<String>,
    /// Whether a request that `calls` does not list may also have caused the elicitation, such as a
    /// tool call without an idempotency key.
    pub others: bool,
}

/// The form or web page with which the person answers an elicitation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "form", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ElicitationForm {
    /// A form with fields. Servers request secrets with [`Url`](Self::Url) instead.
    Fields {
        /// A JSON Schema: an object of strings, numbers, booleans and enumerations, one level deep,
        /// with defaults. The answer conforms to it.
        schema: Value,
    },
    /// An address that the person opens in the browser after consent. This program does not see the
    /// page.
    Url {
        /// The address of the page. Untrusted, because the server supplies it.
        url: String,
        /// The server's id of the elicitation. A later notification with this id completes the
        /// request.
        id: String,
    },
}

/// The answer of a person to a question of an MCP server (elicitation).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum ElicitationAnswer {
    /// The person agrees to the request. `content` is empty for [`ElicitationForm::Url`].
    Accept {
        /// The values of the form's fields, by field name.
        #[serde(default)]
        content: JsonObject,
    },
    /// The person declines to answer.
    Decline,
    /// The person cancels, or no person is available.
    Cancel,
}
