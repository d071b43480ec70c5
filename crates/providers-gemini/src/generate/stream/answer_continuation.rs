//! Requests the rest of an answer that the API split.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of requests for one answer. Further continuations are not requested.
const MAX_REQUESTS: u32 = 32;

/// State that the decoder and the response stream of one answer share. The decoder stores a
/// continuation token, and the response stream then requests the rest of the answer with it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Continuation(Arc<Mutex<AnswerContinuationState>>);

#[derive(Debug, Default)]
struct AnswerContinuationState {
    token: Option<String>,
    further_requests: u32,
}

impl Continuation {
    /// Stores `token`, with which the response stream then requests the rest of the answer. Returns
    /// `false` if the maximum number of requests is reached.
    pub(crate) fn schedule_continuation(&self, token: &str) -> bool {
        let mut state = self.lock_state();
        let is_allowed = state.further_requests.saturating_add(1) < MAX_REQUESTS;
        if is_allowed {
            state.token = Some(token.to_owned());
        }
        is_allowed
    }

    /// Returns the number of continuation requests that were sent.
    pub(crate) fn count_continuations(&self) -> u32 {
        self.lock_state().further_requests
    }

    /// Removes and returns the token for the next request, and counts this request as sent. Returns
    /// `None` if the decoder has stored no token.
    pub(crate) fn take_continuation_token(&self) -> Option<String> {
        let mut state = self.lock_state();
        let token = state.token.take()?;
        state.further_requests = state.further_requests.saturating_add(1);
        Some(token)
    }

    fn lock_state(&self) -> MutexGuard<'_, AnswerContinuationState> {
        // A lock poisoned by a panic is used anyway, because every update leaves the state valid.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_requests_is_limited() {
        let continuation = Continuation::default();
        let mut requests = 1;
        while continuation.schedule_continuation("t") {
            assert_eq!(continuation.take_continuation_token().as_deref(), Some("t"));
            requests += 1;
        }
        assert_eq!(
            (requests, continuation.take_continuation_token()),
            (MAX_REQUESTS, None)
        );
        assert_eq!(continuation.count_continuations(), MAX_REQUESTS - 1);
    }
}
