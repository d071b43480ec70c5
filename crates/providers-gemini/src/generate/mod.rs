//! The API methods `POST {base}/{version}/models/{model}:streamGenerateContent` and
//! `:generateContent`.
//!
//! | module | content |
//! |---|---|
//! | [`wire`] | serde types of the request |
//! | [`request`] | converts the request |
//! | [`stream`] | converts chunks into events |
//! | [`response`] | reads a whole answer with the same state machine |
//!
//! Sources: the types of the official SDK (google-genai 3.4.0) and their documentation.

mod content;
pub mod request;
pub mod response;
pub mod stream;
mod tools;
#[allow(missing_docs, reason = "the fields have the names of the API")]
pub mod wire;

pub use request::{WireRequest, to_wire_request};
pub use response::events_from_body;
pub use stream::GenerateDecoder;
pub(crate) use stream::answer_continuation::Continuation;
pub use switchboard_providers_common::ToolUseIds;
