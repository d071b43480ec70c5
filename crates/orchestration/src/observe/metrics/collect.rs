//! Counts what happens in runs.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    hash::{DefaultHasher, Hash as _, Hasher},
    sync::Arc,
};

use jiff::Timestamp;
use serde_json::Value;
use switchboard_domain::{ModelId, Usage};

use super::{CallCounts, Histogram, ModelMetrics, Snapshot, ToolMetrics, snapshot::FinishedCall};
use crate::{
    Outcome, RunEvent, RunEventKind, ToolFailure, observe::audit::CostOf,
    tools::arguments::canonical_value,
};

/// Tools that are counted apart, and models as well; what comes beyond is counted as `(other)`.
/// Names come from servers and configurations, and what counts them must not grow without end.
const MAX_NAMES: usize = 1_000;

/// Models that are not known ([`Metrics::with_known_models`]) and are counted apart all the same.
const MAX_STRANGERS: usize = 100;

/// Runs that are followed at one time. Beyond that the one that was silent for longest is let go.
const MAX_RUNS: usize = 10_000;

/// Whether a model is known: it is configured, or a catalogue has it.
pub type KnownModel = Arc<dyn Fn(&ModelId) -> bool + Send + Sync>;

/// A tool by its server and name.
pub(super) type ToolKey = (Option<String>, String);

/// Counts what happens in any number of runs at once.
#[derive(Default)]
pub struct Metrics {
    counted: Snapshot,
    tools: BTreeMap<ToolKey, (CallCounts, Histogram)>,
    models: BTreeMap<String, ModelMetrics>,
    /// How many of these are not known.
    strangers: usize,
    runs: HashMap<Arc<str>, OpenRun>,
    cost: Option<CostOf>,
    known: Option<KnownModel>,
}

/// What has to be known of a run that goes on.
struct OpenRun {
    last: Timestamp,
    /// The model whose answer is being dealt with.
    model: Option<ModelId>,
    /// The model that is asked next.
    next_model: Option<ModelId>,
    /// Since when which model is being asked.
    asked: Option<(Timestamp, ModelId)>,
    calls: HashMap<String, OpenCall>,
    /// Fingerprints of the calls that have a result.
    answered: HashSet<u64>,
}

struct OpenCall {
    key: ToolKey,
    fingerprint: u64,
    repeated: bool,
}

impl Metrics {
    /// Also counts what calls of models cost.
    #[must_use]
    pub fn with_cost(mut self, cost: CostOf) -> Self {
        self.cost = Some(cost);
        self
    }

    /// Says which models are known, where anybody may name one. One that is not is counted apart when it has answered, and a
    /// hundred of these at most: names that somebody makes up push no other out. Until then, and beyond, it is counted as
    /// `(other)`. Without this every model is known.
    #[must_use]
    pub fn with_known_models(mut self, known: KnownModel) -> Self {
        self.known = Some(known);
        self
    }

    /// Takes an event in. The events of one run must come in order, those of several in any.
    pub fn observe(&mut self, event: &RunEvent) {
        match &event.kind {
            RunEventKind::RunStarted { model, .. } => {
                self.counted.runs_started += 1;
                self.run(event).next_model = Some(model.clone());
            }
            RunEventKind::ModelSwitched { to, .. } => {
                self.run(event).next_model = Some(to.clone());
            }
            RunEventKind::ModelCallStarted { model, .. } => {
                self.model_call_cancelled(event);
                let run = self.run(event);
                run.model = Some(model.clone());
                run.next_model = Some(model.clone());
                run.asked = Some((event.time, model.clone()));
            }
            // What a summary costs is paid like everything else.
            RunEventKind::HistoryTrimmed {
                summarised: true, ..
            } => {
                self.model_call_cancelled(event);
                let run = self.run(event);
                run.asked = run.next_model.clone().map(|model| (event.time, model));
            }
            RunEventKind::ModelCallFinished { usage, .. }
            | RunEventKind::HistorySummarised {
                usage, error: None, ..
            } => self.model_answered(event, usage),
            RunEventKind::ModelCallFailed { .. } | RunEventKind::HistorySummarised { .. } => {
                if let Some((_, model)) = self.model_call_ended(event) {
                    let counted = self.model(&model, false);
                    counted.requests.total += 1;
                    counted.requests.failed += 1;
                }
            }
            RunEventKind::ToolPlanned {
                id,
                server,
                tool,
                input,
            } => {
                let key = (server.clone(), tool.clone());
                let run = self.run(event);
                let fingerprint = fingerprint(&key, input);
                let call = OpenCall {
                    repeated: run.answered.contains(&fingerprint),
                    key,
                    fingerprint,
                };
                run.calls.insert(id.clone(), call);
            }
            RunEventKind::ToolInputRepaired { id, input, .. } => {
                let run = self.run(event);
                if let Some(call) = run.calls.get_mut(id) {
                    call.fingerprint = fingerprint(&call.key, input);
                    call.repeated = run.answered.contains(&call.fingerprint);
                }
            }
            RunEventKind::ToolFinished { .. } => self.tool_finished(event),
            // It goes on elsewhere.
            RunEventKind::RunParked { .. } => self.forget(&event.run_id),
            RunEventKind::RunFinished { report } => {
                self.model_call_cancelled(event);
                let ends = match report.outcome {
                    Outcome::Completed => &mut self.counted.runs_completed,
                    Outcome::Limited => &mut self.counted.runs_limited,
                    Outcome::Failed => &mut self.counted.runs_failed,
                    Outcome::Cancelled => &mut self.counted.runs_cancelled,
                };
                *ends += 1;
                self.forget(&event.run_id);
            }
            _ => {}
        }
    }

    /// Lets a run go that was dropped before its end.
    pub fn forget(&mut self, run_id: &str) {
        self.runs.remove(run_id);
    }

    /// What was counted so far.
    pub fn snapshot(&self) -> Snapshot {
        snapshot(&self.counted, &self.tools, &self.models)
    }

    fn run(&mut self, event: &RunEvent) -> &mut OpenRun {
        if self.runs.len() >= MAX_RUNS && !self.runs.contains_key(&event.run_id) {
            let silent = self.runs.iter().min_by_key(|(_, run)| run.last);
            if let Some(id) = silent.map(|(id, _)| Arc::clone(id)) {
                self.runs.remove(&id);
            }
        }
        let run = self
            .runs
            .entry(Arc::clone(&event.run_id))
            .or_insert_with(|| OpenRun {
                last: event.time,
                model: None,
                next_model: None,
                asked: None,
                calls: HashMap::new(),
                answered: HashSet::new(),
            });
        run.last = event.time;
        run
    }

    /// The model call that was under way and since when, which it is not any more.
    fn model_call_ended(&mut self, event: &RunEvent) -> Option<(Timestamp, ModelId)> {
        self.run(event).asked.take()
    }

    fn model_answered(&mut self, event: &RunEvent, usage: &Usage) {
        let Some((asked, model)) = self.model_call_ended(event) else {
            return;
        };
        let cost = self.cost.as_ref().and_then(|cost| cost(&model, usage));
        let counted = self.model(&model, true);
        counted.requests.total += 1;
        counted.requests.successful += 1;
        counted
            .latency
            .record(milliseconds_between(asked, event.time));
        counted.tokens.add(usage);
        match cost {
            Some(usd) => counted.cost_usd += usd,
            None => counted.unpriced += 1,
        }
    }

    fn model_call_cancelled(&mut self, event: &RunEvent) {
        if let Some((_, model)) = self.model_call_ended(event) {
            let counted = self.model(&model, false);
            counted.requests.total += 1;
            counted.requests.cancelled += 1;
        }
    }

    fn tool_finished(&mut self, event: &RunEvent) {
        let RunEventKind::ToolFinished {
            id,
            is_error,
            failure,
            cached,
            attempts,
            duration_ms,
            ..
        } = &event.kind
        else {
            return;
        };
        let run = self.run(event);
        let Some(call) = run.calls.remove(id) else {
            // It was planned in another process, before the run was stored.
            return;
        };
        if !is_error {
            run.answered.insert(call.fingerprint);
        }
        let model = run.model.clone();
        let finished = FinishedCall {
            is_error: *is_error,
            failure: *failure,
            cached: *cached,
            attempts: *attempts,
            repeated: call.repeated,
        };
        let key = if *failure == Some(ToolFailure::UnknownTool) {
            // The model made the name up, so there may be any number of them.
            (None, "(unknown)".to_owned())
        } else {
            call.key
        };
        let (calls, latency) = self.tool(key);
        calls.add(finished);
        if *attempts > 0 && !*cached {
            latency.record(*duration_ms);
        }
        if let Some(model) = model {
            self.model(&model, true).tool_calls.add(finished);
        }
    }

    fn tool(&mut self, key: ToolKey) -> &mut (CallCounts, Histogram) {
        let key = if self.tools.len() < MAX_NAMES || self.tools.contains_key(&key) {
            key
        } else {
            (None, "(other)".to_owned())
        };
        self.tools.entry(key).or_default()
    }

    /// What is counted of a model, which may have answered.
    fn model(&mut self, model: &ModelId, has_answered: bool) -> &mut ModelMetrics {
        let name = model.to_string();
        let (name, model) =
            if self.models.contains_key(&name) || self.is_counted_apart(model, has_answered) {
                (name, model.clone())
            } else {
                let other = ModelId::new("(other)", "(other)");
                (other.to_string(), other)
            };
        self.models
            .entry(name)
            .or_insert_with(|| ModelMetrics::new(model))
    }

    /// Whether a model that was not counted yet is from now on.
    fn is_counted_apart(&mut self, model: &ModelId, has_answered: bool) -> bool {
        if self.models.len() >= MAX_NAMES {
            return false;
        }
        if self.known.as_ref().is_none_or(|known| known(model)) {
            return true;
        }
        let is_counted = has_answered && self.strangers < MAX_STRANGERS;
        self.strangers += usize::from(is_counted);
        is_counted
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics")
            .field("tools", &self.tools.len())
            .field("models", &self.models.len())
            .field("runs", &self.runs.len())
            .finish_non_exhaustive()
    }
}

/// The same for calls of the same tool whose inputs are equal as JSON, whatever the order of their
/// keys.
pub(super) fn fingerprint(key: &ToolKey, input: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    canonical_value(input).hash(&mut hasher);
    hasher.finish()
}

/// What was counted, put together.
pub(super) fn snapshot(
    counted: &Snapshot,
    tools: &BTreeMap<ToolKey, (CallCounts, Histogram)>,
    models: &BTreeMap<String, ModelMetrics>,
) -> Snapshot {
    let tools = tools
        .iter()
        .map(|((server, tool), (calls, latency))| ToolMetrics {
            server: server.clone(),
            tool: tool.clone(),
            calls: *calls,
            latency: latency.clone(),
        });
    Snapshot {
        tools: tools.collect(),
        models: models.values().cloned().collect(),
        ..counted.clone()
    }
}

fn milliseconds_between(since: Timestamp, now: Timestamp) -> u64 {
    u64::try_from(now.as_millisecond() - since.as_millisecond()).unwrap_or(0)
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
