//! Where a request is marked for the prompt cache.

use serde_json::Value;
use switchboard_domain::JsonObject;

use super::wire::{Block, Body, Mark, Message, Role};
use crate::options::{CacheLifetime, CachePolicy};

/// Marks in one request at most: "A maximum of 4 blocks with `cache_control` may be provided".
const MAX_MARKS: usize = 4;

/// Marks a body by policy. `leading` of its instructions stood before the conversation; others were
/// added to them and may be gone in the next request.
///
/// The last turn of the user is marked, and the one before it, which is where the request of the step
/// before ended: its entry is found however many blocks came since (the API looks only twenty blocks
/// back by itself). Marks that the caller set in the API's own words count.
pub(crate) fn place(policy: CachePolicy, leading: usize, body: &mut Body<'_>) {
    let Some((prefix, turns)) = policy.lifetimes() else {
        return;
    };
    let taken: usize = body
        .server_tools
        .iter()
        .map(|it| marks(&it.declaration))
        .sum();
    let mut left = MAX_MARKS.saturating_sub(taken + marks(body.extra));
    let mut take = || {
        let granted = left > 0;
        left -= usize::from(granted);
        granted
    };
    let mut users = body.messages.iter_mut().rev();
    let mut users = users.by_ref().filter(|it| it.role == Role::User);
    let (last, before) = (users.next(), users.next());
    // In the order of what is lost without it: the mark on the tools matters only when the
    // instructions change.
    mark_turn(last, turns, &mut take);
    let leading = &body.system[..leading.min(body.system.len())];
    body.system_mark = mark_of(leading, prefix).filter(|_| take());
    mark_turn(before, turns, &mut take);
    // A tool that is loaded later is no part of the beginning.
    let is_there = |it: &JsonObject| it.get("defer_loading") != Some(&Value::Bool(true));
    let server = body.server_tools.iter_mut().rev();
    let tool = match body.tools.last_mut() {
        Some(tool) => Some(&mut tool.cache_control),
        None => server
            .filter(|it| is_there(&it.declaration) && !it.declaration.contains_key(CACHE_CONTROL))
            .map(|it| &mut it.cache_control)
            .next(),
    };
    if let Some(tool) = tool
        && take()
    {
        *tool = Some(prefix.into());
    }
}

fn mark_turn(
    turn: Option<&mut Message<'_>>,
    lifetime: Option<CacheLifetime>,
    mut take: impl FnMut() -> bool,
) {
    if let (Some(turn), Some(lifetime)) = (turn, lifetime)
        && let Some(mark) = mark_of(&turn.content, lifetime)
        && take()
    {
        turn.mark = Some(mark);
    }
}

/// A mark on the last of the blocks that takes one.
fn mark_of(blocks: &[Block<'_>], lifetime: CacheLifetime) -> Option<Mark> {
    let at = blocks.iter().rposition(Block::takes_mark)?;
    let control = lifetime.into();
    Some(Mark { at, control })
}

const CACHE_CONTROL: &str = "cache_control";

/// The marks within fields that the caller wrote in the API's own words.
fn marks(fields: &JsonObject) -> usize {
    let own = fields.get(CACHE_CONTROL).is_some_and(Value::is_object);
    usize::from(own) + fields.values().map(within).sum::<usize>()
}

fn within(value: &Value) -> usize {
    match value {
        Value::Object(fields) => marks(fields),
        Value::Array(list) => list.iter().map(within).sum(),
        _ => 0,
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
