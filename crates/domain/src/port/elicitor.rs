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

/// A request of an MCP server for input from the person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Elicitation {
    /// The configured name of the server. The person must see it.
    pub server: String,
    /// The message of the server to the person. It is untrusted.
    pub message: String,
    /// The [`ToolCall::idempotency_key`](super::ToolCall) of the call that the request belongs to,
    /// if it is known. Several runs may use one server, and only the person of the call's run may
    /// see the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// If `call` is `None`, the tool calls that the request may belong to. The person does not see
    /// them.
    #[serde(skip)]
    pub candidates: CandidateToolCalls,
    /// The form that the person fills in, or the address that the person opens.
    #[serde(flatten)]
    pub form: ElicitationForm,
}

/// The tool calls that an elicitation may belong to if [`Elicitation::call`] is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CandidateToolCalls {
    /// The [`ToolCall::idempotency_key`](super::ToolCall)s of the calls. They include cancelled and
    /// timed-out calls that the server has not answered.
    pub calls: Vec<String>,
    /// Whether the elicitation may also belong to a request that `calls` does not list, such as a
    /// tool call without an idempotency key.
    pub others: bool,
}

/// The way in which the person answers a server: a form or a web page.
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

/// The answer of the person to an elicitation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum ElicitationAnswer {
    /// The person agrees. `content` is empty for [`ElicitationForm::Url`].
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
