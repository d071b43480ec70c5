//! The model that servers may ask: the one that the conversation has now.

use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use switchboard_domain::{ChatModel, ChatResponse, SampleError, SampleRequest, Sampler};

use crate::sampler::ModelSampler;

/// A model that can be changed for another one. Clones are the same one.
#[derive(Clone)]
pub(super) struct CurrentModel(Arc<RwLock<Arc<dyn ChatModel>>>);

impl CurrentModel {
    pub(super) fn new(model: Arc<dyn ChatModel>) -> Self {
        Self(Arc::new(RwLock::new(model)))
    }

    pub(super) fn set(&self, model: Arc<dyn ChatModel>) {
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
