use std::{future::poll_fn, pin::Pin};

use async_trait::async_trait;
use futures_core::Stream;

use crate::{
    ChatRequest, ChatResponse, ModelCapabilities, ModelError, ModelEvent, ModelId,
    ResponseAccumulator,
};

/// A streamed answer. Dropping it aborts the request. After an error nothing follows.
pub type ModelStream = Pin<Box<dyn Stream<Item = Result<ModelEvent, ModelError>> + Send>>;

/// A language model, or what behaves like one.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ChatModel: Send + Sync {
    /// Which model this is.
    fn id(&self) -> &ModelId;

    /// What it can do.
    fn capabilities(&self) -> &ModelCapabilities;

    /// Asks it. Returns when the provider has begun to answer; errors after that come as the last
    /// item of the stream.
    async fn stream(&self, request: &ChatRequest) -> Result<ModelStream, ModelError>;

    /// Asks it and waits for the whole answer: the collected stream.
    async fn complete(&self, request: &ChatRequest) -> Result<ChatResponse, ModelError> {
        let stream = self.stream(request).await?;
        collect(&self.id().provider, stream).await
    }
}

/// Collects a streamed answer of `provider` into a whole one.
pub async fn collect(provider: &str, mut stream: ModelStream) -> Result<ChatResponse, ModelError> {
    let mut answer = ResponseAccumulator::default();
    while let Some(event) = poll_fn(|context| stream.as_mut().poll_next(context)).await {
        answer
            .push(&event?)
            .map_err(|fault| ModelError::from_grammar(provider, fault))?;
    }
    answer
        .finish()
        .map_err(|fault| ModelError::from_grammar(provider, fault))
}
