//! OpenAI's Chat Completions, and every server that speaks them, as a
//! [`ChatModel`](switchboard_domain::ChatModel).
//!
//! | module | holds |
//! |---|---|
//! | [`model`] | [`OpenAiChatModel`]: the port, joined from mapping and transport |
//! | [`client`] | [`OpenAiClient`]: one server, its models and their list |
//! | [`config`] | [`OpenAiConfig`]: where the server is and who asks |
//! | [`profile`] | [`Profile`]: where servers of this wire differ, as values |
//! | [`chat`] | the mapping, pure: request, stream and whole answer |
//! | [`mod@capabilities`] | what is known of OpenAI's own models |
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

pub mod capabilities;
pub mod chat;
pub mod client;
pub mod config;
mod error;
pub mod model;
pub mod profile;
mod served;
mod strict;

pub use capabilities::capabilities;
pub use client::OpenAiClient;
pub use config::OpenAiConfig;
pub use model::OpenAiChatModel;
pub use profile::Profile;
pub use served::ServedModel;
