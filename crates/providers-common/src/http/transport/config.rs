//! Settings of the HTTP transport: time-outs, retries, proxy and user agent.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use switchboard_domain::ModelError;

/// Settings of an [`HttpTransport`](super::HttpTransport).
///
/// ```
/// use std::time::Duration;
/// use switchboard_providers_common::{RetryPolicy, TransportConfig};
///
/// let impatient = TransportConfig {
///     first_byte_timeout: Duration::from_secs(20),
///     retry: RetryPolicy::never_retry(),
///     ..TransportConfig::default()
/// };
/// assert_eq!(impatient.retry.max_attempts, 1);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransportConfig {
    /// Maximum time to connect, with name resolution and TLS. Default: 10 s. The official SDKs
    /// allow 5 s, which is short for a first connection through a tunnel.
    pub connect_timeout: Duration,
    /// Maximum time from the start of the attempt to the first byte of the body. Default: 10 min,
    /// as in the official SDKs (anthropic 2.11.0, openai 3.52.0): a model may think for long, and a
    /// local model may have to be loaded. An answer that is not streamed
    /// ([`Delivery::Whole`](switchboard_domain::Delivery::Whole)) arrives when it is complete, so
    /// this limits its total time.
    pub first_byte_timeout: Duration,
    /// Maximum time without data while a response body is read. Default: 5 min, because reasoning
    /// models pause within a stream.
    pub idle_timeout: Duration,
    /// Policy for retries of failed requests.
    pub retry: RetryPolicy,
    /// Value of the `user-agent` header. Default: `switchboard/` and the version.
    pub user_agent: String,
    /// Whether requests use the proxy of the environment (`HTTPS_PROXY`, `NO_PROXY`, …) or of the
    /// system's settings. Default: true.
    pub system_proxy: bool,
}

impl Default for TransportConfig {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            first_byte_timeout: Duration::from_mins(10),
            idle_timeout: Duration::from_mins(5),
            retry: RetryPolicy::default(),
            user_agent: concat!("switchboard/", env!("CARGO_PKG_VERSION")).to_owned(),
            system_proxy: true,
        }
    }
}

/// Policy that decides when and how often a request is retried.
///
/// [`ModelError::is_worth_retrying`](switchboard_domain::ModelError::is_worth_retrying) decides
/// whether a request is repeated. The response header `x-should-retry` overrides it. A request is
/// not repeated after output of its answer was emitted.
///
/// The defaults are those of the official SDKs (anthropic 2.11.0, openai 3.52.0: two retries, 0.5 s
/// growing to 8 s).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Maximum number of attempts for one request. Default: 3. Zero counts as one.
    pub max_attempts: u32,
    /// Pause before the second attempt. Default: 500 ms. The pause doubles with each attempt. A
    /// random time between zero and the length of the pause is added.
    pub min_delay: Duration,
    /// Maximum pause between attempts, without the random time. Default: 8 s.
    pub max_delay: Duration,
    /// Maximum pause that the provider may request (`retry-after-ms`, `retry-after`). Default: 1
    /// min. If the provider requests a longer pause, the error is returned immediately with that
    /// pause ([`ModelError::retry_after`](switchboard_domain::ModelError::retry_after)).
    pub max_retry_after: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            min_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(8),
            max_retry_after: Duration::from_mins(1),
        }
    }
}

impl RetryPolicy {
    /// Returns a policy that never retries a request.
    pub fn never_retry() -> Self {
        Self {
            max_attempts: 1,
            ..Self::default()
        }
    }

    /// Returns a counter for the attempts of one request. The first attempt has the number 1.
    pub(crate) fn new_attempt_counter(&self) -> AttemptCounter {
        AttemptCounter {
            max_retry_after: self.max_retry_after,
            delays: ExponentialBuilder::new()
                .with_min_delay(self.min_delay.min(self.max_delay))
                .with_max_delay(self.max_delay)
                .with_max_times(self.max_attempts.saturating_sub(1) as usize)
                .with_jitter()
                .build(),
            number: 1,
        }
    }
}

/// Counter of the attempts of one request. All attempts share it, whether they fail before or
/// during the answer.
#[derive(Debug)]
pub(crate) struct AttemptCounter {
    max_retry_after: Duration,
    /// Remaining pauses between attempts.
    delays: ExponentialBackoff,
    number: u32,
}

impl AttemptCounter {
    /// Returns the number of the current attempt. The first is 1.
    pub(crate) fn attempt_number(&self) -> u32 {
        self.number
    }

    /// Counts the next attempt and returns the pause before it. Returns `None` if the policy allows
    /// no other attempt after this error.
    pub(crate) fn take_retry_delay(&mut self, error: &ModelError) -> Option<Duration> {
        if !error.is_worth_retrying() {
            return None;
        }
        let default = self.delays.next()?;
        let pause = match error.retry_after() {
            // A requested pause of zero is ignored, because all clients would retry at the same
            // time.
            None | Some(Duration::ZERO) => default,
            Some(requested) if requested <= self.max_retry_after => requested,
            Some(_) => return None,
        };
        self.number = self.number.saturating_add(1);
        Some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn pauses_double_up_to_the_limit_and_vary() {
        let policy = RetryPolicy {
            max_attempts: 5,
            min_delay: SECOND,
            max_delay: 3 * SECOND,
            ..RetryPolicy::default()
        };
        let pauses: Vec<_> = policy.new_attempt_counter().delays.collect();
        let floors = [SECOND, 2 * SECOND, 3 * SECOND, 3 * SECOND];
        assert_eq!(pauses.len(), floors.len());
        for (pause, floor) in pauses.iter().zip(floors) {
            assert!((floor..=2 * floor).contains(pause), "{pauses:?}");
        }
        let again: Vec<_> = policy.new_attempt_counter().delays.collect();
        assert_ne!(pauses, again, "the random part is the same");
    }
}
