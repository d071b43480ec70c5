use std::{future::poll_fn, pin::Pin};

use async_trait::async_trait;
use futures_core::Stream;

use crate::{
    AnswerSizeMeter, ChatRequest, ChatResponse, DEFAULT_MAX_ANSWER_BYTES, ModelCapabilities,
    ModelError, ModelErrorKind, ModelEvent, ModelId, ResponseAccumulator,
};

/// A streamed answer. Dropping it aborts the request. An error is the last item.
pub type ModelStream = Pin<Box<dyn Stream<Item = Result<ModelEvent, ModelError>> + Send>>;

/// A client for one language model.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ChatModel: Send + Sync {
    /// Returns the id of the model.
    fn id(&self) -> &ModelId;

    /// Returns the capabilities of the model.
    fn capabilities(&self) -> &ModelCapabilities;

    /// Sends a request. Returns when the provider has started the answer. Later errors are the last
    /// item of the stream.
    async fn stream(&self, request: &ChatRequest) -> Result<ModelStream, ModelError>;

    /// Sends a request and waits for the complete answer.
    async fn complete(&self, request: &ChatRequest) -> Result<ChatResponse, ModelError> {
        let stream = self.stream(request).await?;
        collect_stream(&self.id().provider, stream).await
    }
}

/// Collects a streamed answer of `provider` into a complete response. Fails if the answer is longer
/// than [`DEFAULT_MAX_ANSWER_BYTES`].
pub async fn collect_stream(
    provider: &str,
    mut stream: ModelStream,
) -> Result<ChatResponse, ModelError> {
    let mut answer = ResponseAccumulator::default();
    let mut meter = AnswerSizeMeter::default();
    while let Some(event) = poll_fn(|context| stream.as_mut().poll_next(context)).await {
        let event = event?;
        if meter.count_event(&event) > DEFAULT_MAX_ANSWER_BYTES {
            let message = format!("the answer is longer than {DEFAULT_MAX_ANSWER_BYTES} bytes");
            return Err(ModelError::new(provider, ModelErrorKind::Protocol, message));
        }
        answer
            .push(&event)
            .map_err(|fault| ModelError::from_violation(provider, fault))?;
    }
    answer
        .finish()
        .map_err(|fault| ModelError::from_violation(provider, fault))
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::PartStart;

    /// A model that never stops writing.
    struct Endless {
        events: u64,
    }

    impl Stream for Endless {
        type Item = Result<ModelEvent, ModelError>;

        fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            self.events += 1;
            let event = match self.events {
                1 => ModelEvent::PartStarted {
                    index: 0,
                    part: PartStart::Text,
                },
                _ => ModelEvent::TextDelta {
                    index: 0,
                    text: "word ".repeat(20_000),
                },
            };
            Poll::Ready(Some(Ok(event)))
        }
    }

    #[test]
    fn an_endless_answer_is_given_up() {
        let mut collected = Box::pin(collect_stream("test", Box::pin(Endless { events: 0 })));
        let Poll::Ready(answer) = collected
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        else {
            panic!("the stream is always ready");
        };
        let error = answer.unwrap_err();
        assert_eq!(error.message(), "the answer is longer than 16777216 bytes");
    }
}
