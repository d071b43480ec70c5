use std::{future::poll_fn, pin::Pin};

use async_trait::async_trait;
use futures_core::Stream;

use crate::{
    AnswerMeter, ChatRequest, ChatResponse, DEFAULT_MAX_ANSWER_BYTES, ModelCapabilities,
    ModelError, ModelErrorKind, ModelEvent, ModelId, ResponseAccumulator,
};

/// A streamed answer. Dropping it aborts the request. After an error nothing follows.
pub type ModelStream = Pin<Box<dyn Stream<Item = Result<ModelEvent, ModelError>> + Send>>;

/// A language model, or what behaves like one.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ChatModel: Send + Sync {
    /// Which model this is.
    fn id(&self) -> &ModelId;

    /// Returns the capabilities of the model.
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

/// Collects a streamed answer of `provider` into a whole one. Fails if it is longer than
/// [`DEFAULT_MAX_ANSWER_BYTES`].
pub async fn collect(provider: &str, mut stream: ModelStream) -> Result<ChatResponse, ModelError> {
    let mut answer = ResponseAccumulator::default();
    let mut meter = AnswerMeter::default();
    while let Some(event) = poll_fn(|context| stream.as_mut().poll_next(context)).await {
        let event = event?;
        if meter.count(&event) > DEFAULT_MAX_ANSWER_BYTES {
            let message = format!("the answer is longer than {DEFAULT_MAX_ANSWER_BYTES} bytes");
            return Err(ModelError::new(provider, ModelErrorKind::Protocol, message));
        }
        answer
            .push(&event)
            .map_err(|fault| ModelError::from_grammar(provider, fault))?;
    }
    answer
        .finish()
        .map_err(|fault| ModelError::from_grammar(provider, fault))
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
        let mut collected = Box::pin(collect("test", Box::pin(Endless { events: 0 })));
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
