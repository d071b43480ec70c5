//! `POST {base}/api/chat`.
//!
//! | module | does |
//! |---|---|
//! | [`wire`] | the serde types of the API |
//! | [`request`] | domain → wire, pure |
//! | [`form`] | tool calls through `format`, where the wire has no other way |
//! | [`stream`] | lines → domain events, a state machine without I/O |
//! | [`response`] | a whole body → a whole answer, by the same state machine |
//!
//! Sources: the server's source (`api/types.go`, `server/routes.go`, `llm/llama_server.go` of
//! August 2026), the official Python SDK 0.6.3, and public issue threads where they are named.

mod content;
pub mod form;
mod form_reader;
mod options;
pub mod request;
pub mod response;
mod schema;
pub mod stream;
mod tools;
#[allow(missing_docs, reason = "the fields have the names of the API")]
pub mod wire;

pub(crate) use tools::{checked, is_sent_in_format};

pub use form::Form;
pub use options::ThinkForm;
pub use request::{WireRequest, to_wire};
pub use response::events_from_body;
pub use stream::ChatDecoder;
pub use switchboard_providers_common::LocalIds;
