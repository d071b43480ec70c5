//! Sets the cache breakpoints of a request.

use serde_json::Value;
use switchboard_domain::JsonObject;

use super::wire::{Block, Body, CacheBreakpoint, Message, Role};
use crate::options::{CacheLifetime, CachePolicy};

/// Maximum number of cache breakpoints per request. Above it the API answers "A maximum of 4 blocks
/// with `cache_control` may be provided".
const MAX_BREAKPOINTS: usize = 4;

/// Sets the cache breakpoints of a request.
///
/// `leading` is the number of instruction blocks before the conversation. Later instructions are
/// not cached, because the next request may not have them.
///
/// With [`CachePolicy::Turns`], the last two user messages get a breakpoint. The earlier of them
/// ended the previous request, so the API finds the cache entry of that request. Without this
/// breakpoint, the API would search only the last twenty blocks for an entry. Breakpoints that the
/// caller set count towards the maximum.
pub(crate) fn set_breakpoints(policy: CachePolicy, leading: usize, body: &mut Body<'_>) {
    let Some((prefix, turns)) = policy.cache_lifetimes() else {
        return;
    };
    let tools = body.server_tools.iter();
    let used: usize = tools.map(|it| count_breakpoints(&it.declaration)).sum();
    let mut left = MAX_BREAKPOINTS.saturating_sub(used + count_breakpoints(body.extra));
    let mut take = || {
        let granted = left > 0;
        left -= usize::from(granted);
        granted
    };
    let mut users = body.messages.iter_mut().rev();
    let mut users = users.by_ref().filter(|it| it.role == Role::User);
    let (last, previous) = (users.next(), users.next());
    // The most useful breakpoints are set first, because their number is limited. The one on the
    // tools is last: it matters only when the instructions change.
    set_turn_breakpoint(last, turns, &mut take);
    let leading = &body.system[..leading.min(body.system.len())];
    body.system_breakpoint = find_last_breakpoint(leading, prefix).filter(|_| take());
    set_turn_breakpoint(previous, turns, &mut take);
    // A tool with `defer_loading` gets no breakpoint: it is not in the cached prefix.
    let is_deferred = |it: &JsonObject| it.get("defer_loading") == Some(&Value::Bool(true));
    let tool = match body.tools.last_mut() {
        Some(tool) => Some(&mut tool.cache_control),
        None => body
            .server_tools
            .iter_mut()
            .rev()
            .find(|it| !is_deferred(&it.declaration) && !it.declaration.contains_key(CACHE_CONTROL))
            .map(|it| &mut it.cache_control),
    };
    if let Some(tool) = tool
        && take()
    {
        *tool = Some(prefix.into());
    }
}

fn set_turn_breakpoint(
    turn: Option<&mut Message<'_>>,
    lifetime: Option<CacheLifetime>,
    mut take: impl FnMut() -> bool,
) {
    if let (Some(turn), Some(lifetime)) = (turn, lifetime)
        && let Some(breakpoint) = find_last_breakpoint(&turn.content, lifetime)
        && take()
    {
        turn.breakpoint = Some(breakpoint);
    }
}

/// Returns a cache breakpoint on the last block that may have one, or `None` if no block may.
fn find_last_breakpoint(blocks: &[Block<'_>], lifetime: CacheLifetime) -> Option<CacheBreakpoint> {
    let index = blocks.iter().rposition(Block::allows_cache_control)?;
    let control = lifetime.into();
    Some(CacheBreakpoint { index, control })
}

const CACHE_CONTROL: &str = "cache_control";

/// Counts the cache breakpoints (`cache_control` objects) that the caller set in additional JSON
/// fields, also in nested values.
fn count_breakpoints(fields: &JsonObject) -> usize {
    let own = fields.get(CACHE_CONTROL).is_some_and(Value::is_object);
    usize::from(own)
        + fields
            .values()
            .map(count_breakpoints_in_value)
            .sum::<usize>()
}

fn count_breakpoints_in_value(value: &Value) -> usize {
    match value {
        Value::Object(fields) => count_breakpoints(fields),
        Value::Array(list) => list.iter().map(count_breakpoints_in_value).sum(),
        _ => 0,
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
