//! That a run belongs to this process, and how it stops to.

use std::sync::Arc;

use switchboard_domain::{Message, RunState, RunStore, SessionStoreError};

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
}

impl Hold {
    /// `after` is how many messages its session holds.
    pub(super) fn new(runs: Arc<dyn RunStore>, run: String, after: u64) -> Self {
        let of = Held {
            runs: Arc::clone(&runs),
            run,
            after,
            state: RunState::Interrupted,
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

    /// The run waits for somebody.
    pub(super) async fn wait(self) -> Result<(), SessionStoreError> {
        self.release(RunState::Waiting, None, &[]).await
    }

    /// The run is over.
    pub(super) async fn finish(
        self,
        outcome: Option<String>,
        messages: &[Arc<Message>],
    ) -> Result<(), SessionStoreError> {
        self.release(RunState::Finished, outcome, messages).await
    }

    async fn release(
        mut self,
        state: RunState,
        outcome: Option<String>,
        messages: &[Arc<Message>],
    ) -> Result<(), SessionStoreError> {
        let Some(held) = &self.of else {
            return Ok(());
        };
        let (runs, run, after) = (&held.runs, &held.run, held.after);
        let released = runs.release(run, state, outcome, after, messages).await;
        // If not, it is let go of as it is: that may go well where more did not.
        if released.is_ok() {
            self.of = None;
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
        let released = self
            .runs
            .release(&self.run, self.state, None, self.after, &[]);
        match released.await {
            // It may never have begun, or be another process's by now, that took this one for dead.
            Ok(())
            | Err(SessionStoreError::NoSuchRun { .. } | SessionStoreError::RunConflict { .. }) => {}
            Err(error) => {
                let run = self.run;
                tracing::warn!(run, %error, "a run that nobody drives could not be let go of");
            }
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
