//! `POST {base}/{version}/models/{model}:streamGenerateContent` and `:generateContent`.
//!
//! | module | does |
//! |---|---|
//! | [`wire`] | the serde types of what is sent |
//! | [`request`] | domain → wire, pure |
//! | [`stream`] | wire chunks → domain events, a state machine without I/O |
//! | [`response`] | a whole body → a whole answer, by the same state machine |
//!
//! Facts of the wire: the types of the official SDK (google-genai 3.4.0) and what they say.

mod contents;
mod finish;
mod names;
mod native;
mod parts;
mod plain;
pub mod request;
pub mod response;
mod results;
mod schema;
pub mod stream;
mod thinking;
mod tools;
mod usage;
pub mod wire;

pub use names::Declared;
pub use request::{WireRequest, to_wire};
pub use response::{events_from_body, from_body};
pub use stream::GenerateDecoder;
pub use switchboard_providers_common::LocalIds;
