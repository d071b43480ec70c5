//! Exponential backoff with jitter. Without jitter, many hosts that lost a server at one moment
//! would reconnect at one moment.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

/// Sequence of retry delays that double from `first` up to `max`. Jitter shortens each delay.
pub(crate) struct Backoff {
    delays: ExponentialBackoff,
    max: Duration,
}

impl Backoff {
    /// Creates a backoff. Jitter reduces each delay to a random value from 50% to 100%.
    pub(crate) fn new(first: Duration, max: Duration) -> Self {
        // `with_jitter` adds up to 100% to each delay, so half of each delay is configured here.
        let delays = ExponentialBuilder::new()
            .with_min_delay(first.min(max) / 2)
            .with_max_delay(max / 2)
            .without_max_times()
            .with_jitter()
            .build();
        Self { delays, max }
    }

    pub(crate) fn next_delay(&mut self) -> Duration {
        self.delays.next().unwrap_or(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_maximum_and_are_at_least_half_of_it() {
        let mut backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));
        for nominal in [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000] {
            let (delay, nominal) = (backoff.next_delay(), Duration::from_millis(nominal));
            assert!(
                nominal / 2 <= delay && delay <= nominal,
                "{delay:?} of {nominal:?}"
            );
        }
    }
}
