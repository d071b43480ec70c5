//! Requests that an MCP server sends to the host: elicitation, sampling and roots.

pub(crate) mod elicitation;
pub(crate) mod form;
pub(crate) mod handlers;
pub(crate) mod pending_requests;
pub(crate) mod responder;
pub(crate) mod sampling;
pub(crate) mod sampling_messages;
pub(crate) mod url_elicitation;
