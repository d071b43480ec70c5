//! Models whose server cannot stream.

use std::sync::Arc;

use async_trait::async_trait;
use switchboard_domain::{
    ChatModel, ChatRequest, ChatResponse, Delivery, ModelCapabilities, ModelError, ModelId,
    ModelStream,
};

/// A model that always requests complete responses.
pub(crate) struct WholeAnswers(pub(crate) Arc<dyn ChatModel>);

impl WholeAnswers {
    fn asked(request: &ChatRequest) -> ChatRequest {
        ChatRequest {
            delivery: Delivery::Whole,
            ..request.clone()
        }
    }
}

#[async_trait]
impl ChatModel for WholeAnswers {
    fn id(&self) -> &ModelId {
        self.0.id()
    }

    fn capabilities(&self) -> &ModelCapabilities {
        self.0.capabilities()
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ModelStream, ModelError> {
        self.0.stream(&Self::asked(request)).await
    }

    async fn complete(&self, request: &ChatRequest) -> Result<ChatResponse, ModelError> {
        self.0.complete(&Self::asked(request)).await
    }
}
