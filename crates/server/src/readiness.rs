//! The check of the session store that `/readyz` makes.

use std::time::Duration;

use switchboard_domain::SessionStoreError;
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};

/// Maximum time of one check.
const LIMIT: Duration = Duration::from_secs(2);
/// How long a result holds, so that frequent probes cause few writes.
const FRESH: Duration = Duration::from_secs(1);

/// The last check of the store. At most one check is under way.
#[derive(Debug, Default)]
pub(crate) struct StoreCheck {
    last: Mutex<Option<(Instant, bool)>>,
}

impl StoreCheck {
    /// Returns whether `ping` succeeds within two seconds. A result of the last second is reused, and
    /// `ping` is not polled then.
    pub(crate) async fn passes(
        &self,
        ping: impl Future<Output = Result<(), SessionStoreError>>,
    ) -> bool {
        let checked = timeout(LIMIT, self.check(ping)).await;
        checked.unwrap_or_else(|_| {
            tracing::error!(limit = ?LIMIT, "the session store does not answer in time");
            false
        })
    }

    async fn check(&self, ping: impl Future<Output = Result<(), SessionStoreError>>) -> bool {
        // Others wait here for the result of the check that is under way.
        let mut last = self.last.lock().await;
        if let Some((at, passed)) = *last
            && at.elapsed() < FRESH
        {
            return passed;
        }
        let checked = ping.await;
        if let Err(error) = &checked {
            let error = error as &dyn std::error::Error;
            tracing::error!(error, "the session store cannot be read and written");
        }
        *last = Some((Instant::now(), checked.is_ok()));
        checked.is_ok()
    }
}

#[cfg(test)]
#[path = "readiness_tests.rs"]
mod tests;
