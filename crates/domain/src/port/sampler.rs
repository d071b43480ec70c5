use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{ChatRequest, ChatResponse, ModelError};

/// Runs model requests of MCP servers (sampling), if the configuration allows them.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Sampler: Send + Sync {
    /// Waits for the model's answer. Dropping the future cancels the model request.
    ///
    /// Fails with [`SampleError::NotAllowed`] if the server lacks permission or exceeds its limit,
    /// and with [`SampleError::Model`] if the model request fails.
    async fn sample(&self, sample: &SampleRequest) -> Result<ChatResponse, SampleError>;
}

/// A request of an MCP server for a model answer (sampling).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampleRequest {
    /// The configured name of the server that requests the answer.
    pub server: String,
    /// The model request of the server, without messages of the run. Untrusted.
    pub request: ChatRequest,
    /// The server's preferred models, as names or parts of names, best first.
    #[serde(default)]
    pub model_hints: Vec<String>,
}

/// The error of a sampling request.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message explains the fields")]
#[non_exhaustive]
pub enum SampleError {
    /// The server lacks permission to request answers, or exceeded a limit.
    #[error("server `{server}` is not allowed to request sampling: {reason}")]
    NotAllowed {
        server: String,
        /// The missing permission or the exceeded limit.
        reason: String,
    },
    /// The model request failed.
    #[error(transparent)]
    Model(#[from] Box<ModelError>),
}
