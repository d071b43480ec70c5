//! How long to wait and how often to try.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use switchboard_domain::ModelError;

/// What an [`HttpTransport`](super::HttpTransport) is told once.
///
/// ```
/// use std::time::Duration;
/// use switchboard_providers_common::{RetryPolicy, TransportConfig};
///
/// let impatient = TransportConfig {
///     first_byte_timeout: Duration::from_secs(20),
///     retry: RetryPolicy::never(),
///     ..TransportConfig::default()
/// };
/// assert_eq!(impatient.retry.max_attempts, 1);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransportConfig {
    /// How long a connection may take, with name resolution and TLS. 10 s: the official SDKs allow
    /// 5 s, which is short for a first connection through a tunnel.
    pub connect_timeout: Duration,
    /// How long the first byte of an answer's body may take, from the beginning of the attempt.
    /// 10 min, as in the official SDKs (anthropic 2.11.0, openai 3.52.0): a model may think for long
    /// before it says anything, and a local one may have to be loaded first. An answer that is asked for
    /// whole ([`Delivery::Whole`](switchboard_domain::Delivery::Whole)) sends nothing until it is
    /// complete: then this is the time for all of it.
    pub first_byte_timeout: Duration,
    /// How long the next piece may take once the answer has begun. 5 min: reasoning models are
    /// silent in the middle of a stream too.
    pub idle_timeout: Duration,
    /// When to try again.
    pub retry: RetryPolicy,
    /// `user-agent`: `switchboard/` and the version.
    pub user_agent: String,
    /// Whether a proxy is taken from the environment (`HTTPS_PROXY`, `NO_PROXY`, …) or the
    /// system's settings. True.
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

/// When a request is sent again.
///
/// *Whether* it may be is not decided here: the error must be worth it
/// ([`ModelError::is_worth_retrying`](switchboard_domain::ModelError::is_worth_retrying)), which the
/// provider overrules with `x-should-retry`, and no output of the answer may have been shown.
///
/// The defaults are those of the official SDKs (anthropic 2.11.0, openai 3.52.0: two retries, 0.5 s
/// growing to 8 s).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often a request is sent at most. 3; zero counts as one.
    pub max_attempts: u32,
    /// The pause before the second attempt. 500 ms. It doubles from attempt to attempt, and a random
    /// time of up to as much again is added.
    pub min_delay: Duration,
    /// What the pause grows to, without the random time. 8 s.
    pub max_delay: Duration,
    /// How long a wish of the provider (`retry-after-ms`, `retry-after`) is obeyed. 60 s. If it
    /// wants a longer pause the error is returned at once, with the wish in it
    /// ([`ModelError::retry_after`](switchboard_domain::ModelError::retry_after)).
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
    /// One attempt only.
    pub fn never() -> Self {
        Self {
            max_attempts: 1,
            ..Self::default()
        }
    }

    /// Returns the attempts of one request, of which the first is under way.
    pub(crate) fn attempts(&self) -> Attempts {
        Attempts {
            policy: self.clone(),
            delays: None,
            number: 1,
        }
    }

    /// The pauses between attempts.
    fn delays(&self) -> ExponentialBuilder {
        ExponentialBuilder::new()
            .with_min_delay(self.min_delay.min(self.max_delay))
            .with_max_delay(self.max_delay)
            .with_max_times(self.max_attempts.saturating_sub(1) as usize)
            .with_jitter()
    }

    /// The next pause: `ours` if the provider has no wish. `None` to give up.
    fn pause(&self, wish: Option<Duration>, ours: Option<Duration>) -> Option<Duration> {
        let ours = ours?;
        match wish {
            // "Now" would be answered by everyone at once.
            None | Some(Duration::ZERO) => Some(ours),
            Some(wish) => (wish <= self.max_retry_after).then_some(wish),
        }
    }
}

/// The attempts of one request. All repetitions of a request share one of these, wherever an attempt
/// fails.
#[derive(Debug)]
pub(crate) struct Attempts {
    policy: RetryPolicy,
    /// The pauses that are left. `None` until the first attempt has failed.
    delays: Option<ExponentialBackoff>,
    number: u32,
}

impl Attempts {
    /// Returns the number of the current attempt. The first is 1.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Counts the next attempt and returns the pause before it. `None` if the policy allows no other
    /// attempt after this error.
    pub(crate) fn pause_after(&mut self, error: &ModelError) -> Option<Duration> {
        if !error.is_worth_retrying() {
            return None;
        }
        let policy = &self.policy;
        let delays = self.delays.get_or_insert_with(|| policy.delays().build());
        let pause = policy.pause(error.retry_after(), delays.next())?;
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
        let pauses: Vec<_> = policy.delays().build().collect();
        let floors = [SECOND, 2 * SECOND, 3 * SECOND, 3 * SECOND];
        assert_eq!(pauses.len(), floors.len());
        for (pause, floor) in pauses.iter().zip(floors) {
            assert!((floor..=2 * floor).contains(pause), "{pauses:?}");
        }
        let again: Vec<_> = policy.delays().build().collect();
        assert_ne!(pauses, again, "the random part is the same");
    }

    #[test]
    fn no_attempts_means_one() {
        for max_attempts in [0, 1] {
            let policy = RetryPolicy {
                max_attempts,
                ..RetryPolicy::default()
            };
            assert_eq!(policy.delays().build().next(), None);
        }
    }

    #[test]
    fn the_providers_wish_beats_ours_unless_it_is_too_long() {
        let policy = RetryPolicy {
            max_retry_after: 10 * SECOND,
            ..RetryPolicy::default()
        };
        let ours = Some(2 * SECOND);
        assert_eq!(policy.pause(None, ours), ours);
        assert_eq!(policy.pause(Some(SECOND), ours), Some(SECOND));
        assert_eq!(policy.pause(Some(10 * SECOND), ours), Some(10 * SECOND));
        assert_eq!(policy.pause(Some(11 * SECOND), ours), None);
        assert_eq!(policy.pause(Some(Duration::ZERO), ours), ours);
        assert_eq!(policy.pause(Some(SECOND), None), None, "no attempts left");
    }
}
