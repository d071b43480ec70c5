//! Executes the steps of a run.

use std::{
    collections::HashMap,
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use futures_util::{FutureExt, StreamExt};
use switchboard_domain::{
    ApprovalDecision, ApprovalRequest, ChatModel, ModelCapabilities, ModelId, ToolDefinition,
    ToolHostChange, ToolHostChanges, Warning, WarningKind,
};
use tokio::time::Instant;

use super::{
    Settings,
    publish::{Handover, Publisher},
};
use crate::{
    Run, RunEventKind, RunReport, Step, UnexpectedInput,
    observe::trace::AgentTrace,
    persistence::checkpoint::Checkpoint,
    recipe::{Recipe, RecipeTools},
    tools::arguments::ContextInjection,
};

pub(super) struct Driver {
    pub(super) agent: Arc<Settings>,
    /// The agent's context with the session and the principal of this run.
    pub(super) context: ContextInjection,
    pub(super) publisher: Publisher,
    /// When the run's time is up.
    pub(super) deadline: Option<Instant>,
    /// The tools as their host declares them: what is injected and promised depends on these.
    pub(super) originals: Vec<Arc<ToolDefinition>>,
    /// The recipe of this run: a stored one follows the recipe that it began with.
    pub(super) recipe: Option<Arc<Recipe>>,
    selection: Option<RecipeTools>,
    resumed: bool,
    /// Until the run is over.
    traced: Option<AgentTrace>,
}

/// Whether the loop goes on.
pub(super) enum Flow {
    Go,
    Stopped(Stopped),
    /// Somebody will decide later.
    Parked,
}

/// Why something was not waited for to its end.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stopped {
    Cancelled,
    TimeIsUp,
}

impl Driver {
    pub(super) fn new(
        agent: Arc<Settings>,
        run: &Run,
        publisher: Publisher,
        traced: AgentTrace,
    ) -> Self {
        Self {
            context: agent
                .context
                .for_run(run.id(), run.session(), run.principal()),
            recipe: agent.recipe.clone(),
            agent,
            publisher,
            deadline: None,
            originals: Vec::new(),
            selection: None,
            resumed: false,
            traced: Some(traced),
        }
    }

    // Boxed is what is big: an async function keeps its arguments twice.
    pub(super) async fn drive(mut self: Box<Self>, mut run: Box<Run>, resumed: bool) -> Box<Run> {
        self.resumed = resumed;
        run.share_validators(self.agent.validators.clone());
        run.share_tool_weights(Arc::clone(&self.agent.weights));
        if let Some(decisions) = &self.agent.decisions {
            run.share_decisions(decisions.clone());
        }
        run.mark_redefined(self.agent.redefined.iter().cloned());
        // A stored run follows the recipe that it began with, whoever goes on with it.
        if let Some(recipe) = run.resolve_recipe(self.recipe.clone()) {
            self.selection = Some(RecipeTools::new(&recipe));
            self.recipe = Some(recipe);
        }
        // What an earlier process was about to tell belongs before this one's beginning.
        self.tell(run.take_replayed_events()).await;
        run.set_pending_events(Vec::new());
        let switched = self.first_model_if_gone(&mut run);
        self.tell([self.started(&mut run)]).await;
        self.tell(switched).await;
        run.tick((self.agent.clock)());
        if resumed {
            self.tell(run.replay_open_calls()).await;
            let recovered = run.recover();
            self.tell_stored(&mut run, recovered).await;
        }
        if !resumed || run.steps() == 0 {
            self.reached(&mut run, Checkpoint::Begun).await;
        }
        // Not in the driver: a stream cannot be shared, and what the driver lends out must be.
        let mut changes = self.agent.tools.as_ref().map(|host| host.changes());
        let mut parked = false;
        if resumed && !run.open_tools().is_empty() {
            self.has_until(&run);
            // Calls may be the first thing to come: what was approved, and what is injected, depends on
            // the tools as they are. Whoever cancels it before these are known leaves it as it is; the end of its time ends it.
            if self.look_at_tools(&mut run).await {
                self.wait_for_what_is_missing(&mut run).await;
            } else {
                parked = self.publisher.is_cancelled();
            }
        }
        while !parked {
            self.tick(&mut run);
            self.has_until(&run);
            if self.hear_changes(&mut changes, &mut run).await && !run.open_tools().is_empty() {
                // While somebody was asked, a tool became another one.
                self.look_at_tools(&mut run).await;
            }
            let done = match (run.next_step(), self.is_stopped()) {
                (Step::Done, _) => break,
                (_, Some(why)) => Ok(Flow::Stopped(why)),
                (Step::CallModel, None) => self.call_model(&mut run).await,
                // Boxed: it is big, and a person is slower than that.
                (Step::AskApproval(requests), None) => {
                    Box::pin(self.ask(&mut run, &requests)).await
                }
                (Step::CallTools(calls), None) => self.call_tools(&mut run, calls).await,
            };
            match done {
                Ok(Flow::Go) => {}
                Ok(Flow::Parked) => {
                    parked = true;
                    break;
                }
                Ok(Flow::Stopped(why)) => {
                    let events = self.stop(&mut run, why, None, &HashMap::new());
                    self.tell_stored(&mut run, events).await;
                }
                Err(fault) => {
                    let events = run.abort(&fault);
                    self.tell_stored(&mut run, events).await;
                }
            }
        }
        if parked {
            let waiting = run
                .pending_approvals()
                .into_iter()
                .map(|request| request.tool_use.id.clone())
                .collect();
            // Before it is stored: the event is a part of the run, and so is its number.
            self.publisher.publish(RunEventKind::RunParked { waiting });
            run.set_next_event(self.publisher.next_number());
            self.reached(&mut run, Checkpoint::Waiting).await;
        } else {
            self.reached(&mut run, Checkpoint::Over).await;
        }
        if let Some(report) = run.report() {
            if let Some(traced) = self.traced.take() {
                traced.ended(&report);
            }
            let report: Box<RunReport> = Box::new(report);
            self.publisher.publish(RunEventKind::RunFinished { report });
        }
        run.set_next_event(self.publisher.next_number());
        run
    }

    /// Sets the time of the run.
    fn tick(&self, run: &mut Run) {
        run.tick((self.agent.clock)());
        run.tick_steady(self.agent.steady.now());
    }

    /// Until when the run has time, from what its clock said last.
    fn has_until(&mut self, run: &Run) {
        // A time that no clock can show is none.
        let left = run.time_left();
        self.deadline = left.and_then(|left| Instant::now().checked_add(left));
    }

    /// Says what happened, and goes on when the reader has heard it. Whatever the reader then
    /// decides, such as to cancel, holds for the very next thing that the driver does.
    ///
    /// Said is it at once, and what is to be awaited is small: all that is told would else be in the state of
    /// the driver for a while.
    pub(super) fn tell(&self, kinds: impl IntoIterator<Item = RunEventKind>) -> Handover {
        Handover::of(self.publisher.publish_all(kinds))
    }

    /// The same, of what happened in the run. Where an answer or a result is among it, the run is stored with
    /// it before anybody hears of it, and with what is about to be told: neither is lost by a crash, and
    /// nothing is done a second time that somebody saw done.
    pub(super) async fn tell_stored(&self, run: &mut Run, kinds: Vec<RunEventKind>) {
        if self.agent.checkpoints.is_some()
            && let Some(point) = point_of(&kinds)
        {
            run.set_pending_events(kinds);
            self.reached(run, point).await;
            self.tell(run.take_pending_events()).await;
        } else {
            self.tell(kinds).await;
        }
    }

    /// Waits, but not when the run is stopped.
    pub(super) async fn unless_stopped<T>(
        &self,
        future: impl Future<Output = T>,
    ) -> Result<T, Stopped> {
        if self.publisher.is_cancelled() {
            return Err(Stopped::Cancelled);
        }
        let mut future = pin!(future);
        let mut stopped = pin!(self.stopped());
        poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(value) => Poll::Ready(Ok(value)),
            // Only looked at while something is waited for: most of what is awaited is there at once.
            Poll::Pending => stopped.as_mut().poll(context).map(Err),
        })
        .await
    }

    /// Waits, but not when the run is cancelled: that comes first.
    async fn unless_cancelled<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let mut future = pin!(future);
        poll_fn(|context| {
            if self.publisher.is_cancelled() {
                return Poll::Ready(None);
            }
            future.as_mut().poll(context).map(Some)
        })
        .await
    }

    /// Waits until the run is to stop.
    pub(super) async fn stopped(&self) -> Stopped {
        let cancelled = self.publisher.cancelled();
        let Some(deadline) = self.deadline else {
            cancelled.await;
            return Stopped::Cancelled;
        };
        // Boxed: a timer is big, and most runs have none.
        match Box::pin(tokio::time::timeout_at(deadline, cancelled)).await {
            Ok(()) => Stopped::Cancelled,
            Err(_) => Stopped::TimeIsUp,
        }
    }

    /// Whether and why the run is to stop now.
    pub(super) fn is_stopped(&self) -> Option<Stopped> {
        if self.publisher.is_cancelled() {
            return Some(Stopped::Cancelled);
        }
        let is_up = self
            .deadline
            .is_some_and(|deadline| deadline <= Instant::now());
        is_up.then_some(Stopped::TimeIsUp)
    }

    pub(super) fn stop(
        &self,
        run: &mut Run,
        why: Stopped,
        partial: Option<switchboard_domain::ChatResponse>,
        elapsed_ms: &HashMap<String, u64>,
    ) -> Vec<RunEventKind> {
        run.tick((self.agent.clock)());
        match why {
            Stopped::Cancelled => run.cancel(partial, elapsed_ms),
            Stopped::TimeIsUp => run.wall_time_reached(partial, elapsed_ms),
        }
    }

    /// Says with which model it begins, or goes on.
    fn started(&self, run: &mut Run) -> RunEventKind {
        let asked = run.model().clone();
        if let Some(model) = self.model(&asked) {
            run.set_model_info(model.capabilities().clone(), self.price_of(model.id()));
        }
        RunEventKind::RunStarted {
            model: asked,
            resumed: self.resumed,
        }
    }

    /// A stored run may name a model that is no longer there: then the first goes on.
    fn first_model_if_gone(&self, run: &mut Run) -> Vec<RunEventKind> {
        let models = &self.agent.models;
        match models.first() {
            Some(first) if models.iter().all(|model| model.id() != run.model()) => run
                .replace_model(
                    first.id().clone(),
                    first.capabilities().clone(),
                    "the model of the stored run is not configured".to_owned(),
                ),
            _ => Vec::new(),
        }
    }

    /// The model of this name. A stored run may name one that is no longer there; then the first.
    pub(super) fn model(&self, id: &ModelId) -> Option<Arc<dyn ChatModel>> {
        let models = &self.agent.models;
        let found = models.iter().find(|model| model.id() == id);
        found.or_else(|| models.first()).cloned()
    }

    /// Returns the model that is asked when this one fails. A model that is named twice is asked once:
    /// else two that fail would be asked for ever.
    pub(super) fn next_model(&self, id: &ModelId) -> Option<(ModelId, ModelCapabilities)> {
        let models = &self.agent.models;
        let position = models.iter().position(|model| model.id() == id)?;
        let (asked, rest) = models.split_at_checked(position + 1)?;
        let is_new = |next: &&Arc<dyn ChatModel>| asked.iter().all(|it| it.id() != next.id());
        let next = rest.iter().find(is_new)?;
        Some((next.id().clone(), next.capabilities().clone()))
    }

    pub(super) fn price_of(&self, id: &ModelId) -> Option<crate::policy::limits::Pricing> {
        self.agent.prices.as_ref().and_then(|prices| prices(id))
    }

    /// The tools there are now, as the model and the run see them.
    pub(super) fn visible(
        &mut self,
        tools: Vec<Arc<ToolDefinition>>,
    ) -> (Vec<Arc<ToolDefinition>>, Vec<String>) {
        let (tools, problems) = match &mut self.selection {
            None => (tools, Vec::new()),
            Some(selection) => {
                let selected = selection.apply(&tools);
                (selected.tools, selected.problems)
            }
        };
        let context = &self.context;
        let visible = if context.is_empty() {
            tools.clone()
        } else {
            tools.iter().map(|tool| context.visible(tool)).collect()
        };
        self.originals = tools;
        (visible, problems)
    }

    pub(super) fn original(&self, name: &str) -> Option<&Arc<ToolDefinition>> {
        self.originals.iter().find(|tool| tool.name == name)
    }

    /// Holds the calls that have not left against the tools as they are now; `false` if it was stopped
    /// before it knew them.
    async fn look_at_tools(&mut self, run: &mut Run) -> bool {
        let Some(host) = self.agent.tools.clone() else {
            return true;
        };
        let Ok(catalog) = self.unless_stopped(host.tools()).await else {
            return false;
        };
        let (tools, _) = self.visible(catalog.tools);
        run.set_declared_tools(self.originals.clone());
        let events = run.update_tools(&tools);
        self.tell_stored(run, events).await;
        true
    }

    /// A stored run has calls of tools that are not there: a server may be away for a while. Somebody may
    /// still say no to them.
    async fn wait_for_what_is_missing(&self, run: &mut Run) {
        let mut missing = run.open_tools();
        missing.retain(|name| self.original(name).is_none());
        missing.sort();
        missing.dedup();
        if missing.is_empty() {
            return;
        }
        let message = format!(
            "not there now: {}; what was asked of it can be declined, and else waits until the run is \
             continued",
            missing.join(", ")
        );
        let warning = Warning::new(WarningKind::ToolUnavailable, message);
        let mut events = run.warn(warning.clone());
        if events.is_empty() {
            // It was so the last time that the run went on; whoever goes on with it now has to hear it.
            events.push(RunEventKind::Warning { warning });
        }
        self.tell(events).await;
        let is_there = |name: &str| self.original(name).is_some();
        self.tell(run.suspend_calls_without_tool(is_there)).await;
    }

    /// What changed at the hosts since the last step; whether tools are others now.
    async fn hear_changes(&self, changes: &mut Option<ToolHostChanges>, run: &mut Run) -> bool {
        let mut heard = Vec::new();
        while let Some(stream) = changes {
            match stream.next().now_or_never() {
                Some(Some(change)) => heard.push(change),
                Some(None) => *changes = None,
                None => break,
            }
        }
        for change in &heard {
            match change {
                ToolHostChange::ToolRedefined { tool, server, .. } => {
                    run.mark_redefined([tool.clone()]);
                    if let Some(cache) = &self.agent.cache {
                        cache.invalidate(server);
                    }
                }
                ToolHostChange::ToolsChanged { server } => {
                    if let Some(cache) = &self.agent.cache {
                        cache.invalidate(server);
                    }
                }
                _ => {}
            }
        }
        let is_changed = heard.iter().any(|change| {
            matches!(
                change,
                ToolHostChange::ToolsChanged { .. } | ToolHostChange::ToolRedefined { .. }
            )
        });
        let events = heard.into_iter().map(|mut change| {
            if let ToolHostChange::ServerState {
                reason: Some(reason),
                ..
            } = &mut change
            {
                // A server's last words may be what it was given.
                *reason = self.context.redact_text(reason).into_owned();
            }
            let change = Box::new(change);
            RunEventKind::ServerChanged { change }
        });
        self.tell(events).await;
        is_changed
    }

    /// Stores the run, if somebody does that.
    ///
    /// `false` if that failed. Where nobody does it, whoever drives the run keeps it.
    pub(super) async fn reached(&self, run: &mut Run, point: Checkpoint) -> bool {
        let Some(checkpoints) = &self.agent.checkpoints else {
            return true;
        };
        run.set_next_event(self.publisher.next_number());
        match checkpoints.reached(run, point).await {
            Ok(()) => true,
            Err(error) => {
                let warning = Warning::new(WarningKind::NotStored, error.to_string());
                self.tell(run.warn(warning)).await;
                false
            }
        }
    }

    async fn ask(
        &self,
        run: &mut Run,
        requests: &[ApprovalRequest],
    ) -> Result<Flow, UnexpectedInput> {
        let mut is_stored = self.reached(run, Checkpoint::Waiting).await;
        let mut open = requests.to_vec();
        loop {
            // An answer may settle others.
            let waiting = run.pending_approvals();
            open.retain(|request| {
                waiting
                    .iter()
                    .any(|waiting| waiting.tool_use.id == request.tool_use.id)
            });
            if open.is_empty() {
                return Ok(Flow::Go);
            }
            let (place, decision) = match &self.agent.approver {
                None => (0, ApprovalDecision::NobodyThere),
                Some(approver) => {
                    let now = (self.agent.clock)();
                    let is_open = |id: &str| open.iter().any(|it| it.tool_use.id == id);
                    let ahead = self.not_asked(run, is_open);
                    let id = run.id().to_owned();
                    // A person's time is not the run's.
                    run.pause(now);
                    run.tick_steady(self.agent.steady.now());
                    let decided = in_time(approver.decide_any(&open), soonest(run, &open));
                    let heard = either(decided, self.early_decision(&id, &ahead));
                    match self.unless_cancelled(heard).await {
                        Some(Heard::First(decision)) => decision,
                        Some(Heard::Ahead(place, decision)) => {
                            if let Some(call) = ahead.get(place) {
                                is_stored = self.heard_ahead(run, call, decision).await?;
                            }
                            continue;
                        }
                        // What was stored to be decided later still can be.
                        None if self.resumed && is_stored => return Ok(Flow::Parked),
                        None => return Ok(Flow::Stopped(Stopped::Cancelled)),
                    }
                }
            };
            // Somebody may name a place that there is not.
            let place = place.min(open.len() - 1);
            let request = open.remove(place);
            // A yes to what is not there is kept for when it is: nothing of it is lost by waiting.
            let decision = match decision {
                ApprovalDecision::Later if is_stored => return Ok(Flow::Parked),
                ApprovalDecision::Allow { .. } | ApprovalDecision::NobodyThere
                    if is_stored && self.is_away(&request.tool_use.name) =>
                {
                    return Ok(Flow::Parked);
                }
                // Nobody could go on with it.
                ApprovalDecision::Later => ApprovalDecision::NobodyThere,
                decision => decision,
            };
            self.tick(run);
            let events = run.apply_decision(&request.tool_use.id, decision)?;
            is_stored = self.tell_decided(run, events).await;
        }
    }

    /// A run that goes on may have calls of a tool that is not there now.
    fn is_away(&self, tool: &str) -> bool {
        self.resumed && self.original(tool).is_none()
    }

    /// The calls that wait and that nobody is asked about now, by their ids.
    pub(super) fn not_asked(&self, run: &Run, is_asked: impl Fn(&str) -> bool) -> Vec<String> {
        if self.agent.approver.is_none() {
            return Vec::new();
        }
        let waiting = run.pending_approvals().into_iter();
        let others = waiting.filter(|request| {
            !is_asked(&request.tool_use.id) && !self.is_away(&request.tool_use.name)
        });
        others.map(|request| request.tool_use.id.clone()).collect()
    }

    /// Waits for a word about calls whose turn has not come.
    pub(super) async fn early_decision(
        &self,
        run: &str,
        calls: &[String],
    ) -> (usize, ApprovalDecision) {
        if let Some(approver) = &self.agent.approver
            && !calls.is_empty()
        {
            let (place, word) = approver.early_decision(run, calls).await;
            let is_word = matches!(
                word,
                ApprovalDecision::Allow { .. } | ApprovalDecision::Deny { .. }
            );
            if is_word && place < calls.len() {
                return (place, word);
            }
        }
        std::future::pending().await
    }

    /// Somebody gave a word before the call's turn. Whether it is stored.
    pub(super) async fn heard_ahead(
        &self,
        run: &mut Run,
        call: &str,
        decision: ApprovalDecision,
    ) -> Result<bool, UnexpectedInput> {
        self.tick(run);
        let waits = run
            .pending_approvals()
            .iter()
            .any(|it| it.tool_use.id == call);
        let events = if waits {
            run.apply_decision(call, decision)?
        } else {
            // It got its result meanwhile.
            Vec::new()
        };
        Ok(self.tell_decided(run, events).await)
    }

    /// Says what came of a word. The run is stored with it before anybody hears that it counts; whether it is.
    async fn tell_decided(&self, run: &mut Run, kinds: Vec<RunEventKind>) -> bool {
        if self.agent.checkpoints.is_none() {
            self.tell(kinds).await;
            return true;
        }
        let point = point_of(&kinds).unwrap_or(Checkpoint::Waiting);
        run.set_pending_events(kinds);
        let is_stored = self.reached(run, point).await;
        let kinds = run.take_pending_events();
        self.tell(kinds).await;
        is_stored
    }
}

/// What was heard of two things that are waited for.
pub(super) enum Heard<T> {
    /// The one that it is about.
    First(T),
    /// A word about a call whose turn has not come: its place, and the word.
    Ahead(usize, ApprovalDecision),
}

pub(super) async fn either<T>(
    first: impl Future<Output = T>,
    ahead: impl Future<Output = (usize, ApprovalDecision)>,
) -> Heard<T> {
    let (mut first, mut ahead) = (pin!(first), pin!(ahead));
    poll_fn(|context| {
        if let Poll::Ready(value) = first.as_mut().poll(context) {
            return Poll::Ready(Heard::First(value));
        }
        let ahead = ahead.as_mut().poll(context);
        ahead.map(|(place, word)| Heard::Ahead(place, word))
    })
    .await
}

/// The point at which a run is stored before this is told of it.
fn point_of(kinds: &[RunEventKind]) -> Option<Checkpoint> {
    let mut point = None;
    for kind in kinds {
        match kind {
            RunEventKind::ModelCallFinished { .. } | RunEventKind::HistorySummarised { .. } => {
                return Some(Checkpoint::ModelAnswered);
            }
            RunEventKind::ToolFinished { .. } => point = Some(Checkpoint::ToolAnswered),
            _ => {}
        }
    }
    point
}

/// Which of these expires first, by its place, and in what time; `None` if none of them ever does.
fn soonest(run: &Run, requests: &[ApprovalRequest]) -> Option<(usize, Duration)> {
    let times = requests.iter().enumerate();
    times
        .filter_map(|(place, request)| {
            Some((place, run.remaining_decision_time(&request.tool_use.id)?))
        })
        .min_by_key(|(_, time)| *time)
}

async fn in_time(
    decided: impl Future<Output = (usize, ApprovalDecision)>,
    soonest: Option<(usize, Duration)>,
) -> (usize, ApprovalDecision) {
    match soonest {
        None => decided.await,
        Some((place, expires_in)) => tokio::time::timeout(expires_in, decided)
            .await
            .unwrap_or((place, ApprovalDecision::Expired)),
    }
}

pub(super) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
