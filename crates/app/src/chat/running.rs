//! A run that is shown: one that is kept, or one that is not.

use std::{collections::VecDeque, sync::Arc};

use futures_util::StreamExt as _;
use switchboard_domain::SessionId;
use switchboard_orchestration::{
    CancelHandle, RunEvent, RunStream,
    persistence::{KeptEnd, KeptRun},
};

use crate::terminal::Screen;

/// A run as it happens. While somebody is asked something, nothing is told of it: what would be shown would be
/// written into the question.
pub(crate) struct Running {
    run: Run,
    screen: Screen,
    /// What happened while somebody was asked.
    held: VecDeque<Arc<RunEvent>>,
    is_over: bool,
}

enum Run {
    /// Nothing of it stays.
    Loose(Box<RunStream>),
    /// It belongs to a session.
    Kept(Box<KeptRun>),
}

impl Run {
    async fn next(&mut self) -> Option<Arc<RunEvent>> {
        match self {
            Self::Loose(run) => run.next().await.map(Arc::new),
            Self::Kept(run) => run.next().await.map(|kept| kept.event),
        }
    }
}

impl Running {
    /// A run of which nothing stays.
    pub(crate) fn loose(run: RunStream, screen: Screen) -> Self {
        Self::new(Run::Loose(Box::new(run)), screen)
    }

    /// A run of a session.
    pub(crate) fn kept(run: KeptRun, screen: Screen) -> Self {
        Self::new(Run::Kept(Box::new(run)), screen)
    }

    fn new(run: Run, screen: Screen) -> Self {
        Self {
            run,
            screen,
            held: VecDeque::new(),
            is_over: false,
        }
    }

    /// The next event; `None` when the run is over or was stopped. May be dropped and called again.
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
                () = self.screen.asks_nothing(), if !self.held.is_empty() || self.is_over => {}
            }
        }
    }

    /// Stops it, with a proper end.
    pub(crate) fn cancel_handle(&self) -> CancelHandle {
        match &self.run {
            Run::Loose(run) => run.cancel_handle(),
            Run::Kept(run) => run.cancel_handle(),
        }
    }

    /// The session that it belongs to.
    pub(crate) fn session(&self) -> Option<&SessionId> {
        match &self.run {
            Run::Loose(_) => None,
            Run::Kept(run) => Some(run.session()),
        }
    }

    /// How it ended, once it gives no more events, if it is kept.
    pub(crate) fn end(&self) -> Option<&KeptEnd> {
        match &self.run {
            Run::Loose(_) => None,
            Run::Kept(run) => run.end(),
        }
    }
}
