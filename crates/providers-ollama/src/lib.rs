//! Ollama's own API (`/api/chat`, JSON lines) as a
//! [`ChatModel`](switchboard_domain::ChatModel), local or in its cloud.
//!
//! | module | content |
//! |---|---|
//! | [`model`] | [`OllamaModel`]: the mapping joined with the transport |
//! | [`config`] | [`OllamaConfig`]: address and key of a server (`OLLAMA_HOST`) |
//! | [`server`] | a server's version and its description of a model |
//! | [`mod@capabilities`] | capabilities of a model, before and after a request to the server |
//! | [`chat`] | the mapping: request, stream and whole answer |
//!
//! ```
//! use switchboard_providers_ollama::{OllamaClient, OllamaConfig};
//!
//! # fn main() -> Result<(), switchboard_domain::ModelError> {
//! let ollama = OllamaClient::new(OllamaConfig::for_local_server())?;
//! let model = ollama.model("qwen3:8b");
//! # let _ = model;
//! # Ok(())
//! # }
//! ```
//!
//! Features that the API lacks are emulated, or reported as warnings:
//!
//! - There is no tool choice. [`ToolChoice::None`](switchboard_domain::ToolChoice::None) omits the
//!   tools. A forced choice becomes a schema in `format` that constrains the answer to one call,
//!   and the answer is parsed as that call. See [`chat::AnswerForm`].
//! - `tools` and `format` cannot be sent together: a local server then never calls a tool
//!   (ollama#8095, ollama#13750). Both are combined in one `format`.
//! - Images are bytes, never addresses. Documents are not supported, so their text is sent.
//! - A tool call that a model writes as text becomes a tool use if it names an offered tool
//!   ([`OllamaConfig::text_calls`]). A model without tool support can get tools in the prompt
//!   ([`OllamaConfig::tools_by_prompt`]). A forced choice uses `format` for such models, too.
//! - Calls and their results have no ids in requests: the server pairs them by name and order.
//!
//! A server silently truncates the beginning of a conversation that is longer than its `num_ctx`.
//! `extra` sets a larger limit (`{"options": {"num_ctx": 32768}}`), or makes the server refuse the
//! request (`{"truncate": false, "shift": false}`), which returns
//! [`ModelErrorKind::ContextOverflow`](switchboard_domain::ModelErrorKind::ContextOverflow).
#![deny(missing_docs)]

pub mod capabilities;
pub mod chat;
pub mod config;
mod error;
pub mod model;
pub mod server;
mod server_address;

pub use capabilities::capabilities;
pub use chat::ThinkForm;
pub use config::{OllamaConfig, ToolsByPrompt};
pub use error::is_missing_endpoint;
pub use model::{OllamaModel, OllamaOptions};
pub use server::{
    ModelDescription, described_model, fetch_model_description, fetch_version, is_reachable,
};
use switchboard_providers_common::provider::HttpClient;
pub use switchboard_providers_common::provider::{ProviderConfig, ServedModel};

/// A client of one server, shared by its models.
pub type OllamaClient = HttpClient<OllamaConfig>;
