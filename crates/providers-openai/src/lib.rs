//! OpenAI's Chat Completions and Responses, and every server that speaks them, as
//! [`ChatModel`](switchboard_domain::ChatModel)s.
//!
//! | module | holds |
//! |---|---|
//! | [`model`] | [`OpenAiChatModel`], [`OpenAiResponsesModel`]: the port, joined from mapping and transport |
//! | [`client`] | [`OpenAiClient`]: one server, its models and their list |
//! | [`config`] | [`OpenAiConfig`]: where the server is and who asks |
//! | [`profile`] | [`Profile`]: where servers of this wire differ, as values |
//! | [`chat`] | the mapping of Chat Completions, pure: request, stream and whole answer |
//! | [`responses`] | the mapping of Responses, in the same shape |
//! | [`server_tool`] | [`ServerTool`]: what the provider runs itself |
//! | [`mod@capabilities`] | what is known of a model by its name |
//!
//! ```
//! use switchboard_providers_openai::{OpenAiClient, OpenAiConfig, Profile};
//!
//! # fn main() -> Result<(), switchboard_domain::ModelError> {
//! let config = OpenAiConfig::compatible("mistral", "https://api.mistral.ai/v1")
//!     .with_api_key("key")
//!     .with_profile(Profile::mistral());
//! let model = OpenAiClient::new(config)?.model("mistral-large-latest");
//! # let _ = model;
//! # Ok(())
//! # }
//! ```
#![deny(missing_docs)]

mod answer;
mod arguments;
mod built_in;
pub mod capabilities;
pub mod chat;
pub mod client;
pub mod config;
mod conversation;
mod error;
mod fields;
mod losses;
mod media;
pub mod model;
mod options;
pub mod profile;
mod reshaped;
pub mod responses;
mod results;
mod schema;
mod served;
pub mod server_tool;
mod text;
mod tools;
mod usage;

pub use capabilities::capabilities;
pub use client::OpenAiClient;
pub use config::OpenAiConfig;
pub use model::{OpenAiChatModel, OpenAiResponsesModel};
pub use profile::Profile;
pub use reshaped::Reshaped;
pub use served::ServedModel;
pub use server_tool::ServerTool;
