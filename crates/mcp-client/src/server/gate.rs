//! How many servers are started at once.

use std::{pin::pin, time::Duration};

use tokio::{sync::Semaphore, time::timeout};

/// How long a start holds up the next one at most. What makes a machine busy is the beginning: programs
/// that are loaded. One that is still silent after that is only waited for, and that costs nothing.
const BUSY: Duration = Duration::from_millis(500);

/// A narrow gate: so many starts pass at once, and none keeps its place for long, so that servers that
/// are broken or slow hold up nobody.
pub(crate) struct Gate(Semaphore);

impl Gate {
    /// `width` 0 is taken for 1.
    pub(crate) fn new(width: usize) -> Self {
        Self(Semaphore::new(width.clamp(1, Semaphore::MAX_PERMITS)))
    }

    /// Runs `start` to its end, once there is a place.
    pub(crate) async fn pass<F: Future>(&self, start: F) -> F::Output {
        // Never closed, so it fails never.
        let place = self.0.acquire().await;
        let mut start = pin!(start);
        if let Ok(output) = timeout(BUSY, &mut start).await {
            return output;
        }
        drop(place);
        start.await
    }
}

#[cfg(test)]
mod tests {
    use std::{
        cell::Cell,
        future::{pending, ready},
    };

    use futures_util::future::join_all;
    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn no_more_than_its_width_begin_at_once() {
        let gate = Gate::new(3);
        let (now, most) = (Cell::new(0_u32), Cell::new(0_u32));
        let starts = (0..10).map(|_| {
            gate.pass(async {
                now.set(now.get() + 1);
                most.set(most.get().max(now.get()));
                // sleep: the clock is paused; it is the time that a start takes.
                sleep(Duration::from_millis(100)).await;
                now.set(now.get() - 1);
            })
        });
        join_all(starts).await;
        assert_eq!(most.get(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_never_answer_hold_up_the_others_for_a_moment_only() {
        let gate = Gate::new(16);
        let mut silent = pin!(join_all((0..32).map(|_| gate.pass(pending::<()>()))));
        let begun = Instant::now();
        tokio::select! {
            biased;
            _ = &mut silent => unreachable!("they never answer"),
            () = gate.pass(ready(())) => {}
        }
        assert_eq!(begun.elapsed(), 2 * BUSY);
    }
}
