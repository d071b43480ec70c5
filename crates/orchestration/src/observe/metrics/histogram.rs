//! Histogram of durations with fixed buckets.

use serde::{Deserialize, Serialize};

/// Inclusive upper bounds of the histogram buckets, in milliseconds. One further bucket holds
/// longer durations.
pub const BOUNDS_MS: [u64; 17] = [
    5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000,
    300_000, 600_000,
];

/// A histogram of durations in milliseconds, with a fixed number of buckets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Histogram {
    /// Number of recorded durations.
    pub count: u64,
    /// Sum of the recorded durations, in milliseconds.
    pub sum_ms: u64,
    /// Shortest recorded duration. 0 if the histogram is empty.
    pub min_ms: u64,
    /// Longest recorded duration. 0 if the histogram is empty.
    pub max_ms: u64,
    /// Number of durations in each bucket (not cumulative). The upper bounds of the buckets are
    /// [`BOUNDS_MS`]. The last bucket counts longer durations.
    pub buckets: [u64; BOUNDS_MS.len() + 1],
}

impl Histogram {
    /// Adds a duration to the histogram.
    pub fn record_duration(&mut self, duration_ms: u64) {
        self.min_ms = if self.count == 0 {
            duration_ms
        } else {
            self.min_ms.min(duration_ms)
        };
        self.max_ms = self.max_ms.max(duration_ms);
        self.count += 1;
        self.sum_ms = self.sum_ms.saturating_add(duration_ms);
        let bucket = BOUNDS_MS.partition_point(|bound| *bound < duration_ms);
        self.buckets[bucket] += 1;
    }

    /// Returns the mean duration in milliseconds, or `None` if the histogram is empty.
    pub fn mean_ms(&self) -> Option<u64> {
        self.sum_ms.checked_div(self.count)
    }

    /// Returns a quantile in milliseconds: the fraction `share` (0 to 1) of the durations does not
    /// exceed it. Returns `None` if the histogram is empty.
    ///
    /// The value is interpolated within its bucket and lies between the shortest and the longest
    /// duration.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate from numbers far below 2^52"
    )]
    pub fn quantile_ms(&self, share: f64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let rank = (share.clamp(0.0, 1.0) * self.count as f64).max(1.0);
        let mut below = 0_u64;
        for (bucket, &count) in self.buckets.iter().enumerate() {
            if count > 0 && (below + count) as f64 >= rank {
                let from = bucket.checked_sub(1).map_or(0, |before| BOUNDS_MS[before]);
                let to = BOUNDS_MS.get(bucket).copied().unwrap_or(self.max_ms);
                let (from, to) = (from.max(self.min_ms), to.min(self.max_ms));
                let fraction = (rank - below as f64) / count as f64;
                let estimate = from as f64 + fraction * to.saturating_sub(from) as f64;
                return Some(estimate.round() as u64);
            }
            below += count;
        }
        Some(self.max_ms)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(durations: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        for duration in durations {
            histogram.record_duration(*duration);
        }
        histogram
    }

    #[test]
    fn bounds_belong_to_their_own_bucket() {
        let histogram = of(&[0, 5, 6, 600_000, 600_001]);
        assert_eq!(histogram.buckets[0], 2);
        assert_eq!(histogram.buckets[1], 1);
        assert_eq!(histogram.buckets[16], 1);
        assert_eq!(histogram.buckets[17], 1);
        assert_eq!(histogram.max_ms, 600_001);
    }

    proptest! {
        #[test]
        fn quantiles_grow_and_stay_between_the_shortest_and_the_longest(
            durations in proptest::collection::vec(0_u64..2_000_000, 1..60),
        ) {
            let histogram = of(&durations);
            let least = *durations.iter().min().unwrap();
            let most = *durations.iter().max().unwrap();
            prop_assert_eq!((histogram.min_ms, histogram.max_ms), (least, most));
            prop_assert_eq!(histogram.buckets.iter().sum::<u64>(), histogram.count);
            let mut before = least;
            for share in [0.0, 0.25, 0.5, 0.75, 0.95, 1.0] {
                let quantile = histogram.quantile_ms(share).unwrap();
                prop_assert!((before..=most).contains(&quantile), "{share}: {quantile}");
                before = quantile;
            }
        }
    }
}
