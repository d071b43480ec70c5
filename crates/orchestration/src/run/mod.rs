//! The loop as a value.

mod changes;
mod model_turn;
mod snapshot;
mod steady_clock;
mod stops;
mod tool_batch;

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    ops::Range,
    sync::{Arc, OnceLock},
    time::Duration,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use switchboard_domain::{
    ApprovalRequest, ChatRequest, FinishReason, JsonObject, Message, ModelCapabilities, ModelId,
    Principal, Role, SharedObject, ToolAnnotations, ToolCallError, ToolDefinition, ToolOrigin,
    ToolOutput, Usage, Warning,
};

use crate::{
    AnswerItem, Outcome, RunError, RunEventKind, RunOptions, RunReport, SharedDecisions,
    ToolCallRecord,
    policy::history::History,
    policy::limits::{Ledger, Limits, Pricing},
    recipe::Recipe,
    strategy::formatter,
    tools::arguments::Validators,
    tools::per_definition::PerDefinition,
    tools::results::{KeptResults, Sensed},
    tools::search::{ToolIndex, ToolSelection},
};
use model_turn::phases::Stage;
pub(crate) use model_turn::response::UniqueIds;
use snapshot::version::StateVersion;
pub use snapshot::version::UnknownVersion;
pub use snapshot::{RestoreError, SnapshotMark};
pub use steady_clock::{SteadyClock, SteadyTime};
use tool_batch::batch::{CallState, PendingCall, Places};

type Events = Vec<RunEventKind>;

/// The tool loop as a serializable state machine without I/O, clock or randomness.
///
/// Ask [`Run::next_step`] what to do, do it, and hand the result to the method that the [`Step`]
/// names. Between any two of these a run can be stored and go on in another process. What happened
/// comes back from each method as event kinds, which the driver numbers and publishes.
///
/// Time comes in by [`Run::tick`]; a run that is never told the time has no deadline, no rate limit
/// and no expiry.
#[derive(Debug, Serialize, Deserialize)]
pub struct Run {
    /// The version of this form. It comes first, so that a state of another version is refused by its version.
    #[serde(default)]
    version: StateVersion,
    id: String,
    #[serde(default)]
    session: Option<String>,
    #[serde(default)]
    principal: Principal,
    /// The model that is asked next.
    model: ModelId,
    #[serde(default)]
    capabilities: ModelCapabilities,
    #[serde(default)]
    pricing: Option<Box<Pricing>>,
    /// The recipe that it began with.
    #[serde(default)]
    recipe: Option<Arc<Recipe>>,
    options: Arc<RunOptions>,
    #[serde(with = "snapshot::conversation")]
    messages: Vec<Arc<Message>>,
    /// How many of the messages the run was given; the rest are its own.
    given: usize,
    /// The tools of the current step as the model was shown them.
    #[serde(serialize_with = "snapshot::tools")]
    tools: Vec<Arc<ToolDefinition>>,
    phase: Phase,
    stage: Stage,
    ledger: Ledger,
    #[serde(default)]
    history: History,
    /// Whole results of which the model read the beginning.
    #[serde(default)]
    kept: KeptResults,
    /// Which tools are shown, where there are too many for all.
    #[serde(default)]
    selection: ToolSelection,
    /// Tools whose definition changed since somebody looked at it.
    #[serde(default)]
    redefined: BTreeSet<String>,
    /// Fingerprints of tool definitions that a person was first asked about or that were refused, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    judged: BTreeMap<String, String>,
    /// Why the model is no longer offered tools.
    #[serde(default)]
    tools_dropped: Option<String>,
    /// Words that go with the next request and with no other.
    #[serde(default)]
    nudge: Option<Arc<Message>>,
    #[serde(default)]
    again: Again,
    /// The last answer held something.
    #[serde(default)]
    showed: bool,
    /// Examples stand before the conversation, or a request was made without.
    #[serde(default)]
    has_examples: bool,
    /// Estimated tokens of the last request, where somebody looked.
    #[serde(default)]
    asked_tokens: Option<u64>,
    usage: Usage,
    finish: Option<FinishReason>,
    warnings: Vec<Warning>,
    #[serde(serialize_with = "snapshot::records")]
    records: Vec<ToolCallRecord>,
    error: Option<Box<RunError>>,
    /// Text of an answer that broke off and therefore is no message of the history.
    partial_answer: Option<String>,
    /// What time it is, as far as the run was told.
    #[serde(default)]
    now: Timestamp,
    /// The time of this process, by which requests expire.
    #[serde(skip)]
    steady: Option<SteadyTime>,
    /// The number of the next event.
    pub(crate) next_event: u64,
    /// What is about to be told of what just happened, while the run is stored with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) untold: Events,
    /// What an earlier process was about to tell and did not.
    #[serde(skip)]
    pub(crate) told_late: Events,
    /// What was set in it by hand, in this process.
    #[serde(skip)]
    changes: changes::Changes,
    /// Where messages were put between those that there were.
    #[serde(skip)]
    inserted: snapshot::Inserted,
    /// Its time runs, in this process.
    #[serde(skip)]
    is_awake: bool,
    #[serde(skip)]
    validators: Validators,
    /// What people decided: the run's own, or what it shares with others.
    #[serde(default, serialize_with = "snapshot::decisions")]
    decisions: SharedDecisions,
    /// They are those of others, too.
    #[serde(skip)]
    shares_decisions: bool,
    /// Calls of the batch whose earlier call has its result, by their places.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    due: BTreeSet<usize>,
    #[serde(skip)]
    places: Places,
    /// The ids of tool uses in the conversation that it was given.
    #[serde(skip)]
    given_ids: OnceLock<Arc<HashSet<String>>>,
    #[serde(skip)]
    index: ToolIndex,
    /// The tools as their hosts declare them, with what is hidden from the model: an approval is one of these.
    #[serde(skip)]
    declared: Vec<Arc<ToolDefinition>>,
    #[serde(skip)]
    weight: model_turn::request::ToolWeight,
    #[serde(skip)]
    gather_prompt: Option<Box<model_turn::phases::GatherPrompt>>,
    /// Messages as this model can take them.
    #[serde(skip)]
    sensed: Sensed,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Phase {
    /// The model is to be asked.
    Model,
    /// The model was asked and has not answered.
    Asked,
    /// The model was asked for a summary of what no longer fits.
    Summarising,
    /// Tool uses of the last answer are being dealt with.
    Batch(#[serde(serialize_with = "snapshot::inputs::calls")] Vec<PendingCall>),
    Done(Outcome),
}

/// How often the model was asked again, and why.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Again {
    times: u32,
    empty: u32,
    malformed: u32,
    cut_off: u32,
}

/// What the driver must do next.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Step {
    /// Ask the model: [`Run::begin_model_call`], then what the [`ModelCall`] that it gives is for.
    CallModel,
    /// Ask somebody about each of these: [`Run::decided`].
    AskApproval(Vec<ApprovalRequest>),
    /// Run these tools, concurrently if wished: [`Run::tool_started`] before and
    /// [`Run::tool_finished`] after each, in any order.
    CallTools(Vec<PlannedCall>),
    /// Nothing: [`Run::report`] says how it ended.
    Done,
}

/// A tool call that may start.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedCall {
    /// The tool use it belongs to.
    pub id: String,
    /// The tool's name as declared.
    pub name: String,
    /// The server that offers it.
    pub server: Option<String>,
    /// The input, checked against the tool's schema.
    pub input: SharedObject,
    /// What the tool says about itself.
    pub annotations: ToolAnnotations,
    /// The same for every attempt at this call, also in another process.
    pub idempotency_key: String,
}

/// What became of a tool call.
#[derive(Debug)]
pub struct ToolAnswer {
    /// The tool's answer, or why there is none.
    pub result: Result<ToolOutput, ToolCallError>,
    /// How often it was tried.
    pub attempts: u32,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// It is an earlier result of the same call; nothing ran.
    pub cached: bool,
    /// The structured part was not what the tool promised and was taken out.
    pub broke_promise: bool,
}

impl ToolAnswer {
    /// What came of one attempt that took so many milliseconds.
    pub fn new(result: Result<ToolOutput, ToolCallError>, duration_ms: u64) -> Self {
        Self {
            result,
            attempts: 1,
            duration_ms,
            cached: false,
            broke_promise: false,
        }
    }
}

/// A request of a run to its model.
#[derive(Debug)]
pub struct ModelCall {
    /// What to send. In a box: it is big, and goes from hand to hand.
    pub request: Box<ChatRequest>,
    /// What it is for.
    pub purpose: CallPurpose,
    /// What happened on the way.
    pub events: Vec<RunEventKind>,
}

/// What a model is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallPurpose {
    /// The next answer: [`Run::model_answered`] or [`Run::model_failed`].
    #[default]
    Answer,
    /// A summary of what no longer fits, which nobody is shown: [`Run::summarised`].
    Summary,
}

impl CallPurpose {
    /// Whether an answer is wanted, as mostly.
    #[allow(clippy::trivially_copy_pass_by_ref)] // What serde asks is by reference.
    pub(crate) fn is_answer(&self) -> bool {
        *self == Self::Answer
    }
}

/// The run did not ask for this now: a fault of the driver.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{method}` does not fit the run's state: {reason}")]
pub struct UnexpectedInput {
    /// The method.
    pub method: &'static str,
    /// Why not.
    pub reason: String,
}

impl Run {
    /// A run that answers the last of `messages` with `model`.
    pub fn new(
        id: impl Into<String>,
        model: ModelId,
        messages: Vec<Arc<Message>>,
        options: impl Into<Arc<RunOptions>>,
    ) -> Self {
        let options = options.into();
        Self {
            version: StateVersion,
            id: id.into(),
            session: None,
            principal: Principal::default(),
            model,
            capabilities: ModelCapabilities::default(),
            pricing: None,
            recipe: None,
            given: messages.len(),
            messages,
            tools: Vec::new(),
            phase: Phase::Model,
            stage: Stage::of(&options.strategy),
            options,
            ledger: Ledger::default(),
            history: History::default(),
            kept: KeptResults::default(),
            selection: ToolSelection::default(),
            redefined: BTreeSet::new(),
            judged: BTreeMap::new(),
            tools_dropped: None,
            nudge: None,
            again: Again::default(),
            showed: false,
            has_examples: false,
            asked_tokens: None,
            usage: Usage::default(),
            finish: None,
            warnings: Vec::new(),
            records: Vec::new(),
            error: None,
            partial_answer: None,
            now: Timestamp::UNIX_EPOCH,
            steady: None,
            next_event: 1,
            untold: Vec::new(),
            told_late: Vec::new(),
            changes: changes::Changes::default(),
            inserted: snapshot::Inserted::default(),
            is_awake: false,
            validators: Validators::default(),
            decisions: SharedDecisions::default(),
            shares_decisions: false,
            due: BTreeSet::new(),
            places: Places::default(),
            given_ids: OnceLock::new(),
            index: ToolIndex::default(),
            declared: Vec::new(),
            weight: model_turn::request::ToolWeight::default(),
            gather_prompt: None,
            sensed: Sensed::default(),
        }
    }

    /// On whose behalf it runs, and in which session.
    #[must_use]
    pub fn on_behalf_of(mut self, principal: Principal, session: Option<String>) -> Self {
        self.principal = principal;
        self.session = session;
        self
    }

    /// The recipe it follows: the one it began with, else this one.
    pub(crate) fn follows(&mut self, recipe: Option<Arc<Recipe>>) -> Option<Arc<Recipe>> {
        if self.recipe.is_none() && self.steps() == 0 {
            self.recipe = recipe;
        }
        self.recipe.clone()
    }

    /// Says what the model can do and what it costs. Without, nothing is known of either.
    pub fn knows_model(&mut self, capabilities: ModelCapabilities, pricing: Option<Pricing>) {
        self.capabilities = capabilities;
        self.pricing = pricing.map(Box::new);
    }

    /// Shares what people decided before with other runs. Without, the run remembers for itself.
    pub fn shares_decisions(&mut self, decisions: SharedDecisions) {
        self.decisions = decisions;
        self.shares_decisions = true;
    }

    /// Shares compiled schemas with other runs.
    pub(crate) fn shares_validators(&mut self, validators: Validators) {
        self.validators = validators;
    }

    /// Shares the weights of tool definitions with other runs.
    pub(crate) fn shares_weights(&mut self, weights: Arc<PerDefinition<u64>>) {
        self.index.shares_weights(weights);
    }

    /// The run waits for a person: its own time stands still until the next [`Run::tick`].
    pub fn pause(&mut self, now: Timestamp) {
        self.now = now;
        self.is_awake = false;
        self.ledger.pause(now);
    }

    pub(crate) fn knows_model_now(&mut self, pricing: Option<Pricing>) {
        self.pricing = pricing.map(Box::new);
    }

    /// Adds a warning to the report.
    pub(crate) fn warn(&mut self, warning: Warning) -> Events {
        if self.warnings.contains(&warning) {
            return Vec::new();
        }
        self.warnings.push(warning.clone());
        vec![RunEventKind::Warning { warning }]
    }

    /// The tools as their hosts declare them, where what the model sees is less: a person approves of all of
    /// it, and of its changes.
    pub fn tools_declared(&mut self, tools: Vec<Arc<ToolDefinition>>) {
        self.declared = tools;
    }

    /// What a person approves of under this name.
    fn declaration(&self, name: &str) -> Option<&Arc<ToolDefinition>> {
        let declared = self.declared.iter().find(|tool| tool.name == name);
        declared.or_else(|| self.definition(name))
    }

    /// Names tools whose definition is not what it was when somebody last looked at it.
    pub fn tools_redefined(&mut self, names: impl IntoIterator<Item = String>) {
        self.redefined.extend(names);
    }

    /// Says what time it is.
    pub fn tick(&mut self, now: Timestamp) {
        self.now = now;
        if self.is_awake {
            self.ledger.heard(now);
        } else {
            // At its start, after a person answered and where a stored run is taken up.
            self.ledger.start(now);
            self.is_awake = true;
        }
    }

    /// Sets the time by which approval requests expire in this process. Without it they expire by the time that
    /// [`Run::tick`] sets, which a change of the system's clock moves.
    pub fn tick_steady(&mut self, now: SteadyTime) {
        self.steady = Some(now);
    }

    /// Returns how long an answer to a waiting request still counts; `None` if it never expires.
    ///
    /// In the process that asked, this is measured on its steady clock. In another process the time stamp of the
    /// request is compared with the time of that process.
    pub(crate) fn answer_time_left(&self, id: &str) -> Option<Duration> {
        let Phase::Batch(calls) = &self.phase else {
            return None;
        };
        let call = calls.iter().find(|call| call.tool_use.id == id)?;
        let CallState::Waiting { request, .. } = &call.state else {
            return None;
        };
        let until: Timestamp = request.expires_at.as_deref()?.parse().ok()?;
        let steady = self.steady.zip(call.deadline);
        let left = steady.and_then(|(now, deadline)| now.until(deadline));
        let by_stamp = || Duration::try_from(until.duration_since(self.now)).unwrap_or_default();
        Some(left.unwrap_or_else(by_stamp))
    }

    /// The run's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The recipe that it follows.
    pub fn recipe(&self) -> Option<&Arc<Recipe>> {
        self.recipe.as_ref()
    }

    /// The model it was made for.
    pub fn model(&self) -> &ModelId {
        &self.model
    }

    /// Its settings.
    pub fn options(&self) -> &RunOptions {
        &self.options
    }

    /// Calls of the model so far.
    pub fn steps(&self) -> u32 {
        self.ledger.steps()
    }

    /// The session it belongs to.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// On whose behalf it runs.
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// What it has spent.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// How much of its wall time is left; `None` without a limit.
    pub fn time_left(&self) -> Option<Duration> {
        self.ledger.time_left(&self.options.limits, self.now)
    }

    /// Whether an input fits the tool of this name; an error names what is wrong.
    pub fn check_input(&self, tool: &str, input: &JsonObject) -> Result<(), String> {
        match self.definition(tool) {
            Some(definition) => self.validators.check(definition, &input.clone().into()),
            None => Ok(()),
        }
    }

    /// The names of the tools whose calls have not left.
    pub fn open_tools(&self) -> Vec<String> {
        let Phase::Batch(calls) = &self.phase else {
            return Vec::new();
        };
        let open = calls.iter().filter(|call| {
            matches!(
                call.state,
                CallState::Waiting { .. } | CallState::Ready { .. }
            )
        });
        open.map(|call| call.tool_use.name.clone()).collect()
    }

    /// The tool uses that wait for somebody's word.
    pub fn waiting(&self) -> Vec<&ApprovalRequest> {
        let Phase::Batch(calls) = &self.phase else {
            return Vec::new();
        };
        let waiting = calls.iter().filter_map(|call| match &call.state {
            CallState::Waiting { request, .. } => Some(request.as_ref()),
            _ => None,
        });
        waiting.collect()
    }

    /// The whole conversation. After each batch of tools and at the end every tool use in it has
    /// its result, so it can be sent to any provider as it is.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// The messages that the run itself added.
    pub fn new_messages(&self) -> &[Arc<Message>] {
        &self.messages[self.given.min(self.messages.len())..]
    }

    /// How the run ended; `None` while it goes on.
    pub fn outcome(&self) -> Option<Outcome> {
        match self.phase {
            Phase::Done(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// What to do next.
    pub fn next_step(&mut self) -> Step {
        match &mut self.phase {
            Phase::Model | Phase::Asked | Phase::Summarising => {
                let limits = &self.options.limits;
                // What was gathered would be lost without its form: it has bounds of its own, and where there
                // is no room for gathering more, the form is next.
                let has_own = self.is_formatting() || (self.is_gathering() && limits.max_steps > 0);
                let checked = if has_own {
                    let mut limits = limits.clone();
                    limits.max_steps = u32::MAX;
                    limits.max_tool_calls = None;
                    self.check(&limits)
                } else {
                    self.check(limits)
                };
                match checked.and_then(|()| self.check_answer_schema()) {
                    Ok(()) => Step::CallModel,
                    Err(error) => {
                        self.end_with(error);
                        Step::Done
                    }
                }
            }
            Phase::Batch(calls) => {
                let group = next_group(calls);
                let group = &mut calls[group];
                // A question that nobody has seen yet does not expire.
                let expires_at = self.options.approval.expires_at(self.now);
                let span = self.options.approval.expire_after;
                let deadline = self.steady.zip(span).map(|(now, span)| now.after(span));
                let waiting: Vec<_> = group
                    .iter_mut()
                    .filter_map(|call| match &mut call.state {
                        CallState::Waiting { request, .. } => {
                            if request.expires_at.is_none() {
                                request.expires_at = expires_at.map(|until| until.to_string());
                                call.deadline = deadline;
                            }
                            Some(request.as_ref().clone())
                        }
                        _ => None,
                    })
                    .collect();
                if !waiting.is_empty() {
                    return Step::AskApproval(waiting);
                }
                let ready = group
                    .iter()
                    .filter_map(|call| call.planned(&self.id, self.ledger.steps()));
                Step::CallTools(ready.collect())
            }
            Phase::Done(_) => Step::Done,
        }
    }

    pub(super) fn check(&self, limits: &Limits) -> Result<(), RunError> {
        self.ledger
            .check_before_model_call(limits, &self.model, self.pricing.as_deref(), self.now)
            .map_err(|hit| RunError::from(&hit))
    }

    /// How it ended; `None` while it goes on.
    pub fn report(&self) -> Option<RunReport> {
        let outcome = self.outcome()?;
        let (answer, content) = if let Some(items) = self.formatted_items() {
            (formatter::render(items), items.to_vec())
        } else {
            let text = self.answer();
            let item = (!text.is_empty()).then(|| AnswerItem::Text { text: text.clone() });
            (text, item.into_iter().collect())
        };
        Some(RunReport {
            run_id: self.id.clone(),
            session_id: self.session.clone(),
            model: self.model.clone(),
            answer,
            content,
            outcome,
            finish_reason: self.finish.clone(),
            steps: self.steps(),
            usage: self.usage,
            tool_calls: self.records.clone(),
            warnings: self.warnings.clone(),
            error: self.error.as_deref().cloned(),
        })
    }

    /// The text of the last answer. Words said beside a tool call are an answer only when nothing
    /// better came.
    fn answer(&self) -> String {
        if let Some(partial) = &self.partial_answer {
            return partial.clone();
        }
        let messages = self.new_messages();
        let says_something =
            |message: &Arc<Message>| message.role == Role::Assistant && !message.text().is_empty();
        let Some(last) = messages.iter().rposition(says_something) else {
            return String::new();
        };
        // An answer that the provider paused goes on in the next message.
        let first = messages[..last]
            .iter()
            .rposition(|message| message.role != Role::Assistant)
            .map_or(0, |before| before + 1);
        messages[first..=last]
            .iter()
            .map(|message| message.text())
            .collect()
    }

    /// A call is checked against all tools there are, not only against those that were shown.
    fn definition(&self, name: &str) -> Option<&Arc<ToolDefinition>> {
        let shown = self.tools.iter().find(|tool| tool.name == name);
        shown.or_else(|| self.index.get(name))
    }

    fn end_with(&mut self, error: RunError) {
        self.phase = Phase::Done(error.kind.outcome());
        self.error = Some(Box::new(error));
    }
}

/// The calls that may be under way together: up to the next one that runs alone.
fn next_group(calls: &[PendingCall]) -> Range<usize> {
    let is_open = |call: &PendingCall| {
        !matches!(
            call.state,
            CallState::Settled { .. } | CallState::Repeats { .. }
        )
    };
    let Some(first) = calls.iter().position(is_open) else {
        return 0..0;
    };
    if calls[first].barrier {
        return first..first + 1;
    }
    let behind = calls[first..]
        .iter()
        .position(|call| call.barrier && is_open(call));
    first..behind.map_or(calls.len(), |behind| first + behind)
}

fn unexpected(method: &'static str, reason: impl Into<String>) -> UnexpectedInput {
    UnexpectedInput {
        method,
        reason: reason.into(),
    }
}

/// The server and the tool's own name, as people know them.
fn place(origin: Option<&ToolOrigin>, name: &str) -> (Option<String>, String) {
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
mod laws;
