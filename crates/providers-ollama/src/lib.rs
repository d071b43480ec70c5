//! Ollama's own API (`/api/chat`, JSON lines) as a
//! [`ChatModel`](switchboard_domain::ChatModel), local or in its cloud.
//!
//! | module | holds |
//! |---|---|
//! | [`model`] | [`OllamaModel`]: the port, joined from mapping and transport |
//! | [`client`] | [`OllamaClient`]: one server, its models, and whether it is there at all |
//! | [`config`] | [`OllamaConfig`]: where the server is (`OLLAMA_HOST`) and who asks |
//! | [`installed`] | [`InstalledModel`], [`ShownModel`]: what the server says of its models |
//! | [`mod@capabilities`] | what a model can do, before it is asked and after |
//! | [`chat`] | the mapping, pure: request, stream and whole answer |
//!
//! ```
//! use switchboard_providers_ollama::{OllamaClient, OllamaConfig};
//!
//! # fn main() -> Result<(), switchboard_domain::ModelError> {
//! let ollama = OllamaClient::new(OllamaConfig::local())?;
//! let model = ollama.model("qwen3:8b");
//! # let _ = model;
//! # Ok(())
//! # }
//! ```
//!
//! What the wire cannot say is emulated or told:
//!
//! - There is no tool choice. [`ToolChoice::None`](switchboard_domain::ToolChoice::None) leaves the
//!   tools out; a forced choice becomes a schema in `format` that holds the answer to the shape of
//!   one call, and the answer is read back as that call. See [`chat::Form`].
//! - `tools` and `format` cannot be sent together: a server of one's own then never calls a tool
//!   (ollama#8095, ollama#13750). Both go into one `format`.
//! - Images are bytes, never addresses; documents are not known at all, so the text of one is said.
//! - A call that a model wrote as text is a call, if it names an offered tool
//!   ([`OllamaConfig::text_calls`]). A model without tools can be told of them in words
//!   ([`OllamaConfig::tools_by_prompt`]); a forced choice goes to it through `format`, too.
//! - Calls and their results go without ids: the server pairs them by name and order.
//!
//! A server cuts a conversation that is longer than its `num_ctx` at the beginning, and does not say
//! so. `extra` sets a larger one (`{"options": {"num_ctx": 32768}}`), or has it refused instead
//! (`{"truncate": false, "shift": false}`), which comes as
//! [`ModelErrorKind::ContextOverflow`](switchboard_domain::ModelErrorKind::ContextOverflow).
#![deny(missing_docs)]

mod address;
pub mod capabilities;
pub mod chat;
pub mod client;
pub mod config;
mod error;
pub mod installed;
pub mod model;
mod offer;

pub use capabilities::capabilities;
pub use chat::ThinkForm;
pub use client::OllamaClient;
pub use config::{OllamaConfig, ToolsByPrompt};
pub use installed::{InstalledModel, ShownModel};
pub use model::OllamaModel;
