//! How long a call may take: in all, and without a sign of life.

use std::{
    future::pending,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use switchboard_domain::ProgressSink;
use tokio::{sync::watch, time::Instant};

use crate::alarms::Alarms;

/// What a call is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// From its beginning to its end, whatever is heard.
    pub(crate) total: Duration,
    /// Without progress; `None` for as long as it may take in all.
    pub(crate) idle: Option<Duration>,
}

/// Limits that have begun.
#[derive(Debug, Clone)]
pub(crate) struct Deadline {
    begun: Instant,
    limits: Limits,
    /// When the last progress came, in microseconds after the beginning. `None` where only the end of
    /// all counts, and nobody has to listen.
    heard: Option<Arc<AtomicU64>>,
}

impl Deadline {
    pub(crate) fn new(begun: Instant, limits: Limits) -> Self {
        let Limits { total, idle } = limits;
        let idle = idle.filter(|idle| *idle < total);
        Self {
            begun,
            limits: Limits { total, idle },
            heard: idle.map(|_| Arc::default()),
        }
    }

    /// The end of all.
    pub(crate) fn until(&self) -> Instant {
        self.begun + self.limits.total
    }

    /// How long silence may last, for messages.
    pub(crate) fn patience(&self) -> Duration {
        self.limits.idle.unwrap_or(self.limits.total)
    }

    /// When waiting that begins now ends without any sign of life.
    pub(crate) fn if_silent(&self) -> Instant {
        match self.limits.idle {
            Some(idle) => self.until().min(Instant::now() + idle),
            None => self.until(),
        }
    }

    /// `sink`, with every report of progress taken for a sign of life.
    pub(crate) fn listening(&self, sink: ProgressSink) -> ProgressSink {
        let Some(heard) = self.heard.clone() else {
            return sink;
        };
        let begun = self.begun;
        ProgressSink::new(move |progress| {
            heard.store(microseconds(begun.elapsed()), Ordering::Relaxed);
            sink.report(progress);
        })
    }

    /// Waits for `future`; the error is how long it was waited for in vain. While `asking` is more than
    /// zero a person is asked something, and the time that takes counts for nothing.
    pub(crate) async fn hold<F: Future>(
        &mut self,
        alarms: &Alarms,
        mut asking: Option<watch::Receiver<usize>>,
        mut future: Pin<&mut F>,
    ) -> Result<F::Output, Duration> {
        loop {
            let heard = self.heard();
            let (due, limit) = match self.limits.idle {
                Some(idle) if heard + idle < self.until() => (heard + idle, idle),
                _ => (self.until(), self.limits.total),
            };
            tokio::select! {
                biased;
                output = &mut future => return Ok(output),
                () = until(&mut asking, |questions| questions > 0) => {
                    let begun = Instant::now();
                    tokio::select! {
                        biased;
                        output = &mut future => return Ok(output),
                        () = until(&mut asking, |questions| questions == 0) => {}
                    }
                    self.limits.total += begun.elapsed();
                    self.hear();
                }
                () = alarms.at(due) => {
                    if self.heard() <= heard || due == self.until() {
                        return Err(limit);
                    }
                }
            }
        }
    }

    /// A sign of life now; also that waiting for something else is over, for which an attempt that begins
    /// now is not to blame.
    pub(crate) fn hear(&self) {
        if let Some(heard) = &self.heard {
            heard.store(microseconds(self.begun.elapsed()), Ordering::Relaxed);
        }
    }

    fn heard(&self) -> Instant {
        let heard = self.heard.as_ref();
        let after = heard.map_or(0, |heard| heard.load(Ordering::Relaxed));
        self.begun + Duration::from_micros(after)
    }
}

/// For ever, if it never comes to be so.
async fn until(asking: &mut Option<watch::Receiver<usize>>, wanted: impl Fn(usize) -> bool) {
    let said = match asking {
        Some(asking) => asking
            .wait_for(|questions| wanted(*questions))
            .await
            .is_ok(),
        None => false,
    };
    if !said {
        pending::<()>().await;
    }
}

fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use switchboard_domain::ToolProgress;
    use tokio::time::sleep;

    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn deadline(total: u64, idle: Option<u64>) -> Deadline {
        let limits = Limits {
            total: ms(total),
            idle: idle.map(ms),
        };
        Deadline::new(Instant::now(), limits)
    }

    fn progress() -> ToolProgress {
        ToolProgress {
            progress: 1.0,
            total: None,
            message: None,
        }
    }

    fn alarms() -> Alarms {
        Alarms::start(&tokio::runtime::Handle::current())
    }

    fn nobody_asked() -> watch::Receiver<usize> {
        watch::channel(0).1
    }

    /// Progress every `every` milliseconds, `times` times, then nothing any more; and when the call is
    /// given up, after which limit.
    async fn given_up(deadline: &mut Deadline, every: u64, times: u32) -> (Duration, Duration) {
        let begun = Instant::now();
        let sink = deadline.listening(ProgressSink::default());
        let working = async {
            for _ in 0..times {
                // sleep: the clock is paused; it is the time that the work takes.
                sleep(ms(every)).await;
                sink.report(progress());
            }
            pending::<()>().await;
        };
        let after = deadline
            .hold(&alarms(), Some(nobody_asked()), pin!(working))
            .await
            .unwrap_err();
        (begun.elapsed(), after)
    }

    #[tokio::test(start_paused = true)]
    async fn progress_extends_the_idle_deadline_and_never_the_total() {
        // Silent from the beginning.
        let silent = given_up(&mut deadline(1000, Some(100)), 1, 0).await;
        assert_eq!(silent, (ms(100), ms(100)));
        // Falls silent after five signs of life.
        let quiet = given_up(&mut deadline(1000, Some(100)), 90, 5).await;
        assert_eq!(quiet, (ms(550), ms(100)));
        // Talks for ever.
        let busy = given_up(&mut deadline(1000, Some(100)), 90, u32::MAX).await;
        assert_eq!(busy, (ms(1000), ms(1000)));
        // Without an idle deadline only the end of all counts.
        let patient = given_up(&mut deadline(1000, None), 90, 5).await;
        assert_eq!(patient, (ms(1000), ms(1000)));
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_deadline_beyond_the_total_is_none() {
        let mut deadline = deadline(100, Some(1000));
        assert!(!deadline.listening(ProgressSink::default()).is_listening());
        assert_eq!(deadline.patience(), ms(100));
        assert_eq!(given_up(&mut deadline, 1, 0).await, (ms(100), ms(100)));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_waited_before_an_attempt_is_not_its_silence() {
        let mut deadline = deadline(1000, Some(100));
        // sleep: the clock is paused; it is the wait for a turn.
        sleep(ms(80)).await;
        deadline.hear();
        assert_eq!(given_up(&mut deadline, 1, 0).await, (ms(100), ms(100)));
        assert_eq!(deadline.if_silent(), Instant::now() + ms(100));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_in_time_is_handed_on() {
        let mut deadline = deadline(1000, Some(100));
        assert_eq!(
            deadline
                .hold(&alarms(), Some(nobody_asked()), pin!(async { 7 }))
                .await,
            Ok(7)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_in_which_a_person_is_asked_counts_for_nothing() {
        for (total, idle) in [(1000, Some(100)), (100, None)] {
            let mut deadline = deadline(total, idle);
            let (asking, asked) = watch::channel(0);
            let begun = Instant::now();
            let person = async {
                // sleep: the clock is paused; it is the time that a person takes.
                sleep(ms(50)).await;
                asking.send_replace(1);
                // sleep: the same.
                sleep(ms(5000)).await;
                asking.send_replace(0);
                pending::<()>().await;
            };
            let call = pin!(pending::<()>());
            let alarms = alarms();
            let after = tokio::select! {
                () = person => unreachable!("it never ends"),
                held = deadline.hold(&alarms, Some(asked), call) => held.unwrap_err(),
            };
            // With an idle limit the answer of the person is a sign of life.
            let rest = if idle.is_some() { 100 } else { 50 };
            assert_eq!(begun.elapsed(), ms(5050 + rest));
            assert_eq!(after, if idle.is_some() { ms(100) } else { ms(5100) });
        }
    }
}
