//! The model that servers may use for sampling in a conversation.

use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use switchboard_domain::{ChatModel, ChatResponse, SampleError, SampleRequest, Sampler};

use super::sampler::ModelSampler;

/// A model that can be replaced. Clones share it.
#[derive(Clone)]
pub(crate) struct CurrentModel(Arc<RwLock<Arc<dyn ChatModel>>>);

impl CurrentModel {
    pub(crate) fn new(model: Arc<dyn ChatModel>) -> Self {
        Self(Arc::new(RwLock::new(model)))
    }

    pub(crate) fn set(&self, model: Arc<dyn ChatModel>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = model;
    }
}

#[async_trait]
impl Sampler for CurrentModel {
    async fn sample(&self, sample: &SampleRequest) -> Result<ChatResponse, SampleError> {
        let model = {
            let model = self.0.read().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(&model)
        };
        ModelSampler::new(model).sample(sample).await
    }
}
