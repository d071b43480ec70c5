//! Calls of tools that ask where a question does not say within which call it is asked, one person's at a time.
//!
//! Two such calls of two people at once, and nobody could be asked anything: each question may be the other's.
//! A tool is known by its first question. Calls of other tools, and those of one person, run as they like.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use switchboard_domain::Candidates;
use tokio::sync::watch;

use crate::calls::context::Caller;

/// Of one server.
#[derive(Default)]
pub(crate) struct Alone {
    /// Whether there are such tools.
    any: AtomicBool,
    now: watch::Sender<Now>,
}

#[derive(Default)]
struct Now {
    /// By their own names.
    tools: HashSet<String>,
    /// Calls of them.
    under_way: Vec<Arc<Caller>>,
}

/// Held by a call from before it leaves until it is over.
pub(crate) struct Turn<'a> {
    alone: &'a Alone,
    caller: Arc<Caller>,
}

impl Alone {
    /// A turn, if it is this call's. `are_one`: whether calls with these keys are of one person.
    pub(crate) fn take(
        &self,
        caller: &Arc<Caller>,
        are_one: impl Fn(&Candidates) -> bool,
    ) -> Option<Turn<'_>> {
        let turn = || Turn {
            alone: self,
            caller: Arc::clone(caller),
        };
        if !self.any.load(Ordering::SeqCst) {
            return Some(turn());
        }
        let mut taken = false;
        self.now.send_if_modified(|now| {
            let asks = caller.tool().is_some_and(|tool| now.tools.contains(tool));
            taken = !asks || now.under_way.iter().all(|it| are_one(&pair(it, caller)));
            if asks && taken {
                now.under_way.push(Arc::clone(caller));
            }
            // Nobody waits for somebody else's beginning.
            false
        });
        taken.then(turn)
    }

    /// The same, which waits for it.
    pub(crate) async fn turn(
        &self,
        caller: &Arc<Caller>,
        are_one: impl Fn(&Candidates) -> bool,
    ) -> Turn<'_> {
        let mut now = self.now.subscribe();
        loop {
            now.mark_unchanged();
            if let Some(turn) = self.take(caller, &are_one) {
                return turn;
            }
            // Fails only without a sender, which is borrowed.
            let _ = now.changed().await;
        }
    }

    /// These calls are of a tool that asks.
    pub(crate) fn learn(&self, server: &str, callers: &[Arc<Caller>]) {
        self.any.store(true, Ordering::SeqCst);
        self.now.send_if_modified(|now| {
            for caller in callers {
                let Some(tool) = caller.tool() else { continue };
                if now.tools.insert(tool.to_owned()) {
                    tracing::info!(
                        server,
                        tool,
                        "a tool asks, so its calls run one person's at a time"
                    );
                }
                let is_in = now.under_way.iter().any(|it| Arc::ptr_eq(it, caller));
                // One that is over has looked in vain for itself here, and will not do so again.
                if !is_in && !caller.is_over() {
                    now.under_way.push(Arc::clone(caller));
                }
            }
            false
        });
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.caller.end();
        if !self.alone.any.load(Ordering::SeqCst) {
            return;
        }
        self.alone.now.send_if_modified(|now| {
            let before = now.under_way.len();
            now.under_way
                .retain(|caller| !Arc::ptr_eq(caller, &self.caller));
            now.under_way.len() < before
        });
    }
}

fn pair(one: &Caller, other: &Caller) -> Candidates {
    let keys = [one, other].map(|caller| caller.key.clone());
    Candidates {
        others: keys.iter().any(Option::is_none),
        calls: keys.into_iter().flatten().collect(),
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use serde_json::json;
    use switchboard_domain::ToolDefinition;

    use super::*;

    fn call(tool: &str, key: &str) -> Arc<Caller> {
        let definition = Arc::new(ToolDefinition::new(tool, "", json!({})));
        Caller::of(&definition, Some(key.to_owned()))
    }

    /// Of one person if they begin with the same letter.
    fn are_one(candidates: &Candidates) -> bool {
        let mut people = candidates.calls.iter().map(|key| &key[..1]);
        let first = people.next();
        !candidates.others && people.all(|person| Some(person) == first)
    }

    #[test]
    fn calls_of_tools_that_ask_are_one_persons_at_a_time() {
        let alone = Alone::default();
        let of_ada = call("ask", "a1");
        let ada = alone.take(&of_ada, are_one).unwrap();
        // Before anything was asked everything runs.
        drop(alone.take(&call("ask", "b0"), are_one).unwrap());
        alone.learn("s", &[of_ada]);
        let of_bob = call("ask", "b1");
        let mut waiting = Box::pin(alone.turn(&of_bob, are_one));
        assert!((&mut waiting).now_or_never().is_none());
        let nobodys = Arc::new(Caller::default());
        let _not_a_call = alone.take(&nobodys, are_one).unwrap();
        let _other_tool = alone.take(&call("read", "b2"), are_one).unwrap();
        let hers = alone.take(&call("ask", "a2"), are_one).unwrap();
        drop(ada);
        assert!((&mut waiting).now_or_never().is_none(), "hers goes on");
        drop(hers);
        assert!(waiting.now_or_never().is_some());
    }

    #[test]
    fn what_is_over_is_waited_for_by_nobody() {
        let alone = Alone::default();
        let of_ada = call("ask", "a1");
        drop(alone.take(&of_ada, are_one).unwrap());
        alone.learn("s", &[of_ada]);
        assert!(alone.take(&call("ask", "b1"), are_one).is_some());
    }
}
