//! The port for limits of tool calls per minute.

use async_trait::async_trait;

use super::{Principal, SessionStoreError};

/// Counter of the tool calls of each principal within the last 60 seconds. All runs share it, also
/// runs of other sessions and processes if they use the same store.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait CallRateCounter: Send + Sync {
    /// Counts a call of `tool` by `principal`, unless it exceeds a limit. Returns the reached limit
    /// of a call that was not counted. `now_us` is the current time in microseconds since 1970.
    async fn count_call(
        &self,
        principal: &Principal,
        tool: &str,
        limits: CallRateLimits,
        now_us: i64,
    ) -> Result<Option<ReachedCallRate>, SessionStoreError>;
}

/// Maximum numbers of tool calls within 60 seconds. `None` is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallRateLimits {
    /// Maximum number of calls of all tools together.
    pub all_tools: Option<u32>,
    /// Maximum number of calls of the called tool.
    pub this_tool: Option<u32>,
}

/// A reached limit of tool calls per minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReachedCallRate {
    /// The maximum number of calls of all tools together.
    AllTools(u32),
    /// The maximum number of calls of the called tool.
    ThisTool(u32),
}

impl CallRateLimits {
    /// Returns the limit that one more call would exceed. `all` and `same` are the numbers of
    /// earlier calls: of all tools, and of the called tool.
    pub fn find_reached_limit(&self, all: u64, same: u64) -> Option<ReachedCallRate> {
        let all_tools = self.all_tools.filter(|max| all >= u64::from(*max));
        let this_tool = self.this_tool.filter(|max| same >= u64::from(*max));
        let this_tool = this_tool.map(ReachedCallRate::ThisTool);
        this_tool.or(all_tools.map(ReachedCallRate::AllTools))
    }
}
