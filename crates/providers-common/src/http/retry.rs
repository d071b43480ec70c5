//! Retries of failed model requests. A request is not retried after its first output was emitted.

use std::{
    task::{Context, Poll, ready},
    time::Duration,
};

use async_trait::async_trait;
use futures_core::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
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
/// first event with output for the user ([`ModelEvent::shows_output`]), the request is not
/// repeated.
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
    let mut attempts = AnswerAttempts {
        model: model.clone(),
        request: request.clone(),
        counter: Some(policy.new_attempt_counter()),
        step: AttemptState::End,
    };
    let announced = match first {
        Ok(stream) => {
            attempts.step = AttemptState::Read(stream);
            None
        }
        Err(error) => Some(Ok(attempts.schedule_retry(error)?)),
    };
    // `stream::unfold` is not used, because it would move `attempts` for every event.
    let events = stream::poll_fn(move |context| attempts.poll_event(context));
    Ok(Box::pin(stream::iter(announced).chain(events)))
}

/// State of a model request over all its attempts.
struct AnswerAttempts<M> {
    model: M,
    request: ChatRequest,
    /// Counter of the request's attempts. `None` if no retry is allowed, because output of the
    /// answer was already emitted or the answer is complete.
    counter: Option<AttemptCounter>,
    step: AttemptState,
}

enum AttemptState {
    /// An attempt was answered. Its events are read from this stream.
    Read(ModelStream),
    /// An attempt failed. This future waits for the retry pause and then sends the request again.
    Repeat(BoxFuture<'static, Result<ModelStream, ModelError>>),
    End,
}

impl<M: SingleAttemptModel> AnswerAttempts<M> {
    fn poll_event(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<ModelEvent, ModelError>>> {
        loop {
            let error = match &mut self.step {
                AttemptState::Read(stream) => match ready!(stream.as_mut().poll_next(context)) {
                    Some(Ok(event)) => {
                        if event.shows_output() || matches!(event, ModelEvent::Finished { .. }) {
                            self.counter = None;
                        }
                        return Poll::Ready(Some(Ok(event)));
                    }
                    Some(Err(error)) => Some(error),
                    None => None,
                },
                AttemptState::Repeat(attempt) => match ready!(attempt.as_mut().poll(context)) {
                    Ok(stream) => {
                        self.step = AttemptState::Read(stream);
                        continue;
                    }
                    Err(error) => Some(error),
                },
                AttemptState::End => None,
            };
            self.step = AttemptState::End;
            return Poll::Ready(error.map(|error| self.schedule_retry(error)));
        }
    }

    /// Prepares a retry after `error` and returns the event that announces the pause before the
    /// retry. Fails with `error` if no retry is allowed.
    fn schedule_retry(&mut self, error: ModelError) -> Result<ModelEvent, ModelError> {
        let Some(attempts) = &mut self.counter else {
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
    tracing::debug!(
        provider = error.provider_name(),
        ?pause,
        %error,
        "retrying the request after a delay"
    );
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
