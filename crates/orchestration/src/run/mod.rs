//! The agent loop as a value: a state machine without I/O.

mod approval;
mod model_request;
mod model_response;
mod monotonic_clock;
mod recovery;
mod snapshot;
mod state;
mod step;
mod strategy_phases;
mod tool_call_planning;
mod tool_results;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Range,
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use switchboard_domain::{
    Delivery, JsonObject, Message, ModelCapabilities, ModelId, Principal, Role, ToolDefinition,
    ToolOrigin, Usage, Warning,
};

pub(crate) use self::model_response::ToolUseIdGenerator;
pub use self::{
    monotonic_clock::{MonotonicClock, MonotonicTime},
    snapshot::{RestoreError, SnapshotPosition, UnsupportedFormat},
    step::{ModelCall, ModelCallPurpose, PlannedCall, RunStep, ToolCallOutcome, UnexpectedInput},
};
use self::{
    state::{
        AgentLoopState, ModelCallState, RequestedToolCall, RunState, ToolCallState,
        TransientRunState,
    },
    strategy_phases::StrategyPhase,
};
use crate::{
    AnswerItem, Outcome, RecordedResult, RunError, RunEventKind, RunOptions, RunReport,
    SharedDecisions, ToolCallRecord,
    policy::{
        approval::ApprovalSettings,
        limits::{Limits, Pricing, UsageLedger},
    },
    recipe::Recipe,
    strategy::formatter,
    tools::{arguments::InputValidators, results::FullResults},
};

type Events = Vec<RunEventKind>;

/// The agent loop as a serializable state machine without I/O, clock or randomness.
///
/// [`Run::next_step`] returns the next action. The driver executes it and passes the result to the
/// method that the [`RunStep`] names. Each method returns the events of the change, which the
/// driver numbers and publishes. Between any two calls the run can be stored and continued in
/// another process.
///
/// [`Run::set_current_time`] sets the time. Without it, no time passes for the run: it reaches no
/// deadline, approval requests do not expire, and all its tool calls count as calls of one minute.
#[derive(Debug)]
pub struct Run {
    state: RunState,
    /// Messages of the whole conversation, including those before the run.
    messages: Vec<Arc<Message>>,
    caches: TransientRunState,
}

impl Run {
    /// Creates a run in which `model` answers the last message of `messages`.
    pub fn new(
        id: impl Into<String>,
        model: ModelId,
        messages: Vec<Arc<Message>>,
        options: impl Into<Arc<RunOptions>>,
    ) -> Self {
        let options = options.into();
        let state = RunState {
            id: id.into(),
            session: None,
            principal: Principal::default(),
            model,
            capabilities: ModelCapabilities::default(),
            pricing: None,
            recipe: None,
            initial_messages: messages.len(),
            phase: AgentLoopState::Model,
            stage: StrategyPhase::from_strategy(&options.strategy),
            options,
            turn: ModelCallState::default(),
            records: Vec::new(),
            complete_results: FullResults::default(),
            redefined: BTreeSet::new(),
            reviewed: BTreeMap::new(),
            decisions: SharedDecisions::default(),
            ledger: UsageLedger::default(),
            usage: Usage::default(),
            finish: None,
            warnings: Vec::new(),
            error: None,
            partial_answer: None,
            now: Timestamp::UNIX_EPOCH,
            next_event: 1,
            pending_events: Vec::new(),
        };
        Self {
            state,
            messages,
            caches: TransientRunState::default(),
        }
    }

    /// Sets the principal (user and tenant) and the session that the run belongs to.
    #[must_use]
    pub fn with_principal(mut self, principal: Principal, session: Option<String>) -> Self {
        self.state.principal = principal;
        self.state.session = session;
        self
    }

    /// Returns the recipe of the run. First sets it to `recipe` if the run has no recipe and has
    /// not called a model yet; otherwise ignores `recipe`.
    pub(crate) fn resolve_recipe(&mut self, recipe: Option<Arc<Recipe>>) -> Option<Arc<Recipe>> {
        if self.state.recipe.is_none() && self.step_count() == 0 {
            self.state.recipe = recipe;
        }
        self.state.recipe.clone()
    }

    /// Sets the capabilities and the price of the run's model. By default, both are unknown.
    pub fn set_model_info(&mut self, capabilities: ModelCapabilities, pricing: Option<Pricing>) {
        self.state.capabilities = capabilities;
        self.set_pricing(pricing);
    }

    pub(crate) fn set_pricing(&mut self, pricing: Option<Pricing>) {
        self.state.pricing = pricing.map(Box::new);
    }

    /// Replaces the approval decisions of this run by decisions that several runs share. Snapshots
    /// then omit them. By default, a run has its own decisions.
    pub fn set_shared_decisions(&mut self, decisions: SharedDecisions) {
        self.state.decisions = decisions;
        self.caches.shares_decisions = true;
    }

    /// Sets the cache of compiled tool input schemas, which several runs can share.
    pub(crate) fn set_shared_validators(&mut self, validators: InputValidators) {
        self.caches.validators = validators;
    }

    /// Stops counting the wall time of the run until the next [`Run::set_current_time`]. Call this
    /// function before the run waits for a decision of a person.
    pub fn pause_wall_time(&mut self, now: Timestamp) {
        self.state.now = now;
        self.caches.is_clock_running = false;
        self.state.ledger.stop_wall_time(now);
    }

    /// Adds a warning to the report and returns its event. Returns no event if the report already
    /// has an equal warning.
    pub(crate) fn add_warning(&mut self, warning: Warning) -> Events {
        if self.state.warnings.contains(&warning) {
            return Vec::new();
        }
        self.state.warnings.push(warning.clone());
        vec![RunEventKind::Warning { warning }]
    }

    /// Sets the tool definitions as the tool hosts declare them, including input properties that
    /// are hidden from the model. Approval decisions apply to these definitions.
    pub fn set_declared_tools(&mut self, tools: Vec<Arc<ToolDefinition>>) {
        self.caches.declared = tools;
    }

    /// Returns the tool definitions as the tool hosts declare them, including input properties that
    /// are hidden from the model.
    pub(crate) fn declared_tools(&self) -> &[Arc<ToolDefinition>] {
        &self.caches.declared
    }

    pub(crate) fn declared_tool(&self, name: &str) -> Option<&Arc<ToolDefinition>> {
        self.caches.declared.iter().find(|tool| tool.name == name)
    }

    /// Returns the definition to which approval decisions about the tool `name` apply: the
    /// definition of the tool host if it was set, otherwise the definition for the model.
    fn find_definition_for_approval(&self, name: &str) -> Option<&Arc<ToolDefinition>> {
        self.declared_tool(name)
            .or_else(|| self.find_tool_definition(name))
    }

    /// Marks the tools with these names as changed since a person last saw their definitions. The
    /// approval checks of their calls then use the stricter of two verdicts: with the annotations
    /// of the tool and without them.
    pub fn mark_redefined_tools(&mut self, names: impl IntoIterator<Item = String>) {
        self.state.redefined.extend(names);
    }

    /// Sets the current time, and starts counting the run's wall time if it is paused.
    pub fn set_current_time(&mut self, now: Timestamp) {
        self.state.now = now;
        if self.caches.is_clock_running {
            self.state.ledger.record_current_time(now);
        } else {
            self.state.ledger.start_wall_time(now);
            self.caches.is_clock_running = true;
        }
    }

    /// Sets the current time of the monotonic clock by which approval requests expire in this
    /// process. If this time was never set, they expire by the time of [`Run::set_current_time`],
    /// which follows changes of the system clock.
    pub fn set_monotonic_time(&mut self, now: MonotonicTime) {
        self.caches.monotonic_now = Some(now);
    }

    /// Returns the id of the run, which does not change when another process resumes the run.
    pub fn id(&self) -> &str {
        &self.state.id
    }

    /// Returns the recipe (agent settings from a file) that the run started with, if any.
    pub fn recipe(&self) -> Option<&Arc<Recipe>> {
        self.state.recipe.as_ref()
    }

    /// Returns the id of the model that the run calls next.
    pub fn model_id(&self) -> &ModelId {
        &self.state.model
    }

    /// Returns the settings of this run, such as its limits and approval rules.
    pub fn run_options(&self) -> &RunOptions {
        &self.state.options
    }

    /// Returns the number of model calls that the run has made so far.
    pub fn step_count(&self) -> u32 {
        self.state.ledger.steps
    }

    /// Returns the id of the session that the run belongs to.
    pub fn session_id(&self) -> Option<&str> {
        self.state.session.as_deref()
    }

    /// Returns the principal (user and tenant) on whose behalf the run executes.
    pub fn principal(&self) -> &Principal {
        &self.state.principal
    }

    /// Returns the ledger of the model calls, tool calls, tokens, cost and time of the run.
    pub fn usage_ledger(&self) -> &UsageLedger {
        &self.state.ledger
    }

    /// Returns the time until the run reaches its wall-time limit; `None` if the wall time is
    /// unlimited.
    pub fn remaining_wall_time(&self) -> Option<Duration> {
        let limits = &self.state.options.limits;
        self.state.ledger.remaining_time(limits, self.state.now)
    }

    /// Validates `input` against the input schema of the tool with this name. The error describes
    /// the faults of the input. Returns `Ok` for an unknown tool.
    pub fn check_tool_input(&self, tool: &str, input: &JsonObject) -> Result<(), String> {
        let Some(definition) = self.find_tool_definition(tool) else {
            return Ok(());
        };
        let input = input.clone().into();
        self.caches.validators.validate_input(definition, &input)
    }

    /// Returns the names of the tools of planned calls that have not started: calls that wait for
    /// approval or are ready to start.
    pub fn unstarted_tool_names(&self) -> BTreeSet<String> {
        let calls = self.state.batch_calls().iter();
        let open = calls.filter(|call| call.is_waiting_or_ready());
        open.map(|call| call.tool_use.name.clone()).collect()
    }

    /// Returns the whole conversation. After each batch of tool calls and at the end of the run,
    /// every tool use in the conversation has a result.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// Returns the messages that the run added to the conversation.
    pub fn new_messages(&self) -> &[Arc<Message>] {
        let initial = self.state.initial_messages.min(self.messages.len());
        &self.messages[initial..]
    }

    /// Returns how the run ended; `None` before its end.
    pub fn outcome(&self) -> Option<Outcome> {
        match self.state.phase {
            AgentLoopState::Done(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// Returns the next action that the driver must execute.
    pub fn next_step(&mut self) -> RunStep {
        match &self.state.phase {
            AgentLoopState::Model | AgentLoopState::CallingModel | AgentLoopState::Summarising => {
                match self.check_next_model_call() {
                    Ok(()) => RunStep::CallModel,
                    Err(error) => {
                        self.end_with_error(error);
                        RunStep::Done
                    }
                }
            }
            AgentLoopState::Batch(calls) => {
                let group = next_concurrent_calls(calls);
                let requests = self.prepare_approval_requests(group.clone());
                if !requests.is_empty() {
                    return RunStep::AskApproval(requests);
                }
                let (id, steps) = (&self.state.id, self.step_count());
                let group = self.state.batch_calls()[group].iter();
                RunStep::CallTools(
                    group
                        .filter_map(|call| call.to_planned_call(id, steps))
                        .collect(),
                )
            }
            AgentLoopState::Done(_) => RunStep::Done,
        }
    }

    /// Returns an error if a limit forbids the next model call or the JSON Schema of the answer is
    /// invalid.
    ///
    /// While the run gathers data or formats the answer ([`RunPhase`](crate::RunPhase)), the limits
    /// of model calls and tool calls do not cause an error, so that the gathered data becomes an
    /// answer. If the gathering phase reaches one of these limits, [`Run::begin_model_call`] starts
    /// the formatting phase, which ignores both limits. Only a limit of 0 model calls is an error.
    fn check_next_model_call(&self) -> Result<(), RunError> {
        let limits = &self.state.options.limits;
        if self.is_formatting() || (self.is_gathering() && limits.max_steps > 0) {
            let mut limits = limits.clone();
            limits.max_steps = u32::MAX;
            limits.max_tool_calls = None;
            self.check_limits(&limits)?;
        } else {
            self.check_limits(limits)?;
        }
        self.check_answer_schema()
    }

    fn check_limits(&self, limits: &Limits) -> Result<(), RunError> {
        let state = &self.state;
        let pricing = state.pricing.as_deref();
        let ledger = &state.ledger;
        ledger.check_model_call_limits(limits, &state.model, pricing, state.now)
    }

    /// Returns the report of a finished run; `None` before its end.
    pub fn build_report(&self) -> Option<RunReport> {
        let outcome = self.outcome()?;
        let (answer, content) = if let Some(items) = self.formatted_answer_items() {
            (formatter::render_markdown(items), items.to_vec())
        } else {
            let text = self.last_response_text();
            let content = text.clone();
            let item = (!text.is_empty()).then_some(AnswerItem::Text { content });
            (text, item.into_iter().collect())
        };
        let state = &self.state;
        Some(RunReport {
            run_id: state.id.clone(),
            session_id: state.session.clone(),
            model: state.model.clone(),
            answer,
            content,
            thinking: self.formatted_answer_notes().map(str::to_owned),
            outcome,
            finish_reason: state.finish.clone(),
            steps: self.step_count(),
            usage: state.usage,
            tool_calls: self.build_call_records(),
            warnings: state.warnings.clone(),
            error: state.error.as_deref().cloned(),
        })
    }

    /// Returns the records of all tool calls, completed with inputs and results from the
    /// conversation. A record with a repaired or edited input keeps this input.
    fn build_call_records(&self) -> Vec<ToolCallRecord> {
        let mut records = self.state.records.clone();
        let positions = records.iter().enumerate();
        let positions: HashMap<String, usize> = positions
            .map(|(position, record)| (record.id.clone(), position))
            .collect();
        for message in self.new_messages() {
            for tool_use in message.tool_uses() {
                if let Some(position) = positions.get(&tool_use.id)
                    && records[*position].input.is_null()
                {
                    records[*position].input = tool_use.input.to_display_value();
                }
            }
            for result in message.tool_results() {
                if let Some(position) = positions.get(&result.tool_use_id) {
                    records[*position].result = RecordedResult {
                        content: Arc::clone(&result.content),
                        structured: result.structured.clone(),
                    };
                }
            }
        }
        records
    }

    /// Returns the text of the last response that has text. The text of an interrupted response
    /// takes precedence. Returns an empty string if no response has text.
    fn last_response_text(&self) -> String {
        if let Some(partial) = &self.state.partial_answer {
            return partial.clone();
        }
        let messages = self.new_messages();
        let has_text =
            |message: &Arc<Message>| message.role == Role::Assistant && !message.text().is_empty();
        let Some(last) = messages.iter().rposition(has_text) else {
            return String::new();
        };
        // After a pause by the provider, the next assistant message continues the paused response,
        // so the texts of consecutive assistant messages are joined.
        let first = messages[..last]
            .iter()
            .rposition(|message| message.role != Role::Assistant)
            .map_or(0, |before| before + 1);
        messages[first..=last]
            .iter()
            .map(|message| message.text())
            .collect()
    }

    /// Returns the definition of the tool `name` as the model sees it. Also finds tools of the
    /// catalog that requests did not offer. Returns `None` for an unknown tool.
    fn find_tool_definition(&self, name: &str) -> Option<&Arc<ToolDefinition>> {
        let offered = self.state.turn.tools.iter().find(|tool| tool.name == name);
        offered.or_else(|| self.caches.index.find_tool(name))
    }

    /// Sets the maximum number of model calls. It includes the calls that were already made.
    pub fn set_max_steps(&mut self, max_steps: u32) {
        Arc::make_mut(&mut self.state.options).limits.max_steps = max_steps;
    }

    /// Sets the approval rules for new tool calls. Calls that already wait for approval still need
    /// a decision.
    pub fn set_approvals(&mut self, approvals: ApprovalSettings) {
        Arc::make_mut(&mut self.state.options).approval = approvals;
    }

    /// Sets whether future model responses are streamed or delivered complete.
    pub fn set_response_delivery(&mut self, delivery: Delivery) {
        Arc::make_mut(&mut self.state.options).delivery = delivery;
    }

    /// Copies three settings of `other` to this run: the maximum number of model calls, the
    /// approval rules, and whether responses are streamed. A setting is not copied if `other` uses
    /// the default value.
    pub(crate) fn copy_non_default_settings(&mut self, other: &Self) {
        let (changed, default) = (other.run_options(), RunOptions::default());
        if changed.limits.max_steps != default.limits.max_steps {
            self.set_max_steps(changed.limits.max_steps);
        }
        if changed.approval != default.approval {
            self.set_approvals(changed.approval.clone());
        }
        if changed.delivery != default.delivery {
            self.set_response_delivery(changed.delivery);
        }
    }

    fn end_with_error(&mut self, error: RunError) {
        self.state.phase = AgentLoopState::Done(error.kind.to_run_outcome());
        self.state.error = Some(Box::new(error));
    }
}

/// Returns the indices of the next calls that may run concurrently: from the first unfinished call
/// to the call before the next barrier. A barrier is a call that must run alone. If it is the first
/// unfinished call, the range contains only the barrier.
fn next_concurrent_calls(calls: &[RequestedToolCall]) -> Range<usize> {
    let is_open = |call: &RequestedToolCall| {
        !call.has_result() && !matches!(call.state, ToolCallState::Repeats { .. })
    };
    let Some(first) = calls.iter().position(is_open) else {
        return 0..0;
    };
    if calls[first].barrier {
        return first..first + 1;
    }
    let mut rest = calls[first..].iter();
    let barrier = rest.position(|call| call.barrier && is_open(call));
    first..barrier.map_or(calls.len(), |barrier| first + barrier)
}

/// Returns the server of a tool and the tool's name on this server, for display to people. Without
/// an origin, returns `None` and `name`.
fn server_and_tool_name(origin: Option<&ToolOrigin>, name: &str) -> (Option<String>, String) {
    match origin {
        Some(origin) => (Some(origin.server.clone()), origin.tool.clone()),
        None => (None, name.to_owned()),
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "laws_tests.rs"]
pub(crate) mod laws;
