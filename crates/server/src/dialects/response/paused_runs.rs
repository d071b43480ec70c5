//! Runs that wait for their clients: for the results of the calls that those make.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use axum::http::StatusCode;
use switchboard_domain::{
    ApprovalDecision, ApprovalScope, Message, Principal, RunState, ToolOutput, ToolResult,
};
use switchboard_orchestration::strategy::formatter::Form;
use uuid::Uuid;

use crate::dialects::{
    tools::client_tools::{ClientTools, PREFIX},
    conversation::unsupported,
};
use crate::{
    Problem,
    hub::{Guard, Hub, Reader},
};

/// The run of an id that was given to such a client.
fn run_of(id: &str) -> Option<String> {
    let rest = id.strip_prefix(PREFIX)?.strip_prefix('_')?;
    let (run, _) = rest.split_once('_')?;
    let run = Uuid::parse_str(run).ok()?;
    Some(run.to_string())
}

/// Results of a client for calls of one run.
#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) run: String,
    /// By the client's ids of the calls.
    pub(crate) results: Vec<(String, ToolOutput)>,
}

impl Results {
    /// What a conversation ends with, if that is results of calls whose ids name the run.
    pub(crate) fn of_last(messages: &[Arc<Message>]) -> Option<Self> {
        Self::of(messages.last()?.results())
    }

    fn of<'r>(last: impl IntoIterator<Item = &'r ToolResult>) -> Option<Self> {
        let mut found: Option<Self> = None;
        for result in last {
            let run = run_of(&result.tool_use_id)?;
            let these = found.get_or_insert_with(|| Self {
                run: run.clone(),
                results: Vec::new(),
            });
            if these.run != run {
                return None;
            }
            these
                .results
                .push((result.tool_use_id.clone(), output(result)));
        }
        found
    }
}

/// A result in a conversation, as a tool gives it.
pub(crate) fn output(result: &ToolResult) -> ToolOutput {
    result.into()
}

/// A run that waits for its client.
pub(crate) struct PausedRun {
    pub(crate) run: String,
    pub(crate) tools: Arc<ClientTools>,
    /// The number of the last event that the client was told of.
    pub(crate) seen: u64,
    /// The calls that it has: its ids of them, and the run's. There is none where the run waits for a person alone.
    pub(crate) calls: Vec<(String, String)>,
    /// What ends the run if nobody comes.
    pub(crate) end: End,
    pub(crate) owner: Principal,
    /// The form that its answer is to have.
    pub(crate) form: Option<Arc<Form>>,
}

/// What ends a run whose client does not come back.
pub(crate) enum End {
    /// Nothing of it is kept: it ends when this is dropped.
    Dropped(Guard),
    /// It is in a session, where its end is kept.
    Cancelled(Hub),
}

impl PausedRun {
    /// Lets its calls go, each with its result. Results of other calls do not count.
    pub(crate) async fn let_go(&self, hub: &Hub, results: Results) -> Result<(), Problem> {
        for (id, output) in results.results {
            let Some((_, call)) = self.calls.iter().find(|(known, _)| *known == id) else {
                continue;
            };
            self.tools.give(call.clone(), output);
            let word = ApprovalDecision::Allow {
                input: None,
                scope: ApprovalScope::Once,
            };
            let decided = hub
                .decide_for_client(&self.owner, &self.run, call, word)
                .await;
            decided.map_err(or_too_late)?;
        }
        Ok(())
    }

    async fn gives_up(self) {
        let End::Cancelled(hub) = self.end else {
            return;
        };
        if self.calls.is_empty() {
            // It does not wait for its client.
            return;
        }
        if let Err(problem) = hub.cancel(&self.owner, &self.run).await {
            let run = self.run;
            tracing::warn!(run, %problem, "a run whose client stayed away could not be ended");
        }
    }
}

/// 409: nobody waits for these results any more.
pub(crate) fn too_late() -> Problem {
    Problem::conflict(
        "the run that waits for these results is over: it waits for them only so long, and only once; send the question \
         anew",
    )
    .at("messages")
}

/// A run that is no longer there, or no longer waits, is over for its client.
fn or_too_late(problem: Problem) -> Problem {
    match problem.status {
        StatusCode::NOT_FOUND | StatusCode::CONFLICT => too_late(),
        _ => problem,
    }
}

/// Where somebody's runs are.
struct Owned {
    hub: Hub,
    owner: Principal,
}

impl Owned {
    async fn is_under_way(&self, run: &str) -> bool {
        let view = self.hub.view(&self.owner, run).await;
        // One that was put away goes on without its client's tools.
        view.is_ok_and(|view| view.run.state == RunState::Running)
    }
}

/// The runs that wait for their clients.
#[derive(Clone, Default)]
pub(crate) struct PausedRuns {
    runs: Arc<Mutex<HashMap<String, (Instant, PausedRun)>>>,
}

impl PausedRuns {
    /// Keeps a run until its client comes back, or ends it when it does not. `patience` is how long a call of it may wait:
    /// it ends before it would go on without, which nobody would read. A run that waits for a person alone is not ended, and
    /// is kept as long as this process is at work on it.
    pub(crate) fn put(&self, held: PausedRun, patience: Duration) {
        let run = held.run.clone();
        let since = Instant::now();
        // What it replaces is the same run, which goes on.
        self.runs().insert(run.clone(), (since, held));
        let waiting = self.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(patience.mul_f32(0.9)).await;
                let Some(person) = waiting.waits_for_person(&run, since) else {
                    break;
                };
                if !person.is_under_way(&run).await {
                    break;
                }
            }
            if let Some(held) = waiting.remove(&run, since) {
                held.gives_up().await;
            }
        });
    }

    /// Takes a run out, if it was put there then.
    fn remove(&self, run: &str, since: Instant) -> Option<PausedRun> {
        let mut runs = self.runs();
        let is_it = runs.get(run).is_some_and(|(kept, _)| *kept == since);
        is_it
            .then(|| runs.remove(run))
            .flatten()
            .map(|(_, held)| held)
    }

    /// Whom to ask about a run that was put there then, if it waits for a person alone.
    fn waits_for_person(&self, run: &str, since: Instant) -> Option<Owned> {
        let runs = self.runs();
        let (kept, held) = runs.get(run)?;
        match &held.end {
            End::Cancelled(hub) if *kept == since && held.calls.is_empty() => Some(Owned {
                hub: hub.clone(),
                owner: held.owner.clone(),
            }),
            _ => None,
        }
    }

    /// Gives a run that nobody keeps the results that it waits for, and gives it back to go on with.
    pub(crate) async fn answer(
        &self,
        hub: &Hub,
        principal: &Principal,
        results: Results,
    ) -> Result<(PausedRun, Reader), Problem> {
        let held = self.take(principal, &results)?;
        // Before the calls are let go: after that, the run may be over at once, and with it what is known of it.
        let reader = hub.reader(principal, &held.run, held.seen).await;
        let reader = reader.map_err(or_too_late)?;
        held.let_go(hub, results).await?;
        Ok((held, reader))
    }

    /// Takes a run out, if there is a result for each call that it waits for.
    pub(crate) fn take(&self, principal: &Principal, results: &Results) -> Result<PausedRun, Problem> {
        let mut runs = self.runs();
        let found = runs
            .get(&results.run)
            .filter(|(_, held)| held.owner == *principal && !held.calls.is_empty());
        let Some((_, held)) = found else {
            return Err(too_late());
        };
        let has = |id: &String| results.results.iter().any(|(known, _)| known == id);
        if let Some((missing, _)) = held.calls.iter().find(|(id, _)| !has(id)) {
            return Err(unsupported(
                "messages",
                &format!("the tool call `{missing}` has no result"),
            ));
        }
        let taken = runs.remove(&results.run);
        taken.map(|(_, held)| held).ok_or_else(Problem::internal)
    }

    /// The tools of a run that waits for its client, and the client's ids of the calls that it has.
    pub(crate) fn look(
        &self,
        principal: &Principal,
        run: &str,
    ) -> Option<(Arc<ClientTools>, Vec<String>)> {
        let runs = self.runs();
        let found = runs.get(run).filter(|(_, held)| held.owner == *principal);
        found.map(|(_, held)| {
            let ids = held.calls.iter().map(|(id, _)| id.clone());
            (Arc::clone(&held.tools), ids.collect())
        })
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<String, (Instant, PausedRun)>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::tools::client_tools::call_id;

    #[test]
    fn an_id_names_its_run() {
        let run = "01a1ffec-9aa5-7186-a003-3cfc2a778a0d";
        for call in ["call_1", "toolu_01-A", "_"] {
            let id = call_id(run, call);
            assert_eq!(run_of(&id).as_deref(), Some(run), "{id}");
        }
        for other in ["call_1", "sb_x_call_1", "sb_", "", "sb"] {
            assert_eq!(run_of(other), None, "{other}");
        }
    }

    #[test]
    fn results_are_of_one_run_or_of_none() {
        let one = call_id("01a1ffec-9aa5-7186-a003-3cfc2a778a0d", "a");
        let other = call_id("01a1ffec-9aa5-7186-a003-3cfc2a778a0e", "a");
        let result = |id: &str| ToolResult::text(id, "mine", "x");
        assert!(Results::of(&[result(&one)]).is_some());
        assert!(Results::of(&[result(&one), result(&other)]).is_none());
        assert!(Results::of(&[result(&one), result("call_1")]).is_none());
        assert!(Results::of(&[]).is_none());
    }
}
