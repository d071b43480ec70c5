//! Our adapters with servers that other projects wrote. See `cargo xtask test --peers`.
//!
//! | module | server | wires | used for |
//! |---|---|---|---|
//! | [`aimock`] | `@copilotkit/aimock` (npm) | all five | round trips from fixtures, fields of errors, invalid answers, keys |
//! | [`llmock`] | `llmock` (PyPI) | all but Ollama | streams that break at every position, and a report on the client |
//! | [`llm_mock_api`] | `llm-mock-api` (PyPI) | Anthropic, both of OpenAI | an independent implementation of the wires, with reasoning |
//! | [`litellm`] | `litellm[proxy]` (PyPI) | all but Ollama | a proxy that translates every wire, between the adapters and aimock |

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
