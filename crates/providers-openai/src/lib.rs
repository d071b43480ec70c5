//! OpenAI's Chat Completions and Responses APIs, and compatible servers, as
//! [`ChatModel`](switchboard_domain::ChatModel)s.
//!
//! | module | content |
//! |---|---|
//! | [`config`] | [`OpenAiConfig`]: the address, credentials and options of a server |
//! | [`server_profile`] | [`Profile`]: the differences between servers, as values |
//! | [`model`] | [`OpenAiChatModel`], [`OpenAiResponsesModel`]: the models |
//! | [`chat`] | the mapping of Chat Completions, without I/O |
//! | [`responses`] | the mapping of Responses, without I/O |
//! | [`server_tool`] | [`ServerTool`]: tools that the API runs on its own servers |
//! | [`mod@capabilities`] | the known capabilities of a model |
//!
//! ```
//! use switchboard_providers_openai::{OpenAiClient, OpenAiConfig, Profile};
//!
//! # fn main() -> Result<(), switchboard_domain::ModelError> {
//! let config = OpenAiConfig::for_compatible_server("mistral", "https://api.mistral.ai/v1")
//!     .with_api_key("key")
//!     .with_profile(Profile::mistral());
//! let model = OpenAiClient::new(config)?.model("mistral-large-latest");
//! # let _ = model;
//! # Ok(())
//! # }
//! ```
#![deny(missing_docs)]

pub mod capabilities;
pub mod chat;
pub mod config;
mod content;
mod error;
pub mod model;
mod options;
pub mod responses;
pub mod server_profile;
mod tools;
mod wire;

pub use capabilities::capabilities;
pub use config::OpenAiConfig;
pub use model::{ChatCompletionsApi, OpenAiChatModel, OpenAiResponsesModel, ResponsesApi};
pub use server_profile::Profile;
use switchboard_providers_common::provider::HttpClient;
pub use switchboard_providers_common::{
    ToolMapping,
    provider::{ProviderConfig, ServedModel},
};
pub use tools::server_tool::{self, ServerTool};

/// An HTTP client for one server, which all models of the server share.
///
/// [`HttpClient::model`] returns a model on Chat Completions.
/// `model_with_protocol::<ResponsesApi>` returns a model on the Responses API.
pub type OpenAiClient = HttpClient<OpenAiConfig>;
