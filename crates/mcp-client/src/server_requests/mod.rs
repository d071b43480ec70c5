//! Requests from a server to the host: elicitation, sampling and roots.

pub(crate) mod alone;
pub(crate) mod client_handler;
pub(crate) mod elicitation;
pub(crate) mod form;
pub(crate) mod responder;
pub(crate) mod roots;
pub(crate) mod sampling;
pub(crate) mod sampling_messages;
pub(crate) mod within;
