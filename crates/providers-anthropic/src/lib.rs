//! Anthropic's Messages API, and compatible servers, as a
//! [`ChatModel`](switchboard_domain::ChatModel).
//!
//! | module | content |
//! |---|---|
//! | [`config`] | [`AnthropicConfig`]: the address, credentials and options of a server |
//! | [`model`] | [`AnthropicModel`]: the model, which joins the mapping with the transport |
//! | [`messages`] | the mapping, without I/O |
//! | [`options`] | [`MessagesOptions`]: options of the mapping |
//! | [`server_tool`] | [`ServerTool`]: tools that the API runs on its own servers |
//! | [`model_rules`](mod@model_rules) | the features of each Claude model, in one table |
//! | [`capabilities`](mod@capabilities) | the features in that table, as [`ModelCapabilities`] |
//!
//! [`ModelCapabilities`]: switchboard_domain::ModelCapabilities
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

pub mod capabilities;
pub mod config;
mod error;
pub mod messages;
pub mod model;
pub mod model_rules;
pub mod options;
mod schema;
pub mod server_tool;

pub use capabilities::capabilities;
pub use config::{AnthropicConfig, Credential};
pub use messages::{MessagesDecoder, WireRequest, to_wire_request};
pub use model::AnthropicModel;
pub use model_rules::{Effort, find_rules};
pub use options::{CacheLifetime, CachePolicy, MessagesOptions};
pub use server_tool::ServerTool;
use switchboard_providers_common::provider::HttpClient;
pub use switchboard_providers_common::provider::{ProviderConfig, ServedModel};

/// An HTTP client for one server, which all models of the server share.
pub type AnthropicClient = HttpClient<AnthropicConfig>;
