//! A cache of agents, which requests with the same settings share.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use switchboard_orchestration::{Agent, RunOptions};

const MAX_AGENTS: usize = 64;
/// Time for which a cached agent is used. It is short, because recipe files and the automatically
/// chosen model may change.
const LIFETIME: Duration = Duration::from_mins(1);

/// The settings of a request that determine which agent it gets.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct AgentKey {
    pub(super) model: Option<String>,
    pub(super) recipe: Option<String>,
    pub(super) without_tools: bool,
}

/// A cached agent with its default run options.
#[derive(Clone)]
pub(super) struct CachedAgent {
    pub(super) agent: Agent,
    pub(super) options: RunOptions,
    pub(super) has_tools: bool,
}

/// Cached agents with their creation times, by the settings of the requests that they serve.
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
            // The cache is full, so all agents are removed. This is rare, because requests with an
            // unknown model or recipe are rejected.
            agents.clear();
        }
        agents.insert(key, (Instant::now(), cached));
    }
}
