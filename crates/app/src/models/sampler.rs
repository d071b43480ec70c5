//! Sampling: MCP servers use the model of the run, if the configuration allows it.

use std::sync::Arc;

use async_trait::async_trait;
use switchboard_domain::{ChatModel, ChatResponse, SampleError, SampleRequest, Sampler};

/// A sampler that uses the model of the run. The server's model preferences are ignored, because
/// the user pays.
pub(crate) struct ModelSampler(Arc<dyn ChatModel>);

impl ModelSampler {
    pub(crate) fn new(model: Arc<dyn ChatModel>) -> Self {
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
