//! Checks the session store for the readiness probe `/readyz`.

use std::time::Duration;

use switchboard_domain::SessionStoreError;
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};

/// Maximum duration of one store check. A slower check fails.
const LIMIT: Duration = Duration::from_secs(2);
/// Maximum age of a check result that is reused, so that frequent probes cause few store writes.
const MAX_AGE: Duration = Duration::from_secs(1);

/// A cached check of the session store. At most one check runs at a time.
#[derive(Debug, Default)]
pub(crate) struct StoreCheck {
    last: Mutex<Option<(Instant, bool)>>,
}

impl StoreCheck {
    /// Returns whether the store check `ping` succeeds within two seconds. A result from the last
    /// second is reused without polling `ping`.
    pub(crate) async fn is_store_ready(
        &self,
        ping: impl Future<Output = Result<(), SessionStoreError>>,
    ) -> bool {
        let checked = timeout(LIMIT, self.check_store(ping)).await;
        checked.unwrap_or_else(|_| {
            tracing::error!(limit = ?LIMIT, "the session store did not respond in time");
            false
        })
    }

    async fn check_store(&self, ping: impl Future<Output = Result<(), SessionStoreError>>) -> bool {
        // Concurrent callers wait here, so that they reuse the result of the check in progress.
        let mut last = self.last.lock().await;
        if let Some((at, passed)) = *last
            && at.elapsed() < MAX_AGE
        {
            return passed;
        }
        let checked = ping.await;
        if let Err(error) = &checked {
            let error = error as &dyn std::error::Error;
            tracing::error!(error, "failed to read and write the session store");
        }
        *last = Some((Instant::now(), checked.is_ok()));
        checked.is_ok()
    }
}

#[cfg(test)]
#[path = "readiness_tests.rs"]
mod tests;
