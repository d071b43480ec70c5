//! Anthropic's Messages API, and everything that speaks it, as a
//! [`ChatModel`](switchboard_domain::ChatModel).
//!
//! | module | holds |
//! |---|---|
//! | [`config`] | [`AnthropicConfig`]: where the server is and who asks |
//! | [`client`] | [`AnthropicClient`]: one server, its models and their list |
//! | [`model`] | [`AnthropicModel`]: the port, joined from mapping and transport |
//! | [`messages`] | the mapping: pure, without I/O |
//! | [`options`] | [`MessagesOptions`]: what the mapping may be told |
//! | [`server_tool`] | [`ServerTool`]: tools that the API runs on its own side |
//! | [`rules`](mod@rules) | what each Claude model takes and refuses: one table |
//! | [`capabilities`](mod@capabilities) | the same in the domain's words |
//! | [`error`] | [`AnthropicErrors`]: from an error body to a typed error |
//!
//! ```no_run
//! use switchboard_domain::{ChatModel as _, ChatRequest, Message};
//! use switchboard_providers_anthropic::AnthropicModel;
//!
//! # async fn ask() -> Result<(), switchboard_domain::ModelError> {
//! let model = AnthropicModel::from_env("claude-sonnet-5-5")?;
//! let answer = model
//!     .complete(&ChatRequest::new([Message::user("Why is the sky blue?")]))
//!     .await?;
//! assert!(!answer.message.text().is_empty());
//! # Ok(())
//! # }
//! ```
#![deny(missing_docs)]

mod betas;
pub mod capabilities;
pub mod client;
pub mod config;
pub mod error;
pub mod messages;
pub mod model;
pub mod options;
pub mod rules;
mod schema;
pub mod server_tool;

pub use capabilities::capabilities;
pub use client::{AnthropicClient, ServedModel};
pub use config::{AnthropicConfig, Credential};
pub use error::AnthropicErrors;
pub use messages::{MessagesDecoder, WireRequest, to_wire};
pub use model::AnthropicModel;
pub use options::{CacheLifetime, CachePolicy, MessagesOptions};
pub use rules::{Effort, rules};
pub use server_tool::ServerTool;
