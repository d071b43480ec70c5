//! Gemini models, and models of other servers with the Gemini API, as a
//! [`ChatModel`](switchboard_domain::ChatModel).
//!
//! | module | content |
//! |---|---|
//! | [`model`] | [`GeminiModel`]: the mapping joined with the transport |
//! | [`config`] | [`GeminiConfig`]: address, key and options of a server |
//! | [`options`] | [`GeminiOptions`]: options of the mapping |
//! | [`generate`] | the mapping: request, stream and whole answer |
//! | [`server_tool`] | [`ServerTool`]: tools that the API runs itself |
//! | [`mod@capabilities`] | capabilities of Google's models |
//!
//! ```
//! use switchboard_providers_gemini::{GeminiClient, GeminiConfig};
//!
//! # fn main() -> Result<(), switchboard_domain::ModelError> {
//! let model = GeminiClient::new(GeminiConfig::new("key"))?.model("gemini-3.8-flash");
//! # let _ = model;
//! # Ok(())
//! # }
//! ```
#![deny(missing_docs)]

pub mod capabilities;
pub mod config;
mod continuation;
mod error;
pub mod generate;
pub mod model;
mod model_list;
pub mod options;
mod percent_encoding;
pub mod server_tool;

pub use capabilities::capabilities;
pub use config::GeminiConfig;
pub use model::GeminiModel;
pub use options::{GeminiOptions, SchemaLanguage};
pub use server_tool::ServerTool;
use switchboard_providers_common::provider::HttpClient;
pub use switchboard_providers_common::provider::{ProviderConfig, ServedModel};

/// An HTTP client for one server, which all models of the server share.
pub type GeminiClient = HttpClient<GeminiConfig>;
