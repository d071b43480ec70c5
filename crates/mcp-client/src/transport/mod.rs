//! Transports for rmcp: stdio, streamable HTTP, and a wrapper that instruments both.

pub(crate) mod authorized_client;
pub(crate) mod call_context;
pub(crate) mod failure;
pub(crate) mod http_post;
pub(crate) mod instrumented_transport;
pub(crate) mod invalid_message;
pub(crate) mod message_parser;
pub(crate) mod open_requests;
pub(crate) mod server_stream;
pub(crate) mod stdio_transport;
