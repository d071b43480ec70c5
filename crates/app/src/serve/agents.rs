//! Agents that were made, so that nothing is made again for every request.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use switchboard_orchestration::{Agent, RunOptions};

/// Agents that are kept at most.
const MOST: usize = 64;
/// How long one is kept: recipes are files, and which model is the first that can be asked may change.
const LIFETIME: Duration = Duration::from_mins(1);

/// What makes one agent another than the next, beside its options.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Sort {
    pub(super) model: Option<String>,
    pub(super) recipe: Option<String>,
    pub(super) without_tools: bool,
}

/// An agent, and the options that a wish changes.
#[derive(Clone)]
pub(super) struct Made {
    pub(super) agent: Agent,
    pub(super) options: RunOptions,
    pub(super) has_tools: bool,
}

/// The agents that were made lately.
#[derive(Default)]
pub(super) struct Agents(Mutex<HashMap<Sort, (Instant, Made)>>);

impl Agents {
    pub(super) fn get(&self, sort: &Sort) -> Option<Made> {
        let agents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (made_at, made) = agents.get(sort)?;
        (made_at.elapsed() < LIFETIME).then(|| made.clone())
    }

    pub(super) fn keep(&self, sort: Sort, made: Made) {
        let mut agents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        agents.retain(|_, (made_at, _)| made_at.elapsed() < LIFETIME);
        if agents.len() >= MOST {
            // Names that clients make up are turned away before this; so many different ones are none to keep.
            agents.clear();
        }
        agents.insert(sort, (Instant::now(), made));
    }
}
