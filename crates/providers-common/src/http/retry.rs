//! Retries of a failed model request, which end as soon as output of an answer is emitted.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use async_trait::async_trait;
use futures_core::{Stream, future::BoxFuture};
use switchboard_domain::{ChatRequest, ModelError, ModelEvent, ModelRetry, ModelStream};
use tokio::time::sleep;

use crate::{RetryPolicy, http::transport::AttemptCounter};

/// A model that sends a request without retries. [`stream_with_retry`] adds the retries.
#[async_trait]
pub trait SingleAttemptModel: Clone + Send + Sync + 'static {
    /// Returns the policy that decides when and how often a request is retried.
    fn retry_policy(&self) -> &RetryPolicy;

    /// Sends the request once. Returns when the provider begins to answer.
    async fn send_once(&self, request: &ChatRequest) -> Result<ModelStream, ModelError>;
}

/// Sends a request to a model and repeats a failed request within the [`RetryPolicy`]. After the
/// first event with output for the user ([`ModelEvent::shows_output`]), it is not repeated.
///
/// An attempt may fail before its answer, or in the middle of it: the connection breaks or stalls,
/// the answer ends early, is empty or cannot be read, or the provider reports an error within it.
/// If [`ModelError::is_worth_retrying`] is true and the policy has an attempt left, the stream
/// emits [`ModelEvent::Retrying`], pauses, and continues with the next attempt. All attempts
/// together count against [`RetryPolicy::max_attempts`].
///
/// Returns an error if the first attempt fails before its answer and is not repeated. Later errors
/// are the last item of the stream.
pub async fn stream_with_retry<M: SingleAttemptModel>(
    model: &M,
    request: &ChatRequest,
) -> Result<ModelStream, ModelError> {
    let first = model.send_once(request).await;
    let policy = model.retry_policy();
    if policy.max_attempts <= 1 {
        return first;
    }
    let mut retrying = RetryStream {
        model: model.clone(),
        request: request.clone(),
        attempts: Some(policy.start_attempts()),
        announced: None,
        step: AttemptState::End,
    };
    match first {
        Ok(stream) => retrying.step = AttemptState::Read(stream),
        Err(error) => retrying.announced = Some(retrying.schedule_retry(error)?),
    }
    Ok(Box::pin(retrying))
}

/// Stream of the events of an answer. It repeats failed attempts and emits [`ModelEvent::Retrying`]
/// before each repetition. It implements `poll_next` itself, because `stream::unfold` would move
/// the whole state for every token.
struct RetryStream<M> {
    model: M,
    request: ChatRequest,
    /// Counter of attempts. `None` after output or a complete answer, so that no retry follows.
    attempts: Option<AttemptCounter>,
    /// [`ModelEvent::Retrying`] event to emit first, if the first attempt failed before its answer.
    announced: Option<ModelEvent>,
    step: AttemptState,
}

enum AttemptState {
    /// The answer of the current attempt is read from this stream.
    Read(ModelStream),
    /// The next attempt, which starts after a pause.
    Repeat(BoxFuture<'static, Result<ModelStream, ModelError>>),
    End,
}

/// No field is pinned in place, so the stream can move after it was polled.
impl<M> Unpin for RetryStream<M> {}

impl<M: SingleAttemptModel> Stream for RetryStream<M> {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if let Some(event) = this.announced.take() {
            return Poll::Ready(Some(Ok(event)));
        }
        loop {
            let error = match &mut this.step {
                AttemptState::Read(stream) => match ready!(stream.as_mut().poll_next(context)) {
                    Some(Ok(event)) => {
                        if event.shows_output() || matches!(event, ModelEvent::Finished { .. }) {
                            this.attempts = None;
                        }
                        return Poll::Ready(Some(Ok(event)));
                    }
                    Some(Err(error)) => Some(error),
                    None => None,
                },
                AttemptState::Repeat(attempt) => match ready!(attempt.as_mut().poll(context)) {
                    Ok(stream) => {
                        this.step = AttemptState::Read(stream);
                        continue;
                    }
                    Err(error) => Some(error),
                },
                AttemptState::End => None,
            };
            this.step = AttemptState::End;
            return Poll::Ready(error.map(|error| this.schedule_retry(error)));
        }
    }
}

impl<M: SingleAttemptModel> RetryStream<M> {
    /// Prepares the next attempt and returns the event that announces the pause before it. Returns
    /// `error` as the error if no further attempt is allowed.
    fn schedule_retry(&mut self, error: ModelError) -> Result<ModelEvent, ModelError> {
        let Some(attempts) = &mut self.attempts else {
            return Err(error);
        };
        let Some(pause) = attempts.take_retry_delay(&error) else {
            return Err(error);
        };
        let event = retry_event(attempts, pause, &error);
        let (model, request) = (self.model.clone(), self.request.clone());
        self.step = AttemptState::Repeat(Box::pin(async move {
            sleep(pause).await;
            model.send_once(&request).await
        }));
        Ok(event)
    }
}

fn retry_event(attempts: &AttemptCounter, pause: Duration, error: &ModelError) -> ModelEvent {
    tracing::debug!(provider = error.provider_name(), ?pause, %error, "repeating a request after a \
        pause");
    let retry = ModelRetry {
        attempt: attempts.attempt_number(),
        delay_ms: u64::try_from(pause.as_millis()).unwrap_or(u64::MAX),
        reason: error.to_string(),
    };
    ModelEvent::Retrying {
        retry: Box::new(retry),
    }
}

#[cfg(test)]
#[path = "retry_tests.rs"]
mod tests;
