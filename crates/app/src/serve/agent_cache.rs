//! A cache of agents for requests with the same settings.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use switchboard_orchestration::{Agent, RunOptions};

const MAX_AGENTS: usize = 64;
/// Lifetime of a cached agent. It is short, because recipe files and the automatically chosen model
/// may change.
const LIFETIME: Duration = Duration::from_mins(1);

/// The settings that select an agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct AgentKey {
    pub(super) model: Option<String>,
    pub(super) recipe: Option<String>,
    pub(super) without_tools: bool,
}

/// An agent with its default options.
#[derive(Clone)]
pub(super) struct CachedAgent {
    pub(super) agent: Agent,
    pub(super) options: RunOptions,
    pub(super) has_tools: bool,
}

/// Cached agents and their creation times, by the settings that select them.
#[derive(Default)]
pub(super) struct AgentCache(Mutex<HashMap<AgentKey, (Instant, CachedAgent)>>);

impl AgentCache {
    pub(super) fn find_agent(&self, key: &AgentKey) -> Option<CachedAgent> {
        let agents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (created_at, cached) = agents.get(key)?;
        (created_at.elapsed() < LIFETIME).then(|| cached.clone())
    }

    pub(super) fn store_agent(&self, key: AgentKey, cached: CachedAgent) {
        let mut agents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        agents.retain(|_, (created_at, _)| created_at.elapsed() < LIFETIME);
        if agents.len() >= MAX_AGENTS {
            // A full cache is rare, because unknown names are rejected earlier.
            agents.clear();
        }
        agents.insert(key, (Instant::now(), cached));
    }
}
