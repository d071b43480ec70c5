//! Chat Completions: `POST {base}/chat/completions`, the wire that most servers speak.
//!
//! | module | does |
//! |---|---|
//! | [`wire`] | the serde types of the API |
//! | [`request`] | domain → wire, pure |
//! | [`stream`] | wire chunks → domain events, a state machine without I/O |
//! | [`response`] | a whole body → a whole answer, by the same state machine |

mod calls;
mod messages;
mod options;
pub mod request;
pub mod response;
pub mod stream;
mod thoughts;
pub mod wire;

pub use options::ChatOptions;
pub use request::{WireRequest, to_wire};
pub use response::{events_from_body, from_body};
pub use stream::ChatDecoder;

pub use switchboard_providers_common::LocalIds;
