//! That a run belongs to this process, and how it stops to.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use futures_core::future::BoxFuture;
use switchboard_domain::{Message, RunState, RunStore, SessionStoreError, StoredEvent};

/// The runs that this process has, had or is about to have: a store knows whose process a run is, and not which task
/// of it has the run.
static TURNS: Mutex<Option<HashMap<Place, Weak<Turn>>>> = Mutex::new(None);

/// A run: the address of the store that it is in, which stays there as long as the turn does, and its id.
type Place = (usize, String);

/// The turn to take a run up or to let go of it, within this process.
pub(super) struct Turn {
    /// Held while that is done.
    doing: tokio::sync::Mutex<()>,
    /// Its holds so far. The last of them is the one that counts.
    holds: Mutex<Holds>,
}

#[derive(Default)]
struct Holds {
    count: u64,
    is_held: bool,
}

impl Turn {
    pub(super) fn of(runs: &Arc<dyn RunStore>, run: &str) -> Arc<Self> {
        let mut turns = lock(&TURNS);
        let turns = turns.get_or_insert_default();
        turns.retain(|_, turn| turn.strong_count() > 0);
        let place = (Arc::as_ptr(runs).cast::<()>().addr(), run.to_owned());
        if let Some(turn) = turns.get(&place).and_then(Weak::upgrade) {
            return turn;
        }
        let turn = Arc::new(Self {
            doing: tokio::sync::Mutex::default(),
            holds: Mutex::default(),
        });
        turns.insert(place, Arc::downgrade(&turn));
        turn
    }

    /// Waits until nobody else of this process takes the run up or lets go of it.
    pub(super) async fn begin(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.doing.lock().await
    }

    /// Whether somebody of this process has the run.
    pub(super) fn is_held(&self) -> bool {
        lock(&self.holds).is_held
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A run of this process. Dropped, it lets go of the run, so that somebody can go on with it.
pub(super) struct Hold {
    runs: Arc<dyn RunStore>,
    /// `None` once it is another's, or over.
    of: Option<Held>,
}

struct Held {
    runs: Arc<dyn RunStore>,
    run: String,
    /// How many messages its session holds; while a run is not over, nobody adds to them.
    after: u64,
    /// What it is when it is let go of.
    state: RunState,
    turn: Arc<Turn>,
    /// The how manieth hold of the run this is.
    number: u64,
}

impl Hold {
    /// `after` is how many messages its session holds.
    pub(super) fn new(runs: Arc<dyn RunStore>, run: String, after: u64) -> Self {
        let turn = Turn::of(&runs, &run);
        let number = {
            let mut holds = lock(&turn.holds);
            holds.count += 1;
            holds.is_held = true;
            holds.count
        };
        let of = Held {
            runs: Arc::clone(&runs),
            run,
            after,
            state: RunState::Interrupted,
            turn,
            number,
        };
        Self { runs, of: Some(of) }
    }

    /// The store that it is in.
    pub(super) fn runs(&self) -> Arc<dyn RunStore> {
        Arc::clone(&self.runs)
    }

    /// Let go of untouched, it is what it was.
    pub(super) fn falls_back_to(&mut self, state: RunState) {
        if let Some(held) = &mut self.of {
            held.state = state;
        }
    }

    /// It is another's, or there is none.
    pub(super) fn forget(mut self) {
        self.of = None;
    }

    /// The run waits for somebody; these are its last events.
    pub(super) async fn wait(self, events: &[StoredEvent]) -> Result<(), SessionStoreError> {
        self.release(events, RunState::Waiting, None, &[]).await
    }

    /// The run is over; these are its last events.
    pub(super) async fn finish(
        self,
        events: &[StoredEvent],
        outcome: Option<String>,
        messages: &[Arc<Message>],
    ) -> Result<(), SessionStoreError> {
        self.release(events, RunState::Finished, outcome, messages)
            .await
    }

    async fn release(
        mut self,
        events: &[StoredEvent],
        state: RunState,
        outcome: Option<String>,
        messages: &[Arc<Message>],
    ) -> Result<(), SessionStoreError> {
        let Some(held) = &self.of else {
            return Ok(());
        };
        let (runs, run, after) = (&held.runs, &held.run, held.after);
        let released = until_available(|| {
            runs.release_with(run, events, state, outcome.clone(), after, messages)
        });
        let released = released.await;
        let held = self.of.take();
        if released.is_err()
            && let Some(held) = held
        {
            // It is let go of as it is, which may go well where more did not, and before anybody hears of the failure:
            // whoever goes on with the run then finds it free.
            held.let_go().await;
        }
        released
    }

    /// Lets go of it now, as far as that goes.
    pub(super) async fn let_go(mut self) {
        if let Some(held) = self.of.take() {
            held.let_go().await;
        }
    }
}

impl Held {
    async fn let_go(self) {
        let turn = Arc::clone(&self.turn);
        let _turn = turn.begin().await;
        if lock(&turn.holds).count != self.number {
            // It was released, although that could not be heard, and another task of this process has taken it since.
            return;
        }
        let released = until_available(|| {
            self.runs
                .release(&self.run, self.state, None, self.after, &[])
        });
        match released.await {
            // It may never have begun, or be another process's by now, that took this one for dead.
            Ok(())
            | Err(SessionStoreError::NoSuchRun { .. } | SessionStoreError::RunConflict { .. }) => {}
            Err(error) => {
                let run = &self.run;
                tracing::warn!(run, %error, "a run that nobody drives could not be let go of");
            }
        }
    }
}

/// How often a run that is under way tries a write. Each try of SQLite waits for three seconds.
const TRIES: u32 = 6;

/// Repeats a write of a run that is under way while the store is unavailable. The run has done
/// work that would be lost, so it waits longer than the request of a client.
pub(super) async fn until_available<'w>(
    write: impl Fn() -> BoxFuture<'w, Result<(), SessionStoreError>>,
) -> Result<(), SessionStoreError> {
    for _ in 1..TRIES {
        match write().await {
            Err(SessionStoreError::Unavailable { .. }) => {}
            done => return done,
        }
    }
    write().await
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut holds = lock(&self.turn.holds);
        if holds.count == self.number {
            holds.is_held = false;
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let Some(held) = self.of.take() else { return };
        // Outside a runtime nobody is there to do it: the run is this process's as long as it lives.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(held.let_go());
        }
    }
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
