//! The model that servers may ask, where the configuration allows it.

use std::sync::Arc;

use async_trait::async_trait;
use switchboard_domain::{ChatModel, ChatResponse, SampleError, SampleRequest, Sampler};

/// Asks the run's own model. What a server would like better is not looked at: which model is paid
/// for is not its choice.
pub struct ModelSampler(Arc<dyn ChatModel>);

impl ModelSampler {
    /// A sampler that asks `model`. Which servers may ask, and how often, is the MCP host's matter.
    pub fn new(model: Arc<dyn ChatModel>) -> Self {
        Self(model)
    }
}

#[async_trait]
impl Sampler for ModelSampler {
    async fn sample(&self, sample: &SampleRequest) -> Result<ChatResponse, SampleError> {
        let answer = self.0.complete(&sample.request).await;
        answer.map_err(|error| SampleError::Model(Box::new(error)))
    }
}

impl std::fmt::Debug for ModelSampler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ModelSampler").field(self.0.id()).finish()
    }
}
