use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{ChatRequest, ChatResponse, ModelError};

/// Asks a model something that a server wants to know from one, where that is allowed.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Sampler: Send + Sync {
    /// Waits for the answer. Dropping the future ends it at the model.
    ///
    /// Fails with [`SampleError::NotAllowed`] where the server may not ask or has asked too often,
    /// and with [`SampleError::Model`] where the model did not answer.
    async fn sample(&self, sample: &SampleRequest) -> Result<ChatResponse, SampleError>;
}

/// What a server wants a model's answer to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampleRequest {
    /// The server that asks, by its configured name.
    pub server: String,
    /// The conversation as the server gives it, untrusted; it holds nothing of ours.
    pub request: ChatRequest,
    /// Names of models, or parts of names, that the server would like; the first is the dearest.
    #[serde(default)]
    pub model_hints: Vec<String>,
}

/// Why a server gets no answer of a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SampleError {
    /// It may not ask.
    #[error("{server} may not ask a model: {reason}")]
    NotAllowed {
        /// The server.
        server: String,
        /// Which permission is missing or which limit was reached.
        reason: String,
    },
    /// The model did not answer.
    #[error(transparent)]
    Model(#[from] Box<ModelError>),
}
