//! Our adapters against servers that others wrote. See `cargo xtask test --peers`.
//!
//! | module | server | wires | used for |
//! |---|---|---|---|
//! | [`aimock`] | `@copilotkit/aimock` (npm) | all five | round trips by fixtures; fields of errors, nonsense, keys |
//! | [`llmock`] | `llmock` (PyPI) | all but Ollama | broken streams at every place, and its verdict on us as a client |
//! | [`llm_mock_api`] | `llm-mock-api` (PyPI) | Anthropic, both of OpenAI | a second reading of the wires, with reasoning |
//! | [`litellm`] | `litellm[proxy]` (PyPI) | all but Ollama | a proxy between us and aimock that translates every wire |

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the functions around the tests fail as the tests do"
)]

mod aimock;
mod conversation;
mod entry;
mod gateway;
mod litellm;
mod llm_mock_api;
mod llmock;
mod peer;
#[path = "../wires/mod.rs"]
mod wires;
