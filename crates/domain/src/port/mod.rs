//! The ports: traits for models, tools, stores and people.
//!
//! All are object-safe and independent of an async runtime. Dropping a future or a stream cancels
//! it: adapters abort the HTTP request or notify the MCP server. With the feature `mock` each trait
//! has a mockall mock.

mod approver;
mod audit_store;
mod call_rate_counter;
mod chat_model;
mod elicitor;
mod run_store;
mod sampler;
mod session_store;
mod tool_host;

pub use approver::*;
pub use audit_store::*;
pub use call_rate_counter::*;
pub use chat_model::*;
pub use elicitor::*;
pub use run_store::*;
pub use sampler::*;
pub use session_store::*;
pub use tool_host::*;
