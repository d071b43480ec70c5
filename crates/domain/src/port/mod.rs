//! The ports: how the core sees the outside.
//!
//! All are object-safe and name no runtime. To cancel, drop the future or the stream; adapters pass
//! that on (an HTTP request is aborted, an MCP server is told). With the feature `mock` each has a
//! mockall mock.

mod approver;
mod chat_model;
mod elicitor;
mod run_store;
mod sampler;
mod session_store;
mod tool_host;

pub use approver::*;
pub use chat_model::*;
pub use elicitor::*;
pub use run_store::*;
pub use sampler::*;
pub use session_store::*;
pub use tool_host::*;
