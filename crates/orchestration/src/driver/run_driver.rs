//! The main loop of the driver, which executes the steps of a run.

use std::{collections::HashMap, future::Future, sync::Arc, time::Duration};

use futures_util::{FutureExt, StreamExt};
use switchboard_domain::{
    ApprovalDecision, ApprovalRequest, ChatModel, ModelCapabilities, ModelId, ToolDefinition,
    ToolHostChange, ToolHostChanges, Warning, WarningKind,
};
use tokio::time::Instant;

use super::{
    AgentSettings,
    checkpoint::Checkpoint,
    event_publisher::{EventPublisher, yield_to_reader},
};
use crate::{
    Run, RunEventKind, RunStep, UnexpectedInput,
    observe::trace::AgentTrace,
    recipe::{Recipe, RecipeTools},
    tools::arguments::ContextInjection,
};

/// The driver of one run. It executes the run's steps and publishes the events.
pub(super) struct RunDriver {
    pub(super) agent: Arc<AgentSettings>,
    /// Values that the driver adds to tool inputs and hides from the model, for the session and
    /// principal of this run.
    pub(super) context: Arc<ContextInjection>,
    pub(super) publisher: EventPublisher,
    /// Time at which the run reaches its wall-time limit; `None` without a limit.
    pub(super) deadline: Option<Instant>,
    /// The recipe (agent settings from a file) that the run started with. `None` without a recipe.
    pub(super) recipe: Option<Arc<Recipe>>,
    /// The tools that the recipe selects. `None` without a recipe.
    recipe_tools: Option<RecipeTools>,
    resumed: bool,
    /// The open trace span of the run; `None` after the run ended.
    trace: Option<AgentTrace>,
}

/// The action of the driver after a step of the run: execute the next step, end the run, or park
/// the run (stop its execution until approval decisions arrive).
pub(super) enum StepOutcome {
    Continue,
    Stopped(RunStopReason),
    /// The run was stored, and its execution stops until approval decisions arrive.
    Parked,
}

/// The reason why the driver stops a run before its end.
#[derive(Debug, Clone, Copy)]
pub(super) enum RunStopReason {
    Cancelled,
    TimeLimit,
}

impl RunDriver {
    pub(super) fn new(
        agent: Arc<AgentSettings>,
        run: &Run,
        publisher: EventPublisher,
        trace: AgentTrace,
    ) -> Self {
        Self {
            context: Arc::new(agent.context.scope_to_run(
                run.id(),
                run.session_id(),
                run.principal(),
            )),
            recipe: agent.recipe.clone(),
            agent,
            publisher,
            deadline: None,
            recipe_tools: None,
            resumed: false,
            trace: Some(trace),
        }
    }

    /// Executes a run until it ends or must wait for approval decisions.
    // The arguments are boxed because they are large and an async function stores them twice.
    pub(super) async fn execute_run(
        mut self: Box<Self>,
        mut run: Box<Run>,
        resumed: bool,
    ) -> Box<Run> {
        self.resumed = resumed;
        run.set_shared_validators(self.agent.validators.clone());
        if let Some(decisions) = &self.agent.decisions {
            run.set_shared_decisions(decisions.clone());
        }
        run.mark_redefined_tools(self.agent.redefined.iter().cloned());
        if let Some(recipe) = run.resolve_recipe(self.recipe.clone()) {
            self.recipe_tools = Some(RecipeTools::new(&recipe));
            self.recipe = Some(recipe);
        }
        // An earlier process stored these events, but did not emit them. They precede the start
        // event of this process.
        self.publish_events(run.take_unemitted_events()).await;
        run.set_pending_events(Vec::new());
        let switched = self.replace_missing_model(&mut run);
        self.publish_events([self.create_start_event(&mut run)])
            .await;
        self.publish_events(switched).await;
        run.set_current_time(self.agent.current_time());
        if resumed {
            self.publish_events(run.replay_call_events()).await;
            let recovered = run.recover_run();
            self.store_and_publish_events(&mut run, recovered).await;
        }
        if !resumed || run.step_count() == 0 {
            self.store_checkpoint(&mut run, Checkpoint::Begun).await;
        }
        // The stream of tool host changes is a local variable, because it is not `Sync`. As a
        // field, it would prevent futures that borrow the driver from being `Send`.
        let mut changes = self.agent.tools.as_ref().map(|host| host.watch_changes());
        let mut parked = false;
        if resumed && !run.unstarted_tool_names().is_empty() {
            self.set_deadline(&run);
            // The tools are listed before the first step, because the approvals and the hidden
            // input values of open calls depend on the current tools. A run that is cancelled
            // during the listing is parked and keeps its calls. A run that reaches its time limit
            // ends in the loop below.
            if self.refresh_tools(&mut run).await {
                self.suspend_unavailable_calls(&mut run).await;
            } else {
                parked = self.publisher.cancellation_token().is_cancelled();
            }
        }
        while !parked {
            self.update_run_time(&mut run);
            self.set_deadline(&run);
            if self.apply_host_changes(&mut changes, &mut run).await
                && !run.unstarted_tool_names().is_empty()
            {
                // Calls that have not started are checked again, because the changed tools may need
                // another approval.
                self.refresh_tools(&mut run).await;
            }
            let result = match (run.next_step(), self.stop_reason()) {
                (RunStep::Done, _) => break,
                (_, Some(reason)) => Ok(StepOutcome::Stopped(reason)),
                (RunStep::CallModel, None) => self.call_model(&mut run).await,
                // Boxed, so that this large and rarely needed future does not enlarge the future of
                // every run.
                (RunStep::AskApproval(requests), None) => {
                    Box::pin(self.request_approvals(&mut run, &requests)).await
                }
                (RunStep::CallTools(calls), None) => self.call_tools(&mut run, calls).await,
            };
            match result {
                Ok(StepOutcome::Continue) => {}
                Ok(StepOutcome::Parked) => {
                    parked = true;
                    break;
                }
                Ok(StepOutcome::Stopped(reason)) => {
                    let events = self.stop_run(&mut run, reason, None, &HashMap::new());
                    self.store_and_publish_events(&mut run, events).await;
                }
                Err(fault) => {
                    let events = run.abort_run(&fault);
                    self.store_and_publish_events(&mut run, events).await;
                }
            }
        }
        if parked {
            if let Some(trace) = self.trace.take() {
                trace.close_parked_run();
            }
            let waiting = run
                .pending_approvals()
                .into_iter()
                .map(|request| request.tool_use.id.clone())
                .collect();
            // `RunParked` is published before the checkpoint, because the checkpoint stores the
            // number of the event that follows `RunParked`.
            self.publisher
                .publish_events([RunEventKind::RunParked { waiting }]);
            run.set_next_event_number(self.publisher.next_event_number());
            self.store_checkpoint(&mut run, Checkpoint::Waiting).await;
        } else {
            self.store_checkpoint(&mut run, Checkpoint::Over).await;
        }
        if let Some(report) = run.build_report() {
            if let Some(trace) = self.trace.take() {
                trace.close_with_run_report(&report);
            }
            let report = Box::new(report);
            self.publisher
                .publish_events([RunEventKind::RunFinished { report }]);
        }
        run.set_next_event_number(self.publisher.next_event_number());
        run
    }

    /// Passes the current time to the run, which has no clock.
    fn update_run_time(&self, run: &mut Run) {
        run.set_current_time(self.agent.current_time());
        run.set_monotonic_time(self.agent.monotonic_clock.now());
    }

    /// Sets the driver's deadline to the time at which the run reaches its wall-time limit.
    fn set_deadline(&mut self, run: &Run) {
        // If the deadline is beyond the range of the clock, the wall time is unlimited.
        let left = run.remaining_wall_time();
        self.deadline = left.and_then(|left| Instant::now().checked_add(left));
    }

    /// Publishes events and waits until the reader has taken them. If the reader cancels the run
    /// after one of these events, the driver does not start its next action.
    pub(super) async fn publish_events(&self, kinds: impl IntoIterator<Item = RunEventKind>) {
        if self.publisher.publish_events(kinds) {
            yield_to_reader().await;
        }
    }

    /// Publishes events of the run. If they report a model response, a tool result or an approval
    /// decision, the run is first stored together with the events. After a crash, these events are
    /// then not lost, and the actions that they report are not repeated. Returns `false` if the run
    /// could not be stored; the events are published anyway.
    pub(super) async fn store_and_publish_events(
        &self,
        run: &mut Run,
        mut kinds: Vec<RunEventKind>,
    ) -> bool {
        let mut is_stored = true;
        let point = find_checkpoint_for_events(&kinds);
        if let Some(point) = point.filter(|_| self.agent.checkpoints.is_some()) {
            run.set_pending_events(kinds);
            is_stored = self.store_checkpoint(run, point).await;
            kinds = run.take_pending_events();
        }
        self.publish_events(kinds).await;
        is_stored
    }

    /// Waits for the output of `future`. Returns the reason as an error if the run is cancelled or
    /// reaches its deadline first.
    pub(super) async fn wait_unless_stopped<T>(
        &self,
        future: impl Future<Output = T>,
    ) -> Result<T, RunStopReason> {
        if self.publisher.cancellation_token().is_cancelled() {
            return Err(RunStopReason::Cancelled);
        }
        tokio::select! {
            biased;
            value = future => Ok(value),
            reason = self.wait_until_stopped() => Err(reason),
        }
    }

    /// Waits until the run is cancelled or reaches its deadline.
    pub(super) async fn wait_until_stopped(&self) -> RunStopReason {
        let cancelled = self.publisher.cancellation_token().cancelled();
        let Some(deadline) = self.deadline else {
            cancelled.await;
            return RunStopReason::Cancelled;
        };
        // The timer is boxed because it is large and most runs have no deadline.
        match Box::pin(tokio::time::timeout_at(deadline, cancelled)).await {
            Ok(()) => RunStopReason::Cancelled,
            Err(_) => RunStopReason::TimeLimit,
        }
    }

    /// Returns the reason to stop the run now, if there is one.
    pub(super) fn stop_reason(&self) -> Option<RunStopReason> {
        if self.publisher.cancellation_token().is_cancelled() {
            return Some(RunStopReason::Cancelled);
        }
        let deadline = self.deadline?;
        (deadline <= Instant::now()).then_some(RunStopReason::TimeLimit)
    }

    /// Ends the run because of `reason`. Unfinished tool calls get results that state the reason.
    pub(super) fn stop_run(
        &self,
        run: &mut Run,
        reason: RunStopReason,
        partial: Option<switchboard_domain::ChatResponse>,
        elapsed_ms: &HashMap<String, u64>,
    ) -> Vec<RunEventKind> {
        run.set_current_time(self.agent.current_time());
        match reason {
            RunStopReason::Cancelled => run.cancel_run(partial, elapsed_ms),
            RunStopReason::TimeLimit => run.end_at_time_limit(partial, elapsed_ms),
        }
    }

    /// Stores the capabilities and the price of the model in the run. Returns the start event of
    /// the run.
    fn create_start_event(&self, run: &mut Run) -> RunEventKind {
        let id = run.model_id().clone();
        if let Some(model) = self.find_model(&id) {
            let price = self.find_model_price(model.id());
            run.set_model_info(model.capabilities().clone(), price);
        }
        RunEventKind::RunStarted {
            model: id,
            resumed: self.resumed,
        }
    }

    /// Switches to the first configured model if the model of a stored run is no longer configured.
    fn replace_missing_model(&self, run: &mut Run) -> Vec<RunEventKind> {
        let models = &self.agent.models;
        match models.first() {
            Some(first) if models.iter().all(|model| model.id() != run.model_id()) => {
                let reason = "the model of the stored run is not configured".to_owned();
                run.replace_model(first.id().clone(), first.capabilities().clone(), reason)
            }
            _ => Vec::new(),
        }
    }

    /// Returns the model with this id, or the first configured model if the id is not configured.
    /// Returns `None` if the agent has no models.
    pub(super) fn find_model(&self, id: &ModelId) -> Option<Arc<dyn ChatModel>> {
        let models = &self.agent.models;
        let found = models.iter().find(|model| model.id() == id);
        found.or_else(|| models.first()).cloned()
    }

    /// Returns the next model after `id` in the configured order, or `None` after the last one. A
    /// model that is configured twice is used only once, so that failing models do not form an
    /// endless cycle.
    pub(super) fn find_fallback_model(&self, id: &ModelId) -> Option<(ModelId, ModelCapabilities)> {
        let models = &self.agent.models;
        let position = models.iter().position(|model| model.id() == id)?;
        let (used, rest) = models.split_at_checked(position + 1)?;
        let is_new = |next: &&Arc<dyn ChatModel>| used.iter().all(|it| it.id() != next.id());
        let next = rest.iter().find(is_new)?;
        Some((next.id().clone(), next.capabilities().clone()))
    }

    pub(super) fn find_model_price(&self, id: &ModelId) -> Option<crate::policy::limits::Pricing> {
        self.agent.prices.as_ref().and_then(|prices| prices(id))
    }

    /// Selects the tools that the recipe allows, and stores their definitions in the run. Returns
    /// the definitions for the model, without the input properties whose values the driver adds.
    /// Also returns a message for each tool name in the recipe that matches no tool.
    pub(super) fn prepare_tools_for_model(
        &self,
        run: &mut Run,
        tools: Vec<Arc<ToolDefinition>>,
    ) -> (Vec<Arc<ToolDefinition>>, Vec<String>) {
        let (tools, problems) = match &self.recipe_tools {
            None => (tools, Vec::new()),
            Some(recipe_tools) => {
                let selected = recipe_tools.select_tools(&tools);
                (selected.tools, selected.problems)
            }
        };
        let visible = tools.iter().map(|tool| self.context.hide_arguments(tool));
        let visible = visible.collect();
        run.set_declared_tools(tools);
        (visible, problems)
    }

    /// Lists the current tools, and checks with them again whether the calls that have not started
    /// are valid and need approval. Returns `false` if the run is cancelled or reaches its deadline
    /// while the tools are listed.
    async fn refresh_tools(&mut self, run: &mut Run) -> bool {
        let Some(host) = self.agent.tools.clone() else {
            return true;
        };
        let Ok(catalog) = self.wait_unless_stopped(host.list_tools()).await else {
            return false;
        };
        let (tools, _) = self.prepare_tools_for_model(run, catalog.tools);
        let events = run.recheck_planned_calls(&tools);
        self.store_and_publish_events(run, events).await;
        true
    }

    /// Makes calls that have not started wait for approval if their tool is unavailable, for
    /// example because its server is down. Publishes a warning about these tools. A person can
    /// still deny the calls. Used for resumed runs.
    async fn suspend_unavailable_calls(&self, run: &mut Run) {
        let mut missing = run.unstarted_tool_names();
        missing.retain(|name| run.declared_tool(name).is_none());
        if missing.is_empty() {
            return;
        }
        let missing: Vec<String> = missing.into_iter().collect();
        let message = format!(
            "tools are unavailable: {}; their calls can be denied, or wait until the run is \
             resumed",
            missing.join(", ")
        );
        let warning = Warning::new(WarningKind::ToolUnavailable, message);
        let mut events = run.add_warning(warning.clone());
        if events.is_empty() {
            // `add_warning` returns no event if the stored run already has this warning. The reader
            // of this stream still needs the event, because it did not receive the earlier one.
            events.push(RunEventKind::Warning { warning });
        }
        self.publish_events(events).await;
        self.publish_events(run.suspend_calls_without_tool()).await;
    }

    /// Publishes the changes of servers and tools that the tool host reported since the last step.
    /// Returns whether tools of a server changed.
    async fn apply_host_changes(
        &self,
        changes: &mut Option<ToolHostChanges>,
        run: &mut Run,
    ) -> bool {
        let mut events = Vec::new();
        let mut has_changed_tools = false;
        while let Some(stream) = changes {
            let Some(next) = stream.next().now_or_never() else {
                break;
            };
            let Some(mut change) = next else {
                *changes = None;
                break;
            };
            if let ToolHostChange::ToolRedefined { tool, .. } = &change {
                run.mark_redefined_tools([tool.clone()]);
            }
            match &mut change {
                ToolHostChange::ToolRedefined { server, .. }
                | ToolHostChange::ToolsChanged { server } => {
                    has_changed_tools = true;
                    if let Some(cache) = &self.agent.cache {
                        cache.invalidate_server(server);
                    }
                }
                ToolHostChange::ServerState {
                    reason: Some(reason),
                    ..
                } => {
                    // The reason can contain input values that are hidden from the model, because
                    // the server received them and may repeat them.
                    *reason = self.context.redact_text(reason).into_owned();
                }
                _ => {}
            }
            let change = Box::new(change);
            events.push(RunEventKind::ServerChanged { change });
        }
        self.publish_events(events).await;
        has_changed_tools
    }

    /// Stores the run at a checkpoint. Returns `true` after success, and also if no store is
    /// configured. If storing fails, publishes a warning and returns `false`.
    pub(super) async fn store_checkpoint(&self, run: &mut Run, point: Checkpoint) -> bool {
        let Some(checkpoints) = &self.agent.checkpoints else {
            return true;
        };
        run.set_next_event_number(self.publisher.next_event_number());
        match checkpoints.save_checkpoint(run, point).await {
            Ok(()) => true,
            Err(error) => {
                let warning = Warning::new(WarningKind::NotStored, error.to_string());
                self.publish_events(run.add_warning(warning)).await;
                false
            }
        }
    }

    /// Requests approval decisions and applies them to the run, until no request is open. If the
    /// approver returns [`ApprovalDecision::Later`], returns [`StepOutcome::Parked`], unless the
    /// run is not stored.
    async fn request_approvals(
        &self,
        run: &mut Run,
        requests: &[ApprovalRequest],
    ) -> Result<StepOutcome, UnexpectedInput> {
        let has_store = self.agent.checkpoints.is_some();
        let mut is_stored = self.store_checkpoint(run, Checkpoint::Waiting).await && has_store;
        let mut open = requests.to_vec();
        loop {
            // The list is read again, because one decision may also answer other approval requests.
            let waiting = run.pending_approvals();
            open.retain(|request| {
                waiting
                    .iter()
                    .any(|waiting| waiting.tool_use.id == request.tool_use.id)
            });
            if open.is_empty() {
                return Ok(StepOutcome::Continue);
            }
            let Some((id, decision)) = self.wait_for_decision(run, &open).await else {
                // The run was cancelled. A resumed run is parked with its open requests, so that a
                // person can decide later. A new run, or a run that is not stored, ends.
                return Ok(if self.resumed && is_stored {
                    StepOutcome::Parked
                } else {
                    StepOutcome::Stopped(RunStopReason::Cancelled)
                });
            };
            let request = open.iter().find(|request| request.tool_use.id == id);
            let is_unavailable =
                request.is_some_and(|request| self.is_tool_unavailable(run, request));
            // An approval is not applied if the tool of the call is unavailable. The run is parked
            // instead, and requests the approval again when it is resumed.
            let decision = match decision {
                ApprovalDecision::Later if is_stored => return Ok(StepOutcome::Parked),
                ApprovalDecision::Allow { .. } | ApprovalDecision::NobodyThere
                    if is_stored && is_unavailable =>
                {
                    return Ok(StepOutcome::Parked);
                }
                // A run that is not stored cannot be resumed, so a later decision is impossible.
                ApprovalDecision::Later => ApprovalDecision::NobodyThere,
                decision => decision,
            };
            self.update_run_time(run);
            let events = run.apply_decision(&id, decision)?;
            is_stored = self.store_and_publish_events(run, events).await && has_store;
        }
    }

    /// Waits for a decision about one of the open approval requests, or for an early decision: one
    /// about a call whose approval is not requested yet. Returns the decision with the id of its
    /// call, or `None` if the run is cancelled.
    async fn wait_for_decision(
        &self,
        run: &mut Run,
        open: &[ApprovalRequest],
    ) -> Option<(String, ApprovalDecision)> {
        let id_of = |index: usize| Some(open.get(index)?.tool_use.id.clone());
        let Some(approver) = &self.agent.approver else {
            return Some((id_of(0)?, ApprovalDecision::NobodyThere));
        };
        let is_open = |id: &str| open.iter().any(|it| it.tool_use.id == id);
        let unrequested = self.calls_without_approval_request(run, is_open);
        // The time that a person takes to decide does not count as wall time of the run.
        run.pause_wall_time(self.agent.current_time());
        run.set_monotonic_time(self.agent.monotonic_clock.now());
        let run = &*run;
        let decided = async {
            let decided = approver.await_decision(open);
            match find_earliest_expiry(run, open) {
                None => decided.await,
                Some((index, expires_in)) => tokio::time::timeout(expires_in, decided)
                    .await
                    .unwrap_or((index, ApprovalDecision::Expired)),
            }
        };
        tokio::select! {
            biased;
            () = self.publisher.cancellation_token().cancelled() => None,
            // An approver may return an index that is out of range, so the index is clamped.
            (index, decision) = decided => Some((id_of(index.min(open.len() - 1))?, decision)),
            early = self.wait_for_early_decision(run.id(), &unrequested) => Some(early),
        }
    }

    /// Returns whether the run was resumed and its tool host no longer offers the tool of the
    /// request.
    fn is_tool_unavailable(&self, run: &Run, request: &ApprovalRequest) -> bool {
        self.resumed && run.declared_tool(&request.tool_use.name).is_none()
    }

    /// Returns the ids of the calls that need an approval which is not requested yet. Omits calls
    /// of unavailable tools. The list is empty if there is no approver.
    pub(super) fn calls_without_approval_request(
        &self,
        run: &Run,
        is_requested: impl Fn(&str) -> bool,
    ) -> Vec<String> {
        if self.agent.approver.is_none() {
            return Vec::new();
        }
        let waiting = run.pending_approvals().into_iter();
        let others = waiting.filter(|request| {
            !is_requested(&request.tool_use.id) && !self.is_tool_unavailable(run, request)
        });
        others.map(|request| request.tool_use.id.clone()).collect()
    }

    /// Waits for a decision about one of `calls` that comes before the approval is requested.
    /// Returns the decision with the id of its call. Never returns if no such decision comes.
    pub(super) async fn wait_for_early_decision(
        &self,
        run: &str,
        calls: &[String],
    ) -> (String, ApprovalDecision) {
        if let Some(approver) = &self.agent.approver
            && !calls.is_empty()
        {
            let (index, decision) = approver.await_early_decision(run, calls).await;
            if let ApprovalDecision::Allow { .. } | ApprovalDecision::Deny { .. } = decision
                && let Some(call) = calls.get(index)
            {
                return (call.clone(), decision);
            }
        }
        std::future::pending().await
    }

    /// Applies a decision that came before its approval request. Has no effect if the call no
    /// longer waits for approval.
    pub(super) async fn apply_early_decision(
        &self,
        run: &mut Run,
        call: &str,
        decision: ApprovalDecision,
    ) -> Result<(), UnexpectedInput> {
        self.update_run_time(run);
        let mut pending = run.pending_approvals().into_iter();
        if pending.any(|request| request.tool_use.id == call) {
            let events = run.apply_decision(call, decision)?;
            self.store_and_publish_events(run, events).await;
        }
        Ok(())
    }
}

/// Returns the checkpoint at which the run must be stored before events of these kinds are
/// published. Returns `None` if the events can be published without storing the run.
fn find_checkpoint_for_events(kinds: &[RunEventKind]) -> Option<Checkpoint> {
    let mut point = None;
    for kind in kinds {
        match kind {
            RunEventKind::ModelCallFinished { .. } | RunEventKind::HistorySummarised { .. } => {
                return Some(Checkpoint::ModelAnswered);
            }
            RunEventKind::ToolFinished { .. } => point = Some(Checkpoint::ToolAnswered),
            RunEventKind::ToolApproved { .. } | RunEventKind::ToolDenied { .. } => {
                point.get_or_insert(Checkpoint::Waiting);
            }
            _ => {}
        }
    }
    point
}

/// Returns the index of the approval request that expires first, and the time until it expires.
/// Returns `None` if no request expires.
fn find_earliest_expiry(run: &Run, requests: &[ApprovalRequest]) -> Option<(usize, Duration)> {
    let ids = requests.iter().map(|request| &request.tool_use.id);
    let times = ids.enumerate();
    let times = times.filter_map(|(index, id)| Some((index, run.remaining_decision_time(id)?)));
    times.min_by_key(|(_, time)| *time)
}
