//! The events of a run with or without a session.

use std::{collections::VecDeque, sync::Arc};

use futures_util::StreamExt as _;
use switchboard_domain::SessionId;
use switchboard_orchestration::{
    CancelHandle, RunEvent, RunStream,
    persistence::{PersistedRun, PersistedRunEnd},
};

use crate::terminal::Screen;

/// A run in progress. Events are held back while a question is on the screen, because output would
/// be mixed into it.
pub(crate) struct Running {
    run: Run,
    screen: Screen,
    /// Events that occurred during a question.
    held: VecDeque<Arc<RunEvent>>,
    is_over: bool,
}

enum Run {
    /// A run without storage.
    Ephemeral(Box<RunStream>),
    /// A stored run of a session.
    Persisted(Box<PersistedRun>),
}

impl Run {
    async fn next(&mut self) -> Option<Arc<RunEvent>> {
        match self {
            Self::Ephemeral(run) => run.next().await.map(Arc::new),
            Self::Persisted(run) => run.next().await.map(|stored| stored.event),
        }
    }
}

impl Running {
    /// Wraps a run without storage.
    pub(crate) fn ephemeral(run: RunStream, screen: Screen) -> Self {
        Self::new(Run::Ephemeral(Box::new(run)), screen)
    }

    /// Wraps a stored run of a session.
    pub(crate) fn persisted(run: PersistedRun, screen: Screen) -> Self {
        Self::new(Run::Persisted(Box::new(run)), screen)
    }

    fn new(run: Run, screen: Screen) -> Self {
        Self {
            run,
            screen,
            held: VecDeque::new(),
            is_over: false,
        }
    }

    /// Returns the next event, or `None` when the run has ended. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<Arc<RunEvent>> {
        loop {
            if !self.screen.is_asking() {
                match self.held.pop_front() {
                    Some(event) => return Some(event),
                    None if self.is_over => return None,
                    None => {}
                }
            }
            tokio::select! {
                event = self.run.next(), if !self.is_over => match event {
                    Some(event) => self.held.push_back(event),
                    None => self.is_over = true,
                },
                () = self.screen.no_question(), if !self.held.is_empty() || self.is_over => {}
            }
        }
    }

    pub(crate) fn cancel_handle(&self) -> CancelHandle {
        match &self.run {
            Run::Ephemeral(run) => run.cancel_handle(),
            Run::Persisted(run) => run.cancel_handle(),
        }
    }

    pub(crate) fn session(&self) -> Option<&SessionId> {
        match &self.run {
            Run::Ephemeral(_) => None,
            Run::Persisted(run) => Some(run.session()),
        }
    }

    /// Returns how a stored run ended, after its last event.
    pub(crate) fn end(&self) -> Option<&PersistedRunEnd> {
        match &self.run {
            Run::Ephemeral(_) => None,
            Run::Persisted(run) => run.end(),
        }
    }
}
