//! Resumes stored runs.

use std::sync::Arc;

use switchboard_domain::{ApprovalDecision, ApprovalRequest, Approver, Principal};
use switchboard_orchestration::{Agent, RunParameters, persistence::LeasedRun};

use super::{CLIENT_SERVER, RunHub, StartedRun};
use crate::{Parameters, Problem, RunSettings, RunSettingsError};

impl RunHub {
    /// Resumes a waiting or interrupted run, optionally with a decision about one tool call. Fails
    /// if the call does not wait for a decision, or if another process executes the run.
    pub(super) async fn resume_stored_run(
        &self,
        principal: &Principal,
        run: &str,
        decision: Option<(&str, ApprovalDecision)>,
    ) -> Result<StartedRun, Problem> {
        let slots = self.acquire_run_slots(principal)?;
        let leased = self.durable_runs(principal).acquire_run(run).await;
        let leased = leased.map_err(|error| convert_lease_error(error.into(), run))?;
        let agent = async {
            if let Some((call, _)) = &decision {
                check_call_awaits_approval(&leased, call)?;
            }
            self.build_resume_agent(&leased, principal).await
        };
        let agent = match agent.await {
            Ok(agent) => agent,
            Err(problem) => {
                // The lease is released before the error is returned, because the client may retry
                // immediately.
                leased.release_run().await;
                return Err(problem);
            }
        };
        let approvals = self.durable_approvals(leased.restored_run().pending_approvals());
        if let Some((call, decision)) = decision {
            approvals.submit_decision(call, decision);
        }
        let agent = agent.with_approver(Arc::clone(&approvals) as Arc<dyn Approver>);
        let run = self.durable_runs(principal).resume_run(&agent, leased);
        Ok(self.execute_durable_run(principal.clone(), run, approvals, slots))
    }

    /// Builds the agent that resumes a stored run, with the recipe and model of the run. If the run
    /// was interrupted before its first step, the stored parameters of the run are used too.
    async fn build_resume_agent(
        &self,
        leased: &LeasedRun,
        principal: &Principal,
    ) -> Result<Agent, Problem> {
        let stored = RunParameters::from_stored_value(leased.run_record().parameters.as_ref());
        if leased.lacks_run_settings() {
            return self.build_first_step_agent(leased, stored, principal).await;
        }
        // Missing parameters are acceptable, because the stored run contains the agent's options.
        let stored = stored.unwrap_or_default();
        let parameters = Parameters {
            tools: stored.without_tools.then_some(false),
            ..Parameters::default()
        };
        // If the engine refuses the recipe of the run, for example because the recipe was deleted,
        // the run continues without a recipe.
        let recipes = [stored.recipe, None];
        let agent = self.build_agent_with_fallbacks(leased, &recipes, &parameters, principal);
        Ok(agent.await?)
    }

    /// Builds an agent for a run that was interrupted before its first step. Only the conversation,
    /// the model and the parameters of such a run are stored. Fails if the parameters are missing
    /// or cannot be read.
    async fn build_first_step_agent(
        &self,
        leased: &LeasedRun,
        stored: Option<RunParameters>,
        principal: &Principal,
    ) -> Result<Agent, Problem> {
        let run = &leased.run_record().id;
        let cannot_continue = |reason: &str| {
            Problem::state_conflict(format!(
                "run `{run}` was interrupted before its first step and cannot continue: {reason}; \
                 cancel it (POST /runs/{run}/cancel) and send the message again"
            ))
        };
        // The run must not continue with approvals and limits that differ from those at its start.
        let options = stored.as_ref().and_then(RunParameters::run_options);
        let (Some(stored), Some(options)) = (stored, options) else {
            return Err(cannot_continue("its parameters are unknown"));
        };
        let parameters = stored.parameters.map(serde_json::from_value).transpose();
        let parameters =
            parameters.map_err(|_| cannot_continue("its stored parameters cannot be read"))?;
        let mut parameters: Parameters = parameters.unwrap_or_default();
        if stored.without_tools {
            parameters.tools = Some(false);
        }
        let recipes = [stored.recipe];
        let agent = self.build_agent_with_fallbacks(leased, &recipes, &parameters, principal);
        let agent = agent.await.map_err(|error| match &error {
            RunSettingsError::Unavailable { .. } => error.into(),
            RunSettingsError::Unknown { .. } | RunSettingsError::Invalid { .. } => {
                cannot_continue(&error.to_string())
            }
        })?;
        Ok(agent.with_options(options))
    }

    /// Builds an agent with the first combination of recipe and model that the engine accepts. If
    /// the model of the run no longer exists, the configured model is used. If the engine accepts
    /// no combination, returns the error for the first one.
    async fn build_agent_with_fallbacks(
        &self,
        leased: &LeasedRun,
        recipes: &[Option<String>],
        parameters: &Parameters,
        principal: &Principal,
    ) -> Result<Agent, RunSettingsError> {
        let models = [Some(leased.restored_run().model_id().to_string()), None];
        let session = Some(&leased.run_record().session);
        let mut first_error = None;
        for recipe in recipes {
            for model in &models {
                let settings = RunSettings {
                    model: model.clone(),
                    recipe: recipe.clone(),
                    parameters: parameters.clone(),
                    ..RunSettings::default()
                };
                let created = self.engine().create_agent(&settings, principal, session);
                match created.await {
                    Ok(agent) => {
                        if let Some(error) = first_error {
                            let run = &leased.run_record().id;
                            tracing::warn!(run, %error, "replaced the model or recipe of the run");
                        }
                        return Ok(agent);
                    }
                    Err(error) => first_error = first_error.or(Some(error)),
                }
            }
        }
        Err(
            first_error.unwrap_or_else(|| RunSettingsError::Unavailable {
                message: "no model is available".to_owned(),
                retry_after: None,
            }),
        )
    }
}

/// Checks that a tool call of a stored run waits for an approval decision. A call that the client
/// executes is an error too, because only the client can send its result.
fn check_call_awaits_approval(leased: &LeasedRun, call: &str) -> Result<(), Problem> {
    let waiting = leased.restored_run().pending_approvals();
    let Some(request) = waiting.iter().find(|it| it.tool_use.id == call) else {
        return Err(call_not_waiting_error(call, &waiting));
    };
    let server = request.origin.as_ref().map(|origin| origin.server.as_str());
    if server == Some(CLIENT_SERVER) {
        return Err(client_tool_decision_error(&leased.run_record().id, call));
    }
    Ok(())
}

/// Creates the error for a decision about a tool call that only the client can execute.
pub(super) fn client_tool_decision_error(run: &str, call: &str) -> Problem {
    Problem::state_conflict(format!(
        "call `{call}` is executed by the client that started the run, which sends the result in \
         its next request; POST /runs/{run}/cancel ends the run"
    ))
}

/// Creates the error for a decision about a tool call that does not wait for one.
pub(super) fn call_not_waiting_error(call: &str, waiting: &[ApprovalRequest]) -> Problem {
    let waiting: Vec<&str> = waiting.iter().map(|it| it.tool_use.id.as_str()).collect();
    let others = if waiting.is_empty() {
        "the run has no pending calls".to_owned()
    } else {
        format!("pending calls: {}", waiting.join(", "))
    };
    Problem::state_conflict(format!(
        "call `{call}` does not wait for a decision, or already has one; {others}"
    ))
}

/// Converts the error `session-busy` to an error that explains that another process executes the
/// run. Returns other errors unchanged.
pub(super) fn convert_lease_error(problem: Problem, run: &str) -> Problem {
    if problem.kind != "session-busy" {
        return problem;
    }
    Problem::state_conflict(format!(
        "another process executes run `{run}`: send the request to that process, or end it; GET \
         /runs/{run}/events works here too"
    ))
    .with_unfinished_run(run)
}
