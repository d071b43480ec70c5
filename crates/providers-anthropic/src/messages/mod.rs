//! The Messages API: `POST {base}/v1/messages`.
//!
//! | module | does |
//! |---|---|
//! | [`wire`] | the serde types of the API |
//! | [`request`] | domain → wire, pure |
//! | [`stream`] | wire events → domain events, a state machine without I/O |
//! | [`response`] | a whole body → a whole answer, by the same state machine |

mod blocks;
mod cache;
mod content;
mod conversation;
mod ids;
mod media;
mod pairing;
pub mod request;
pub mod response;
mod restore;
pub mod stream;
mod thinking;
mod tools;
pub mod wire;
mod words;

pub use request::{WireRequest, to_wire};
pub use response::{events_from_body, from_body};
pub use restore::Reshaped;
pub use stream::MessagesDecoder;
pub use switchboard_providers_common::LocalIds;
