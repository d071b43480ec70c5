//! Repetition of a request until output of its answer is shown.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use async_trait::async_trait;
use futures_core::Stream;
use switchboard_domain::{ChatRequest, ModelError, ModelEvent, ModelRetry, ModelStream};
use tokio::time::{Sleep, sleep};

use crate::{RetryPolicy, http::transport::Attempts};

/// A model that can make one attempt at a request. [`stream_with_retry`] repeats it.
#[async_trait]
pub trait SingleAttempt: Clone + Send + Sync + 'static {
    /// Returns when and how often a request is repeated.
    fn retry_policy(&self) -> &RetryPolicy;

    /// Sends the request once. Returns when the provider begins to answer.
    async fn attempt(&self, request: &ChatRequest) -> Result<ModelStream, ModelError>;
}

/// Sends a request to a model, and repeats it within the [`RetryPolicy`] until output of the answer
/// is shown ([`ModelEvent::shows_output`]).
///
/// An attempt may fail before its answer, or in the middle of it: the connection breaks or stalls,
/// the answer ends early, is empty or cannot be read, or the provider reports an error within it.
/// If [`ModelError::is_worth_retrying`] is true and the policy has an attempt left, the stream
/// emits [`ModelEvent::Retrying`], pauses, and continues with the next attempt. All attempts count
/// as one request of the policy.
///
/// Returns an error if the first attempt fails before its answer and is not repeated. Later errors
/// are the last item of the stream.
pub async fn stream_with_retry<M: SingleAttempt>(
    model: &M,
    request: &ChatRequest,
) -> Result<ModelStream, ModelError> {
    let first = model.attempt(request).await;
    let policy = model.retry_policy();
    if policy.max_attempts <= 1 {
        return first;
    }
    let mut attempts = policy.attempts();
    let (state, announced) = match first {
        Ok(stream) => (State::Reading(stream), None),
        Err(error) => match attempts.pause_after(&error) {
            Some(pause) => (
                State::waiting(pause),
                Some(announcement(&attempts, pause, &error)),
            ),
            None => return Err(error),
        },
    };
    let repetition = Repetition {
        model: model.clone(),
        request: Arc::new(request.clone()),
        attempts,
    };
    Ok(Box::pin(RetryingStream {
        state,
        announced,
        repetition: Some(Box::new(repetition)),
    }))
}

type Opening = Pin<Box<dyn Future<Output = Result<ModelStream, ModelError>> + Send>>;

enum State {
    /// Reads the answer of an attempt.
    Reading(ModelStream),
    /// Pauses before the next attempt.
    Waiting(Pin<Box<Sleep>>),
    /// Waits for the beginning of the answer.
    Opening(Opening),
    Done,
}

impl State {
    fn waiting(pause: Duration) -> Self {
        Self::Waiting(Box::pin(sleep(pause)))
    }
}

/// The state for another attempt.
struct Repetition<M> {
    model: M,
    request: Arc<ChatRequest>,
    attempts: Attempts,
}

struct RetryingStream<M> {
    state: State,
    /// The event before the pause.
    announced: Option<ModelEvent>,
    /// `None` once output was shown or the answer is complete.
    repetition: Option<Box<Repetition<M>>>,
}

/// No field is pinned.
impl<M> Unpin for RetryingStream<M> {}

impl<M: SingleAttempt> Stream for RetryingStream<M> {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(event) = this.announced.take() {
                return Poll::Ready(Some(Ok(event)));
            }
            let error = match &mut this.state {
                State::Reading(stream) => match ready!(stream.as_mut().poll_next(context)) {
                    Some(Ok(event)) => {
                        if event.shows_output() || matches!(event, ModelEvent::Finished { .. }) {
                            this.repetition = None;
                        }
                        return Poll::Ready(Some(Ok(event)));
                    }
                    Some(Err(error)) => error,
                    None => {
                        this.state = State::Done;
                        return Poll::Ready(None);
                    }
                },
                State::Waiting(pause) => {
                    ready!(pause.as_mut().poll(context));
                    this.state = match &this.repetition {
                        Some(repetition) => State::Opening(repetition.open()),
                        None => State::Done,
                    };
                    continue;
                }
                State::Opening(opening) => match ready!(opening.as_mut().poll(context)) {
                    Ok(stream) => {
                        this.state = State::Reading(stream);
                        continue;
                    }
                    Err(error) => error,
                },
                State::Done => return Poll::Ready(None),
            };
            if let Err(error) = this.repeat_after(error) {
                this.state = State::Done;
                this.repetition = None;
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}

impl<M: SingleAttempt> RetryingStream<M> {
    /// Prepares the pause before the next attempt. Returns the error if there is none.
    fn repeat_after(&mut self, error: ModelError) -> Result<(), ModelError> {
        let Some(repetition) = &mut self.repetition else {
            return Err(error);
        };
        let Some(pause) = repetition.attempts.pause_after(&error) else {
            return Err(error);
        };
        self.announced = Some(announcement(&repetition.attempts, pause, &error));
        // Drops the failed attempt, which closes its connection.
        self.state = State::waiting(pause);
        Ok(())
    }
}

impl<M: SingleAttempt> Repetition<M> {
    fn open(&self) -> Opening {
        let (model, request) = (self.model.clone(), Arc::clone(&self.request));
        Box::pin(async move { model.attempt(&request).await })
    }
}

fn announcement(attempts: &Attempts, pause: Duration, error: &ModelError) -> ModelEvent {
    tracing::debug!(provider = error.provider(), ?pause, %error, "repeating a request after a pause");
    let retry = ModelRetry {
        attempt: attempts.number(),
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
