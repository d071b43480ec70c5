//! Limits of tool calls per minute, which all runs of a principal share.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use switchboard_domain::{
    CallRateCounter, CallRateLimits, Principal, ReachedCallRate, SessionStoreError,
};

const MINUTE_US: u64 = 60_000_000;

/// A counter of tool calls that several agents share. By default, it is [`InMemoryCallRates`].
#[derive(Clone, derive_more::Debug)]
#[debug("SharedCallRates")]
pub struct SharedCallRates(pub Arc<dyn CallRateCounter>);

impl Default for SharedCallRates {
    fn default() -> Self {
        Self(Arc::new(InMemoryCallRates::default()))
    }
}

/// A counter of tool calls in this process.
#[derive(Debug, Default)]
pub struct InMemoryCallRates {
    /// Calls within the last minute: their tools, and their times in microseconds since 1970.
    calls: Mutex<HashMap<Principal, Vec<(String, i64)>>>,
}

#[async_trait]
impl CallRateCounter for InMemoryCallRates {
    async fn count_call(
        &self,
        principal: &Principal,
        tool: &str,
        limits: CallRateLimits,
        now_us: i64,
    ) -> Result<Option<ReachedCallRate>, SessionStoreError> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.retain(|_, calls| {
            // Times that are a minute or more in the future are removed too. Such times exist if
            // the system clock was set back.
            calls.retain(|(_, at)| now_us.abs_diff(*at) < MINUTE_US);
            !calls.is_empty()
        });
        let own = calls.entry(principal.clone()).or_default();
        let same = own.iter().filter(|(name, _)| name == tool).count();
        let reached = limits.find_reached_limit(own.len() as u64, same as u64);
        if reached.is_none() {
            own.push((tool.to_owned(), now_us));
        }
        Ok(reached)
    }
}
