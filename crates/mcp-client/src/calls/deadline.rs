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

use crate::{
    calls::{alarms::Alarms, context::Caller},
    server_requests::within::{Asked, Asking},
};

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
    /// How long it stood still for questions that may be those of others.
    spared: Duration,
}

/// The questions within a call.
pub(crate) struct Questions {
    /// All of its server.
    pub(crate) asking: watch::Receiver<Asking>,
    pub(crate) caller: Arc<Caller>,
    /// How long the deadline stands still, in all, for questions that may be those of others: as long as one
    /// answer may take.
    pub(crate) patience: Duration,
}

impl Deadline {
    pub(crate) fn new(begun: Instant, limits: Limits) -> Self {
        let Limits { total, idle } = limits;
        let idle = idle.filter(|idle| *idle < total);
        Self {
            begun,
            limits: Limits { total, idle },
            heard: idle.map(|_| Arc::default()),
            spared: Duration::ZERO,
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

    /// Waits for `future`; the error is how long it was waited for in vain. While a person is asked something
    /// within this call, the time that takes counts for nothing; of questions that may as well be those of
    /// others, only as much as one answer may take.
    pub(crate) async fn hold<F: Future>(
        &mut self,
        alarms: &Alarms,
        mut questions: Option<Questions>,
        mut future: Pin<&mut F>,
    ) -> Result<F::Output, Duration> {
        loop {
            let heard = self.heard();
            let (due, limit) = match self.limits.idle {
                Some(idle) if heard + idle < self.until() => (heard + idle, idle),
                _ => (self.until(), self.limits.total),
            };
            let spared = self.spared;
            let asked = tokio::select! {
                biased;
                output = &mut future => return Ok(output),
                asked = changed(&mut questions, Asked::Nothing, spared) => asked,
                () = alarms.at(due) => {
                    if self.heard() <= heard || due == self.until() {
                        return Err(limit);
                    }
                    continue;
                }
            };
            let begun = Instant::now();
            // It can wait for that no longer.
            let left = questions.as_ref().map_or(Duration::ZERO, |questions| {
                questions.patience.saturating_sub(spared)
            });
            tokio::select! {
                biased;
                output = &mut future => return Ok(output),
                _ = changed(&mut questions, asked, spared) => {}
                () = alarms.at(begun + left), if asked == Asked::Perhaps => {}
            }
            let stood = begun.elapsed();
            if asked == Asked::Perhaps {
                self.spared += stood;
            }
            self.limits.total += stood;
            self.hear();
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

/// Waits until it is something else that is asked within the call; for ever, if it stays as it is.
async fn changed(questions: &mut Option<Questions>, before: Asked, spared: Duration) -> Asked {
    let Some(Questions {
        asking,
        caller,
        patience,
    }) = questions
    else {
        return pending().await;
    };
    let mut now = before;
    let is_changed = |asking: &Asking| {
        now = match asking.within(caller) {
            Asked::Perhaps if spared >= *patience => Asked::Nothing,
            asked => asked,
        };
        now != before
    };
    let said = asking.wait_for(is_changed).await.is_ok();
    if !said {
        pending::<()>().await;
    }
    now
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

    fn nobody_asked() -> Questions {
        questions(&watch::Sender::default(), &Arc::default())
    }

    /// A person takes two seconds at most.
    fn questions(asking: &watch::Sender<Asking>, caller: &Arc<Caller>) -> Questions {
        Questions {
            asking: asking.subscribe(),
            caller: Arc::clone(caller),
            patience: ms(2000),
        }
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

    /// When a call of this limit is given up in which the server asks 50 milliseconds after its beginning, within
    /// `callers`, and for five seconds.
    async fn given_up_while_asked(
        deadline: &mut Deadline,
        caller: &Arc<Caller>,
        callers: &[&Arc<Caller>],
    ) -> (Duration, Duration) {
        let asking = watch::Sender::default();
        let begun = Instant::now();
        let person = async {
            // sleep: the clock is paused; it is the time before the question.
            sleep(ms(50)).await;
            let asked = Asking::test_question(&asking, callers);
            // sleep: the same; it is the time that a person takes.
            sleep(ms(5000)).await;
            drop(asked);
            pending::<()>().await;
        };
        let (alarms, call) = (alarms(), pin!(pending::<()>()));
        let questions = Some(questions(&asking, caller));
        let after = tokio::select! {
            () = person => unreachable!("it never ends"),
            held = deadline.hold(&alarms, questions, call) => held.unwrap_err(),
        };
        (begun.elapsed(), after)
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_in_which_a_person_is_asked_counts_for_nothing() {
        let caller = Arc::default();
        for (total, idle) in [(1000, Some(100)), (100, None)] {
            let mut deadline = deadline(total, idle);
            // With an idle limit the answer of the person is a sign of life.
            let rest = if idle.is_some() { 100 } else { 50 };
            let after = if idle.is_some() { ms(100) } else { ms(5100) };
            let given_up = given_up_while_asked(&mut deadline, &caller, &[&caller]).await;
            assert_eq!(given_up, (ms(5050 + rest), after));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_others_are_asked_is_no_excuse() {
        let (caller, other) = (Arc::default(), Arc::default());
        let mut of_one = deadline(100, None);
        let given_up = given_up_while_asked(&mut of_one, &caller, &[&other]).await;
        assert_eq!(given_up, (ms(100), ms(100)));
        // Where it may be either of them, as long as one answer takes, and once.
        let mut of_either = deadline(100, None);
        for (begun, total) in [(2100, 2100), (0, 2100)] {
            let given_up = given_up_while_asked(&mut of_either, &caller, &[&caller, &other]).await;
            assert_eq!(given_up, (ms(begun), ms(total)));
        }
    }
}
