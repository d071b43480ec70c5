//! The two time limits of a call: its total time, and its time without progress (idle time).

use std::{
    future::pending,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use switchboard_domain::ProgressSink;
use tokio::time::{Instant, sleep_until};

use crate::{primitives::sync::lock_mutex, server_requests::pending_requests::PendingCallRequests};

/// Time limits of one call, from the deadline that its caller sets and from the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallTimeLimits {
    /// Maximum time from the start to the end of the call, regardless of progress.
    pub(crate) total: Duration,
    /// Maximum time since the last progress report. With `None`, only `total` applies.
    pub(crate) idle: Option<Duration>,
}

/// Deadline of a running call. Progress reports move the idle limit, and the total limit grows
/// while a person or a model answers a request from the server.
#[derive(Debug, Clone)]
pub(crate) struct Deadline {
    started: Instant,
    limits: CallTimeLimits,
    /// Time of the last activity of the call, such as a progress report. `None` if the time without
    /// progress is not limited.
    last_activity: Option<Arc<Mutex<Instant>>>,
}

impl Deadline {
    pub(crate) fn new(started: Instant, limits: CallTimeLimits) -> Self {
        let CallTimeLimits { total, idle } = limits;
        let idle = idle.filter(|idle| *idle < total);
        Self {
            started,
            limits: CallTimeLimits { total, idle },
            last_activity: idle.map(|_| Arc::new(Mutex::new(started))),
        }
    }

    /// Returns the time at which the call reaches its total limit.
    pub(crate) fn end_time(&self) -> Instant {
        self.started + self.limits.total
    }

    /// Returns the time limit that error messages state: the maximum time without progress, or else
    /// the total time limit of the call.
    pub(crate) fn idle_limit(&self) -> Duration {
        self.limits.idle.unwrap_or(self.limits.total)
    }

    /// Returns the end of a wait that starts now: the end of the idle limit or of the total limit,
    /// whichever is earlier. Progress reports during the wait do not move this end.
    pub(crate) fn wait_end_time(&self) -> Instant {
        match self.limits.idle {
            Some(idle) => self.end_time().min(Instant::now() + idle),
            None => self.end_time(),
        }
    }

    /// Wraps a receiver of progress reports, so that every report restarts the idle limit (the
    /// maximum time without progress).
    pub(crate) fn track_progress(&self, sink: ProgressSink) -> ProgressSink {
        if self.last_activity.is_none() {
            return sink;
        }
        let deadline = self.clone();
        ProgressSink::new(move |progress| {
            deadline.record_activity();
            sink.report_progress(progress);
        })
    }

    /// Runs `future` until the deadline. Returns the exceeded time limit as the error. The deadline
    /// pauses while a request from the server waits for a person or a model.
    pub(crate) async fn run_until_deadline<F: Future>(
        &mut self,
        mut requests: Option<PendingCallRequests>,
        mut future: Pin<&mut F>,
    ) -> Result<F::Output, Duration> {
        loop {
            let last_activity = self.last_activity();
            let (due, limit) = match self.limits.idle {
                Some(idle) if last_activity + idle < self.end_time() => {
                    (last_activity + idle, idle)
                }
                _ => (self.end_time(), self.limits.total),
            };
            tokio::select! {
                biased;
                output = &mut future => return Ok(output),
                () = wait_for_pending_requests(&mut requests, true) => {}
                () = sleep_until(due) => {
                    if self.last_activity() <= last_activity || due == self.end_time() {
                        return Err(limit);
                    }
                    continue;
                }
            }
            let paused_at = Instant::now();
            tokio::select! {
                biased;
                output = &mut future => return Ok(output),
                () = wait_for_pending_requests(&mut requests, false) => {}
            }
            self.limits.total += paused_at.elapsed();
            self.record_activity();
        }
    }

    /// Restarts the idle limit (the maximum time without progress). Callers use it when the server
    /// has reported progress or the state of a task. They also use it after a wait that the server
    /// did not cause, for example for a free call permit or for an answer of a person.
    pub(crate) fn record_activity(&self) {
        if let Some(last_activity) = &self.last_activity {
            *lock_mutex(last_activity) = Instant::now();
        }
    }

    fn last_activity(&self) -> Instant {
        let last_activity = self.last_activity.as_deref();
        last_activity.map_or(self.started, |moment| *lock_mutex(moment))
    }
}

/// Waits until a server request that may belong to the call is pending. If `is_pending` is `false`,
/// waits until no such request is pending. Never returns if `requests` is `None`.
async fn wait_for_pending_requests(requests: &mut Option<PendingCallRequests>, is_pending: bool) {
    match requests {
        Some(requests) => requests.wait_for_pending_requests(is_pending).await,
        None => pending().await,
    }
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
        let limits = CallTimeLimits {
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
                sink.report_progress(progress());
            }
            pending::<()>().await;
        };
        let limit = deadline
            .run_until_deadline(None, pin!(work))
            .await
            .unwrap_err();
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
}
