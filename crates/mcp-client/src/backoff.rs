//! Pauses that differ: many that lost the same server at the same moment do not come back at the same
//! moment.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
    time::Duration,
};

/// Something between a half of `pause` and all of it ("equal jitter"): never so short that it is none, and
/// never longer than what was promised.
pub(crate) fn jittered(pause: Duration) -> Duration {
    // Keyed by the system once a thread, and another one each time. Nobody has to be unable to guess it.
    spread(pause, RandomState::new().build_hasher().finish())
}

/// The same for a number drawn from all there are.
fn spread(pause: Duration, drawn: u64) -> Duration {
    let half = pause / 2;
    // Thousandths are fine enough.
    let share = u32::try_from(drawn % 1001).unwrap_or_default();
    half.saturating_add((pause.saturating_sub(half) / 1000).saturating_mul(share))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pauses_differ() {
        let drawn = (0..100).map(|_| jittered(Duration::from_secs(1000)));
        assert!(drawn.collect::<HashSet<_>>().len() > 10);
    }

    #[test]
    fn the_whole_of_the_second_half_is_drawn_from() {
        let pause = Duration::from_secs(2);
        assert_eq!(spread(pause, 0), Duration::from_secs(1));
        assert_eq!(spread(pause, 500), Duration::from_millis(1500));
        assert_eq!(spread(pause, 1000), pause);
        assert_eq!(jittered(Duration::ZERO), Duration::ZERO);
    }

    proptest! {
        #[test]
        fn a_pause_is_at_least_its_half_and_at_most_itself(
            pause in 0..=u64::from(u32::MAX),
            drawn: u64,
        ) {
            let pause = Duration::from_micros(pause);
            let drawn = spread(pause, drawn);
            prop_assert!(pause / 2 <= drawn && drawn <= pause);
        }
    }
}
