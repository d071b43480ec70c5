//! Sampling: MCP servers may use the model of the run, if the configuration allows this.

use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use switchboard_domain::{ChatModel, ChatResponse, SampleError, SampleRequest, Sampler};

/// Sampler that answers the sampling requests of MCP servers with the current model of the run. All
/// clones share the model, which can be replaced. MCP servers cannot choose the model, because the
/// user pays.
#[derive(Clone)]
pub(crate) struct CurrentModelSampler(Arc<RwLock<Arc<dyn ChatModel>>>);

impl CurrentModelSampler {
    pub(crate) fn new(model: Arc<dyn ChatModel>) -> Self {
        Self(Arc::new(RwLock::new(model)))
    }

    pub(crate) fn replace_model(&self, model: Arc<dyn ChatModel>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = model;
    }
}

#[async_trait]
impl Sampler for CurrentModelSampler {
    async fn sample(&self, sample: &SampleRequest) -> Result<ChatResponse, SampleError> {
        let model = {
            let model = self.0.read().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(&model)
        };
        let answer = model.complete(&sample.request).await;
        answer.map_err(|error| SampleError::Model(Box::new(error)))
    }
}
