//! The time limits of a call: in total, and without progress.

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
use tokio::time::{Instant, sleep_until};

use crate::server_requests::pending::PendingForCall;

/// The time limits of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// From the start to the end, regardless of progress.
    pub(crate) total: Duration,
    /// Without progress. `None` is the same as `total`.
    pub(crate) idle: Option<Duration>,
}

/// Time limits that have started.
#[derive(Debug, Clone)]
pub(crate) struct Deadline {
    started: Instant,
    limits: Limits,
    /// The time of the last activity, in microseconds after the start. `None` without idle limit.
    last_activity: Option<Arc<AtomicU64>>,
}

impl Deadline {
    pub(crate) fn new(started: Instant, limits: Limits) -> Self {
        let Limits { total, idle } = limits;
        let idle = idle.filter(|idle| *idle < total);
        Self {
            started,
            limits: Limits { total, idle },
            last_activity: idle.map(|_| Arc::default()),
        }
    }

    /// Returns the end of the total limit.
    pub(crate) fn end(&self) -> Instant {
        self.started + self.limits.total
    }

    /// Returns the length of the shorter limit, for messages.
    pub(crate) fn idle_limit(&self) -> Duration {
        self.limits.idle.unwrap_or(self.limits.total)
    }

    /// Returns when a wait that starts now times out if there is no activity.
    pub(crate) fn wait_until(&self) -> Instant {
        match self.limits.idle {
            Some(idle) => self.end().min(Instant::now() + idle),
            None => self.end(),
        }
    }

    /// Wraps `sink` so that every progress report counts as activity.
    pub(crate) fn track_progress(&self, sink: ProgressSink) -> ProgressSink {
        let Some(last_activity) = self.last_activity.clone() else {
            return sink;
        };
        let started = self.started;
        ProgressSink::new(move |progress| {
            last_activity.store(microseconds(started.elapsed()), Ordering::Relaxed);
            sink.report(progress);
        })
    }

    /// Waits for `future`. Returns the exceeded limit as the error. The deadline is paused while a
    /// request of the server waits for a person or a model during this call.
    pub(crate) async fn run<F: Future>(
        &mut self,
        mut requests: Option<PendingForCall>,
        mut future: Pin<&mut F>,
    ) -> Result<F::Output, Duration> {
        loop {
            let last_activity = self.last_activity();
            let (due, limit) = match self.limits.idle {
                Some(idle) if last_activity + idle < self.end() => (last_activity + idle, idle),
                _ => (self.end(), self.limits.total),
            };
            tokio::select! {
                biased;
                output = &mut future => return Ok(output),
                () = until_pending(&mut requests, true) => {}
                () = sleep_until(due) => {
                    if self.last_activity() <= last_activity || due == self.end() {
                        return Err(limit);
                    }
                    continue;
                }
            }
            let paused_at = Instant::now();
            tokio::select! {
                biased;
                output = &mut future => return Ok(output),
                () = until_pending(&mut requests, false) => {}
            }
            self.limits.total += paused_at.elapsed();
            self.record_activity();
        }
    }

    /// Restarts the idle limit: after activity, and after a wait that is not the server's fault.
    pub(crate) fn record_activity(&self) {
        if let Some(last_activity) = &self.last_activity {
            last_activity.store(microseconds(self.started.elapsed()), Ordering::Relaxed);
        }
    }

    fn last_activity(&self) -> Instant {
        let last_activity = self.last_activity.as_ref();
        let after = last_activity.map_or(0, |at| at.load(Ordering::Relaxed));
        self.started + Duration::from_micros(after)
    }
}

/// Waits until a request of the server is pending, or until none is.
async fn until_pending(requests: &mut Option<PendingForCall>, is_pending: bool) {
    match requests {
        Some(requests) => requests.until(is_pending).await,
        None => pending().await,
    }
}

fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use switchboard_domain::ToolProgress;
    use tokio::{sync::watch, time::sleep};

    use super::*;
    use crate::{
        calls::context::CallContext,
        server_requests::{
            context::RequestContext,
            pending::{PendingRequests, register},
        },
    };

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

    /// Runs a call that reports progress `times` times every `every` milliseconds and never ends.
    /// Returns when it timed out and the exceeded limit.
    async fn time_out(deadline: &mut Deadline, every: u64, times: u32) -> (Duration, Duration) {
        let started = Instant::now();
        let sink = deadline.track_progress(ProgressSink::default());
        let work = async {
            for _ in 0..times {
                // sleep: the clock is paused; the duration of the work.
                sleep(ms(every)).await;
                sink.report(progress());
            }
            pending::<()>().await;
        };
        let limit = deadline.run(None, pin!(work)).await.unwrap_err();
        (started.elapsed(), limit)
    }

    #[tokio::test(start_paused = true)]
    async fn progress_extends_the_idle_limit_but_not_the_total() {
        let silent = time_out(&mut deadline(1000, Some(100)), 1, 0).await;
        assert_eq!(silent, (ms(100), ms(100)));
        let silent_later = time_out(&mut deadline(1000, Some(100)), 90, 5).await;
        assert_eq!(silent_later, (ms(550), ms(100)));
        let always_active = time_out(&mut deadline(1000, Some(100)), 90, u32::MAX).await;
        assert_eq!(always_active, (ms(1000), ms(1000)));
        let without_idle_limit = time_out(&mut deadline(1000, None), 90, 5).await;
        assert_eq!(without_idle_limit, (ms(1000), ms(1000)));
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_limit_above_the_total_is_ignored() {
        let mut deadline = deadline(100, Some(1000));
        let sink = deadline.track_progress(ProgressSink::default());
        assert!(!sink.is_listening());
        assert_eq!(deadline.idle_limit(), ms(100));
        assert_eq!(time_out(&mut deadline, 1, 0).await, (ms(100), ms(100)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_before_the_attempt_does_not_count_as_idle() {
        let mut deadline = deadline(1000, Some(100));
        // sleep: the clock is paused; the wait for a permit.
        sleep(ms(80)).await;
        deadline.record_activity();
        assert_eq!(time_out(&mut deadline, 1, 0).await, (ms(100), ms(100)));
        assert_eq!(deadline.wait_until(), Instant::now() + ms(100));
    }

    #[tokio::test(start_paused = true)]
    async fn an_output_in_time_is_returned() {
        let mut deadline = deadline(1000, Some(100));
        assert_eq!(deadline.run(None, pin!(async { 7 })).await, Ok(7));
    }

    /// Runs a call that never ends. A request of the server is pending from 50 ms to 5,050 ms.
    /// Returns when the call timed out and the exceeded limit.
    async fn time_out_with_request(
        deadline: &mut Deadline,
        call: &Arc<CallContext>,
        asked_call: &Arc<CallContext>,
    ) -> (Duration, Duration) {
        let requests = watch::Sender::<PendingRequests>::default();
        let started = Instant::now();
        let person = async {
            // sleep: the clock is paused; the time before the request.
            sleep(ms(50)).await;
            let guard = register(&requests, &RequestContext::of_call(asked_call)).unwrap();
            // sleep: the clock is paused; the time that the person takes.
            sleep(ms(5000)).await;
            drop(guard);
            pending::<()>().await;
        };
        let for_call = PendingForCall::new(requests.subscribe(), call);
        let work = pin!(pending::<()>());
        let limit = tokio::select! {
            () = person => unreachable!("it never ends"),
            output = deadline.run(Some(for_call), work) => output.unwrap_err(),
        };
        (started.elapsed(), limit)
    }

    #[tokio::test(start_paused = true)]
    async fn the_deadline_is_paused_while_a_person_answers() {
        let call = Arc::default();
        for (total, idle) in [(1000, Some(100)), (100, None)] {
            let mut deadline = deadline(total, idle);
            // With an idle limit the answer of the person counts as activity.
            let rest = if idle.is_some() { 100 } else { 50 };
            let limit = if idle.is_some() { ms(100) } else { ms(5100) };
            let timed_out = time_out_with_request(&mut deadline, &call, &call).await;
            assert_eq!(timed_out, (ms(5050 + rest), limit));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_of_another_call_does_not_pause_the_deadline() {
        let (call, other) = (Arc::default(), Arc::default());
        let timed_out = time_out_with_request(&mut deadline(100, None), &call, &other).await;
        assert_eq!(timed_out, (ms(100), ms(100)));
    }
}
