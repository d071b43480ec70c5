//! Counting of run events or audit records for the metrics.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    hash::{DefaultHasher, Hash as _, Hasher},
    sync::Arc,
};

use jiff::Timestamp;
use serde_json::Value;
use switchboard_domain::ModelId;

use super::{Histogram, MetricsSnapshot, ModelMetrics, ToolCallCounts, ToolMetrics};
use crate::{
    Outcome, RunEvent, ToolFailure,
    observe::audit::{
        AuditKind, AuditRecord, AuditedModelCall, AuditedRun, AuditedToolCall, CostFunction,
        ModelCallResult, RunEventReducer, RunStage, ToolCallStage,
    },
    tools::arguments::canonical_json_value,
};

/// Maximum number of tools that have their own counters, and also the maximum number of models that
/// have their own counters. Further tools and models are counted together as `(other)`, because
/// servers and configurations can supply any number of names.
const MAX_NAMES: usize = 1_000;

/// Maximum number of models that are counted separately although the program does not know them:
/// they are neither configured nor in the program's list of models (catalogue).
const MAX_UNKNOWN_MODELS: usize = 100;

/// Maximum number of runs for which [`Metrics::count_event`] stores an [`UnfinishedRun`]. At the
/// first event of a further run, the state of the run that had no event for the longest time is
/// removed.
const MAX_RUNS: usize = 10_000;

/// Function that returns whether the program knows a model: whether the model is configured or in
/// the program's list of models (catalogue).
pub type KnownModelPredicate = Arc<dyn Fn(&ModelId) -> bool + Send + Sync>;

type ToolKey = (Option<String>, String);

/// Counters of runs, tool calls and model calls, for a [`MetricsSnapshot`].
#[derive(Default, derive_more::Debug)]
#[debug("Metrics {{ runs: {}, .. }}", runs.len())]
pub struct Metrics {
    run_counts: MetricsSnapshot,
    tools: BTreeMap<ToolKey, (ToolCallCounts, Histogram)>,
    models: BTreeMap<String, ModelMetrics>,
    /// Number of separately counted models that are neither configured nor in the catalogue.
    unknown_models: usize,
    runs: HashMap<Arc<str>, UnfinishedRun>,
    cost: Option<CostFunction>,
    is_known: Option<KnownModelPredicate>,
}

/// State that is necessary to count the events of one run. Removed when the run ends.
#[derive(Default)]
struct UnfinishedRun {
    /// Converter from the run's events to audit data. Not used if the caller supplies audit records
    /// instead of events.
    fold: RunEventReducer,
    last_event: Timestamp,
    is_parked: bool,
    model: Option<ModelId>,
    /// Ids of the tool calls that have no result yet.
    open_calls: HashSet<String>,
    /// Hashes of the calls that had a successful result before the latest model call. A new call
    /// with an equal hash counts as unnecessary.
    answered: HashSet<u64>,
    /// Hashes of the calls whose successful result arrived after the latest model call. They are
    /// not in `answered` yet, because equal calls in one model answer do not count as unnecessary.
    newly_answered: Vec<u64>,
}

impl Metrics {
    /// Sets the function that computes the costs of model calls.
    #[must_use]
    pub fn with_cost_function(mut self, cost: CostFunction) -> Self {
        self.cost = Some(cost);
        self
    }

    /// Sets the function that decides which models are known, for programs whose clients choose the
    /// model name.
    ///
    /// An unknown model is counted separately after its first answer, up to a limit of 100 models.
    /// Otherwise it is counted as `(other)`. Without this function, every model is known.
    #[must_use]
    pub fn with_known_models(mut self, is_known: KnownModelPredicate) -> Self {
        self.is_known = Some(is_known);
        self
    }

    /// Counts one run event. The events of each run must arrive in order.
    pub fn count_event(&mut self, event: &RunEvent) {
        if self.runs.len() >= MAX_RUNS && !self.runs.contains_key(&event.run_id) {
            let oldest = self.runs.iter().min_by_key(|(_, run)| run.last_event);
            if let Some(id) = oldest.map(|(id, _)| Arc::clone(id)) {
                self.runs.remove(&id);
            }
        }
        let run = self.runs.entry(Arc::clone(&event.run_id)).or_default();
        run.last_event = event.time;
        for fact in run.fold.reduce_event(event, self.cost.as_ref()) {
            self.count_audited_action(&event.run_id, &fact);
        }
    }

    /// Counts one audit record of another process. The records of each run must arrive in order.
    ///
    /// Audit records contain redacted inputs of limited size. Two calls whose inputs differ only in
    /// the removed parts count as a call and its unnecessary repetition.
    pub fn count_audit_record(&mut self, record: &AuditRecord) {
        self.count_audited_action(&record.run_id, &record.kind);
    }

    /// Forgets a run that was dropped before it ended, so that it no longer counts as unfinished.
    /// Its calls so far stay counted.
    pub fn forget_run(&mut self, run_id: &str) {
        self.runs.remove(run_id);
    }

    /// Returns a copy of the current counts.
    pub fn take_snapshot(&self) -> MetricsSnapshot {
        let tools = self.tools.iter();
        let tools = tools.map(|((server, tool), (calls, latency))| ToolMetrics {
            server: server.clone(),
            tool: tool.clone(),
            calls: *calls,
            latency: latency.clone(),
        });
        MetricsSnapshot {
            tools: tools.collect(),
            models: self.models.values().cloned().collect(),
            ..self.run_counts.clone()
        }
    }

    /// Returns the number of tool calls that started and have no result. Snapshots do not include
    /// them.
    pub fn unfinished_call_count(&self) -> usize {
        self.runs.values().map(|run| run.open_calls.len()).sum()
    }

    /// Returns the number of runs that started, have not ended and are not parked (stored until an
    /// approval decision arrives).
    pub fn unfinished_run_count(&self) -> usize {
        self.runs.values().filter(|run| !run.is_parked).count()
    }

    /// Returns the number of runs that are stored and wait for an approval decision.
    pub fn parked_run_count(&self) -> usize {
        self.runs.values().filter(|run| run.is_parked).count()
    }

    fn count_audited_action(&mut self, run_id: &str, fact: &AuditKind) {
        match fact {
            AuditKind::Run(entry) => self.count_run(run_id, entry),
            AuditKind::ModelCall(call) => self.count_model_call(run_id, call),
            AuditKind::ToolCall(call) => self.count_tool_call(run_id, call),
            AuditKind::Approval(_) | AuditKind::Question(_) => {}
        }
    }

    fn find_or_add_run(&mut self, run_id: &str) -> &mut UnfinishedRun {
        self.runs.entry(run_id.into()).or_default()
    }

    fn count_run(&mut self, run_id: &str, entry: &AuditedRun) {
        match entry.moment {
            RunStage::Started | RunStage::Resumed => {
                let run = self.find_or_add_run(run_id);
                // A resumed run counts as started, unless this process already counted its start.
                let is_new = entry.moment == RunStage::Started || run.model.is_none();
                run.is_parked = false;
                run.model.get_or_insert_with(|| entry.model.clone());
                self.run_counts.runs_started += u64::from(is_new);
            }
            RunStage::Parked => self.find_or_add_run(run_id).is_parked = true,
            RunStage::Finished => {
                let count = match entry.outcome {
                    Some(Outcome::Completed) => &mut self.run_counts.runs_completed,
                    Some(Outcome::Limited) => &mut self.run_counts.runs_limited,
                    Some(Outcome::Cancelled) => &mut self.run_counts.runs_cancelled,
                    Some(Outcome::Failed) | None => &mut self.run_counts.runs_failed,
                };
                *count += 1;
                self.runs.remove(run_id);
            }
        }
    }

    fn count_model_call(&mut self, run_id: &str, call: &AuditedModelCall) {
        let model = ModelId::new(call.provider.clone(), call.model.clone());
        let run = self.find_or_add_run(run_id);
        run.model = Some(model.clone());
        run.answered.extend(run.newly_answered.drain(..));
        let counts = self.find_or_add_model(&model, call.end == ModelCallResult::Answered);
        counts.requests.total += 1;
        match call.end {
            ModelCallResult::Failed => counts.requests.failed += 1,
            ModelCallResult::Cancelled => counts.requests.cancelled += 1,
            ModelCallResult::Answered => {
                counts.requests.successful += 1;
                counts.latency.record_duration(call.duration_ms);
                if let Some(usage) = &call.usage {
                    counts.tokens.add_usage(usage);
                }
                match call.cost_usd {
                    Some(usd) => counts.cost_usd += usd,
                    None => counts.unpriced += 1,
                }
            }
        }
    }

    fn count_tool_call(&mut self, run_id: &str, call: &AuditedToolCall) {
        let run = self.find_or_add_run(run_id);
        if call.moment == ToolCallStage::Started {
            run.open_calls.insert(call.id.clone());
            return;
        }
        run.open_calls.remove(&call.id);
        let mut tool = (call.server.clone(), call.tool.clone());
        let key = hash_tool_call(&tool, &call.input);
        let repeated = run.answered.contains(&key);
        if call.is_error != Some(true) {
            run.newly_answered.push(key);
        }
        let model = run.model.clone();
        if call.failure == Some(ToolFailure::UnknownTool) {
            // The model called a tool that does not exist, so the name can be any text.
            tool = (None, "(unknown)".to_owned());
        } else if self.tools.len() >= MAX_NAMES && !self.tools.contains_key(&tool) {
            tool = (None, "(other)".to_owned());
        }
        let (calls, latency) = self.tools.entry(tool).or_default();
        calls.add_tool_call(call, repeated);
        if call.attempts.unwrap_or(0) > 0 && call.cached != Some(true) {
            latency.record_duration(call.duration_ms.unwrap_or(0));
        }
        if let Some(model) = model {
            let counts = self.find_or_add_model(&model, true);
            counts.tool_calls.add_tool_call(call, repeated);
        }
    }

    /// Returns the counters of a model, or the shared counters `(other)` if the model is not
    /// counted separately.
    fn find_or_add_model(&mut self, model: &ModelId, has_answered: bool) -> &mut ModelMetrics {
        let mut name = model.to_string();
        let mut model = model.clone();
        if !self.models.contains_key(&name) && !self.reserve_model_counters(&model, has_answered) {
            model = ModelId::new("(other)", "(other)");
            name = model.to_string();
        }
        let counts = self.models.entry(name);
        counts.or_insert_with(|| ModelMetrics::new(model))
    }

    /// Returns whether a model that has no counters yet gets separate counters. Increments
    /// `unknown_models` if an unknown model gets separate counters.
    fn reserve_model_counters(&mut self, model: &ModelId, has_answered: bool) -> bool {
        let is_known = self.is_known.as_ref();
        let is_known = is_known.is_none_or(|is_known| is_known(model));
        let has_room = is_known || has_answered && self.unknown_models < MAX_UNKNOWN_MODELS;
        let is_separate = self.models.len() < MAX_NAMES && has_room;
        self.unknown_models += usize::from(is_separate && !is_known);
        is_separate
    }
}

/// Returns a hash that is equal for calls of the same tool with equal input. The order of object
/// keys does not matter.
fn hash_tool_call(tool: &ToolKey, input: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    tool.hash(&mut hasher);
    canonical_json_value(input).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
