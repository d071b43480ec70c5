//! One timer for all calls of a host.
//!
//! A timer that is due before all others of its runtime wakes the runtime when it is made, with a system call and
//! another turn of its loop: for each call of a tool, which mostly is answered within milliseconds and whose
//! deadline nobody ever comes to. Here the one timer stands at a deadline of an earlier call, and most calls only
//! write themselves into a list.

use std::{
    collections::BTreeMap,
    future::Future,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use tokio::{
    runtime::Handle,
    sync::Notify,
    time::{Instant, sleep_until},
};

/// Wakes whoever waits for a point in time. Clones share the timer, which ends with the last of them.
#[derive(Clone)]
pub(crate) struct Alarms {
    shared: Arc<Shared>,
    // Behind `shared`: it is dropped first.
    _last: Arc<Last>,
}

struct Shared {
    list: Mutex<List>,
    /// The timer stands too late, or nobody is left.
    earlier: Notify,
}

#[derive(Default)]
struct List {
    waiting: BTreeMap<(Instant, u64), Waker>,
    count: u64,
    /// When the timer looks at the list next by itself.
    stands_at: Option<Instant>,
    ended: bool,
}

/// Ends the timer.
struct Last {
    shared: Arc<Shared>,
}

impl Alarms {
    /// Starts the timer on this runtime.
    pub(crate) fn start(runtime: &Handle) -> Self {
        let shared = Arc::new(Shared {
            list: Mutex::default(),
            earlier: Notify::new(),
        });
        runtime.spawn(keep(Arc::clone(&shared)));
        let last = Arc::new(Last {
            shared: Arc::clone(&shared),
        });
        Self {
            shared,
            _last: last,
        }
    }

    /// Ready at that time, and not before.
    pub(crate) fn at(&self, due: Instant) -> Alarm<'_> {
        Alarm {
            shared: &self.shared,
            due,
            number: None,
        }
    }
}

impl Drop for Last {
    fn drop(&mut self) {
        self.shared.list().ended = true;
        self.shared.earlier.notify_one();
    }
}

impl Shared {
    fn list(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The timer.
async fn keep(shared: Arc<Shared>) {
    loop {
        let (due, next) = {
            let mut list = shared.list();
            if list.ended {
                return;
            }
            // Those whose time is up, also those of this very moment.
            let later = list.waiting.split_off(&(Instant::now(), u64::MAX));
            let due = std::mem::replace(&mut list.waiting, later);
            let next = list.waiting.keys().next().map(|(at, _)| *at);
            list.stands_at = next;
            (due, next)
        };
        for waker in due.into_values() {
            waker.wake();
        }
        let earlier = pin!(shared.earlier.notified());
        match next {
            None => earlier.await,
            Some(next) => {
                tokio::select! {
                    () = earlier => {}
                    () = sleep_until(next) => {}
                }
            }
        }
    }
}

/// A point in time that is waited for. From its first poll on it is in the list, until it is dropped.
pub(crate) struct Alarm<'a> {
    shared: &'a Shared,
    due: Instant,
    number: Option<u64>,
}

impl Future for Alarm<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let due = self.due;
        let mut list = self.shared.list();
        if let Some(number) = self.number {
            return match list.waiting.get_mut(&(due, number)) {
                // The timer took it off.
                None => Poll::Ready(()),
                Some(waker) => {
                    waker.clone_from(context.waker());
                    Poll::Pending
                }
            };
        }
        let number = list.count;
        list.count += 1;
        list.waiting.insert((due, number), context.waker().clone());
        let is_late = list.stands_at.is_none_or(|stands_at| due < stands_at);
        drop(list);
        self.number = Some(number);
        if is_late {
            self.shared.earlier.notify_one();
        }
        Poll::Pending
    }
}

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let waker = self.shared.list().waiting.remove(&(self.due, number));
            // Not under the lock.
            drop(waker);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::{FutureExt, future::join_all};

    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[tokio::test(start_paused = true)]
    async fn each_is_woken_at_its_own_time_in_whatever_order_they_came() {
        let alarms = Alarms::start(&Handle::current());
        let begun = Instant::now();
        let waited = [700, 100, 900, 100, 0, 300].map(|after| {
            let alarm = alarms.at(begun + ms(after));
            async move {
                alarm.await;
                (after, begun.elapsed())
            }
        });
        for (after, elapsed) in join_all(waited).await {
            assert!(elapsed >= ms(after), "{after}: {elapsed:?}");
            assert!(elapsed <= ms(after + 1), "{after}: {elapsed:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_timer_is_set_back_only_for_an_earlier_one() {
        let alarms = Alarms::start(&Handle::current());
        let stands_at = || alarms.shared.list().stands_at;
        let begun = Instant::now();
        let mut late = pin!(alarms.at(begun + ms(500)));
        assert!(late.as_mut().now_or_never().is_none());
        tokio::task::yield_now().await;
        assert_eq!(stands_at(), Some(begun + ms(500)));
        // A later one leaves it where it is, and so does the end of the one that it stands for.
        {
            let mut later = pin!(alarms.at(begun + ms(800)));
            assert!(later.as_mut().now_or_never().is_none());
            tokio::task::yield_now().await;
            assert_eq!(stands_at(), Some(begun + ms(500)));
        }
        let mut early = pin!(alarms.at(begun + ms(50)));
        assert!(early.as_mut().now_or_never().is_none());
        tokio::task::yield_now().await;
        assert_eq!(stands_at(), Some(begun + ms(50)));
        early.await;
        assert_eq!(begun.elapsed(), ms(50));
        late.await;
        assert_eq!(begun.elapsed(), ms(500));
        assert!(alarms.shared.list().waiting.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_given_up_is_forgotten() {
        let alarms = Alarms::start(&Handle::current());
        let begun = Instant::now();
        {
            let mut alarm = pin!(alarms.at(begun + ms(10)));
            assert!(alarm.as_mut().now_or_never().is_none());
            assert_eq!(alarms.shared.list().waiting.len(), 1);
        }
        assert!(alarms.shared.list().waiting.is_empty());
    }

    #[tokio::test]
    async fn the_timer_ends_with_the_last_who_could_wait() {
        let alarms = Alarms::start(&Handle::current());
        let timer = Arc::downgrade(&alarms.shared);
        let other = alarms.clone();
        drop(alarms);
        assert!(other.at(Instant::now()).now_or_never().is_none());
        drop(other);
        while timer.strong_count() > 0 {
            tokio::task::yield_now().await;
        }
    }
}
