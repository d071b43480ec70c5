//! Requests for the rest of an answer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of requests for one answer.
const MAX_REQUESTS: u32 = 32;

/// The state that the decoder and the response stream share. The decoder reads continuation tokens,
/// and the response stream requests continuations with them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Continuation(Arc<Mutex<ContinuationState>>);

#[derive(Debug, Default)]
struct ContinuationState {
    token: Option<String>,
    further_requests: u32,
}

impl Continuation {
    /// Requests the continuation that follows `token`. Returns `false` if the maximum number of
    /// requests is reached.
    pub(crate) fn request_next(&self, token: &str) -> bool {
        let mut state = self.lock_state();
        let is_allowed = state.further_requests.saturating_add(1) < MAX_REQUESTS;
        if is_allowed {
            state.token = Some(token.to_owned());
        }
        is_allowed
    }

    /// Returns the number of continuation requests.
    pub(crate) fn count_further_requests(&self) -> u32 {
        self.lock_state().further_requests
    }

    /// Removes the token of the next request and counts that request.
    pub(crate) fn take_token(&self) -> Option<String> {
        let mut state = self.lock_state();
        let token = state.token.take()?;
        state.further_requests = state.further_requests.saturating_add(1);
        Some(token)
    }

    fn lock_state(&self) -> MutexGuard<'_, ContinuationState> {
        // A poisoned lock is ignored, because every update leaves the state valid.
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
        while continuation.request_next("t") {
            assert_eq!(continuation.take_token().as_deref(), Some("t"));
            requests += 1;
        }
        assert_eq!((requests, continuation.take_token()), (MAX_REQUESTS, None));
        assert_eq!(continuation.count_further_requests(), MAX_REQUESTS - 1);
    }
}
