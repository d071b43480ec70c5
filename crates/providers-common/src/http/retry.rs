//! Retries of a failed model request, which end as soon as output of an answer is emitted.

use std::{mem, time::Duration};

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use switchboard_domain::{ChatRequest, ModelError, ModelEvent, ModelRetry, ModelStream};
use tokio::time::sleep;

use crate::{RetryPolicy, http::transport::Attempts};

/// A model that sends a request without retries. [`stream_with_retry`] adds the retries.
#[async_trait]
pub trait SingleAttempt: Clone + Send + Sync + 'static {
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
pub async fn stream_with_retry<M: SingleAttempt>(
    model: &M,
    request: &ChatRequest,
) -> Result<ModelStream, ModelError> {
    let first = model.send_once(request).await;
    let policy = model.retry_policy();
    if policy.max_attempts <= 1 {
        return first;
    }
    let mut retrying = Retrying {
        model: model.clone(),
        request: request.clone(),
        attempts: Some(policy.start_attempts()),
        step: Step::End,
    };
    let announced = match first {
        Ok(stream) => {
            retrying.step = Step::Read(stream);
            None
        }
        Err(error) => Some(retrying.schedule_retry(error)?),
    };
    // The state is boxed, because the stream moves it for every event.
    let rest = stream::unfold(Box::new(retrying), |mut retrying| async move {
        let item = retrying.next().await?;
        Some((item, retrying))
    });
    Ok(Box::pin(stream::iter(announced.map(Ok)).chain(rest).fuse()))
}

struct Retrying<M> {
    model: M,
    request: ChatRequest,
    /// Counter of attempts. `None` after output or a complete answer, so that no retry follows.
    attempts: Option<Attempts>,
    step: Step,
}

enum Step {
    /// The answer of the current attempt is read from this stream.
    Read(ModelStream),
    /// The next attempt starts after this pause.
    Repeat(Duration),
    End,
}

impl<M: SingleAttempt> Retrying<M> {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            let error = match mem::replace(&mut self.step, Step::End) {
                Step::Read(mut stream) => match stream.next().await? {
                    Ok(event) => {
                        if event.shows_output() || matches!(event, ModelEvent::Finished { .. }) {
                            self.attempts = None;
                        }
                        self.step = Step::Read(stream);
                        return Some(Ok(event));
                    }
                    Err(error) => error,
                },
                Step::Repeat(pause) => {
                    sleep(pause).await;
                    match self.model.send_once(&self.request).await {
                        Ok(stream) => {
                            self.step = Step::Read(stream);
                            continue;
                        }
                        Err(error) => error,
                    }
                }
                Step::End => return None,
            };
            return Some(self.schedule_retry(error));
        }
    }

    /// Prepares the next attempt and returns the event that announces the pause before it. Returns
    /// `error` if no attempt is left.
    fn schedule_retry(&mut self, error: ModelError) -> Result<ModelEvent, ModelError> {
        let Some(attempts) = &mut self.attempts else {
            return Err(error);
        };
        let Some(pause) = attempts.take_next_pause(&error) else {
            return Err(error);
        };
        self.step = Step::Repeat(pause);
        Ok(retry_event(attempts, pause, &error))
    }
}

fn retry_event(attempts: &Attempts, pause: Duration, error: &ModelError) -> ModelEvent {
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
