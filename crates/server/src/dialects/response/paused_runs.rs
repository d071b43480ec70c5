//! Stores runs in memory while they wait for results of tools that the client executes.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use axum::http::StatusCode;
use switchboard_domain::{
    ApprovalDecision, ApprovalScope, Principal, RunState, ToolOutput, ToolResult,
};
use switchboard_orchestration::strategy::formatter::AnswerSchema;
use uuid::Uuid;

use crate::{
    Problem,
    dialects::{
        conversation::invalid_messages,
        tools::client_tools::{CALL_ID_PREFIX, ClientTools},
    },
    hub::{CancelRunOnDrop, EventReader, RunHub, lock_mutex},
};

/// Extracts the run id from a call id `sb_RUN_CALL`, which this server sent to a client. Returns
/// `None` for other call ids.
fn parse_run_id(call_id: &str) -> Option<String> {
    let rest = call_id.strip_prefix(CALL_ID_PREFIX)?.strip_prefix('_')?;
    let (run, _) = rest.split_once('_')?;
    let run = Uuid::parse_str(run).ok()?;
    Some(run.to_string())
}

/// Tool results that a client sent for its tools. All belong to tool calls of one run.
#[derive(Debug)]
pub(crate) struct ClientToolResults {
    pub(crate) run: String,
    /// Pairs of the client's call id and the result of the call.
    pub(crate) results: Vec<(String, ToolOutput)>,
}

impl ClientToolResults {
    /// Reads the tool results `last` at the end of a conversation. Returns `None` if `last` is
    /// empty, or if the call ids of the results do not all contain one and the same run id.
    pub(crate) fn from_tool_results<'r>(
        last: impl IntoIterator<Item = &'r ToolResult>,
    ) -> Option<Self> {
        let mut last = last.into_iter().peekable();
        let run = parse_run_id(&last.peek()?.tool_use_id)?;
        let mut results = Vec::new();
        for result in last {
            if parse_run_id(&result.tool_use_id)? != run {
                return None;
            }
            results.push((result.tool_use_id.clone(), result.into()));
        }
        Some(Self { run, results })
    }
}

/// A run that waits for results of client tools or for an approval decision.
pub(crate) struct PausedRun {
    pub(crate) hub: RunHub,
    pub(crate) run: String,
    pub(crate) tools: Arc<ClientTools>,
    /// The sequence number of the last event that the client received.
    pub(crate) last_seen: u64,
    /// The calls that the client must execute, as pairs of the client's call id and the run's call
    /// id. Empty if the run waits only for an approval.
    pub(crate) calls: Vec<(String, String)>,
    /// A guard that cancels an ephemeral run when it is dropped. `None` for a durable run.
    pub(crate) guard: Option<CancelRunOnDrop>,
    pub(crate) owner: Principal,
    pub(crate) answer_form: Option<Arc<AnswerSchema>>,
}

impl PausedRun {
    /// Passes the client's results to the tool calls that wait for them. Results of other tool
    /// calls are ignored.
    pub(crate) async fn deliver_results(&self, results: ClientToolResults) -> Result<(), Problem> {
        for (id, output) in results.results {
            let Some((_, call)) = self.calls.iter().find(|(known, _)| *known == id) else {
                continue;
            };
            self.tools.add_tool_result(call.clone(), output);
            let allowed = ApprovalDecision::Allow {
                input: None,
                scope: ApprovalScope::Once,
            };
            let (owner, run) = (&self.owner, &self.run);
            let decided = self.hub.decide_any_tool_call(owner, run, call, allowed);
            decided.await.map_err(to_no_waiting_run_error)?;
        }
        Ok(())
    }

    /// Cancels a run whose client did not send the results in time. An ephemeral run is cancelled
    /// when its guard is dropped with `self`.
    async fn cancel_on_timeout(self) {
        if self.guard.is_some() || self.calls.is_empty() {
            return;
        }
        if let Err(problem) = self.hub.cancel_run(&self.owner, &self.run).await {
            let run = self.run;
            tracing::warn!(run, %problem, "failed to cancel a run whose client did not return");
        }
    }
}

/// Creates the error response (status 409) for tool results that no run waits for.
pub(crate) fn no_waiting_run_error() -> Problem {
    Problem::state_conflict(
        "no run is waiting for these results: a run waits for a limited time and accepts its \
         results once; send the question again",
    )
    .with_invalid_field("messages")
}

fn to_no_waiting_run_error(problem: Problem) -> Problem {
    match problem.status {
        StatusCode::NOT_FOUND | StatusCode::CONFLICT => no_waiting_run_error(),
        _ => problem,
    }
}

/// The runs of this process that wait for results or approvals from their clients, by run id.
#[derive(Clone, Default)]
pub(crate) struct PausedRuns {
    runs: Arc<Mutex<HashMap<String, (Instant, PausedRun)>>>,
}

impl PausedRuns {
    /// Keeps a run in memory until its client sends the tool results. If they have not arrived
    /// after 90% of `call_timeout`, the run is cancelled, before its waiting tool calls time out.
    /// A durable run that waits only for approvals is not cancelled: its entry remains while the
    /// run is active.
    pub(crate) fn insert(&self, paused: PausedRun, call_timeout: Duration) {
        let run = paused.run.clone();
        let since = Instant::now();
        // The new entry replaces an older entry of this run. The time-out task of the older entry
        // then finds another `since` and ends without cancelling the run.
        lock_mutex(&self.runs).insert(run.clone(), (since, paused));
        let paused_runs = self.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(call_timeout.mul_f32(0.9)).await;
                let Some((hub, owner)) = paused_runs.find_run_awaiting_approval(&run, since) else {
                    break;
                };
                // A run that has stopped loses its entry. If it is later resumed from the store, it
                // has only the server's tools.
                let view = hub.run_view(&owner, &run).await;
                if !view.is_ok_and(|view| view.run.state == RunState::Running) {
                    break;
                }
            }
            if let Some(paused) = paused_runs.remove(&run, since) {
                paused.cancel_on_timeout().await;
            }
        });
    }

    /// Removes a run if its entry was inserted at the time `since` and not replaced later.
    fn remove(&self, run: &str, since: Instant) -> Option<PausedRun> {
        let mut runs = lock_mutex(&self.runs);
        if runs.get(run)?.0 != since {
            return None;
        }
        runs.remove(run).map(|(_, paused)| paused)
    }

    /// Returns the hub and the owner of a paused run. Returns `None` unless the run's entry was
    /// inserted at the time `since` and the run is durable and waits only for approvals.
    fn find_run_awaiting_approval(&self, run: &str, since: Instant) -> Option<(RunHub, Principal)> {
        let runs = lock_mutex(&self.runs);
        let (inserted, paused) = runs.get(run)?;
        let waits_only_for_approval = paused.guard.is_none() && paused.calls.is_empty();
        (*inserted == since && waits_only_for_approval)
            .then(|| (paused.hub.clone(), paused.owner.clone()))
    }

    /// Delivers tool results from the client to an ephemeral run. Returns the run and a reader of
    /// its next events.
    pub(crate) async fn resume_run(
        &self,
        principal: &Principal,
        results: ClientToolResults,
    ) -> Result<(PausedRun, EventReader), Problem> {
        let paused = self.take_paused_run(principal, &results)?;
        // The reader is created before the delivery, because the run may finish and be removed
        // immediately after it.
        let (hub, run) = (&paused.hub, &paused.run);
        let reader = hub.event_reader(principal, run, paused.last_seen);
        let reader = reader.await.map_err(to_no_waiting_run_error)?;
        paused.deliver_results(results).await?;
        Ok((paused, reader))
    }

    /// Removes and returns the run that waits for `results`. Fails if no run of the principal waits
    /// for them, or if a waiting call has no result.
    pub(crate) fn take_paused_run(
        &self,
        principal: &Principal,
        results: &ClientToolResults,
    ) -> Result<PausedRun, Problem> {
        let mut runs = lock_mutex(&self.runs);
        let found = runs
            .get(&results.run)
            .filter(|(_, paused)| paused.owner == *principal && !paused.calls.is_empty());
        let Some((_, paused)) = found else {
            return Err(no_waiting_run_error());
        };
        let has = |id: &String| results.results.iter().any(|(known, _)| known == id);
        if let Some((missing, _)) = paused.calls.iter().find(|(id, _)| !has(id)) {
            return Err(invalid_messages(format!(
                "the tool call `{missing}` has no result"
            )));
        }
        let taken = runs.remove(&results.run);
        taken
            .map(|(_, paused)| paused)
            .ok_or_else(Problem::internal_error)
    }

    /// Returns the client tools of a paused run, and the client's ids of the calls that wait.
    /// Returns `None` if the run is not paused or belongs to another principal.
    pub(crate) fn client_tools_and_calls(
        &self,
        principal: &Principal,
        run: &str,
    ) -> Option<(Arc<ClientTools>, Vec<String>)> {
        let runs = lock_mutex(&self.runs);
        let (_, paused) = runs.get(run).filter(|(_, it)| it.owner == *principal)?;
        let ids = paused.calls.iter().map(|(id, _)| id.clone());
        Some((Arc::clone(&paused.tools), ids.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::tools::client_tools::build_client_call_id;

    #[test]
    fn a_call_id_names_its_run() {
        let run = "01a1ffec-9aa5-7186-a003-3cfc2a778a0d";
        for call in ["call_1", "toolu_01-A", "_"] {
            let id = build_client_call_id(run, call);
            assert_eq!(parse_run_id(&id).as_deref(), Some(run), "{id}");
        }
        for other in ["call_1", "sb_x_call_1", "sb_", "", "sb"] {
            assert_eq!(parse_run_id(other), None, "{other}");
        }
    }

    #[test]
    fn results_must_belong_to_one_run() {
        let one = build_client_call_id("01a1ffec-9aa5-7186-a003-3cfc2a778a0d", "a");
        let other = build_client_call_id("01a1ffec-9aa5-7186-a003-3cfc2a778a0e", "a");
        let result = |id: &str| ToolResult::text(id, "mine", "x");
        assert!(ClientToolResults::from_tool_results(&[result(&one)]).is_some());
        assert!(ClientToolResults::from_tool_results(&[result(&one), result(&other)]).is_none());
        assert!(ClientToolResults::from_tool_results(&[result(&one), result("call_1")]).is_none());
        assert!(ClientToolResults::from_tool_results(&[]).is_none());
    }
}
