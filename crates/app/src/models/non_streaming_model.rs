//! Wraps a model whose server cannot stream answers.

use std::sync::Arc;

use async_trait::async_trait;
use switchboard_domain::{
    ChatModel, ChatRequest, ChatResponse, Delivery, ModelCapabilities, ModelError, ModelId,
    ModelStream,
};

/// A model that requests complete responses, because the server of the wrapped model cannot stream.
pub(crate) struct NonStreamingModel(pub(crate) Arc<dyn ChatModel>);

impl NonStreamingModel {
    fn disable_streaming(request: &ChatRequest) -> ChatRequest {
        ChatRequest {
            delivery: Delivery::Whole,
            ..request.clone()
        }
    }
}

#[async_trait]
impl ChatModel for NonStreamingModel {
    fn id(&self) -> &ModelId {
        self.0.id()
    }

    fn capabilities(&self) -> &ModelCapabilities {
        self.0.capabilities()
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ModelStream, ModelError> {
        self.0.stream(&Self::disable_streaming(request)).await
    }

    async fn complete(&self, request: &ChatRequest) -> Result<ChatResponse, ModelError> {
        self.0.complete(&Self::disable_streaming(request)).await
    }
}
