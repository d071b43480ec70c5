//! Counts what an audit record tells.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
};

use switchboard_domain::ModelId;

use super::{
    CallCounts, Histogram, ModelMetrics, Snapshot,
    collect::{ToolKey, fingerprint, snapshot},
    snapshot::FinishedCall,
};
use crate::{
    Outcome, ToolFailure,
    observe::audit::{
        AuditKind, AuditRecord, ModelCall, ModelCallEnd, RunEntry, RunMoment, ToolCallEntry,
        ToolCallMoment,
    },
};

/// Counts what happened in runs that are over, or went on elsewhere, from their
/// [audit records](crate::observe::audit): the same as [`Metrics`](super::Metrics) counts of their events.
///
/// What is not in the record cannot be counted. Inputs are kept without secrets and cut to a size, so two
/// calls that differ only in what was left out count as one call and its unnecessary repetition. A call
/// whose end is not in the record is [unfinished](Self::unfinished_calls) and in none of the counts.
#[derive(Default)]
pub struct RecordedMetrics {
    counted: Snapshot,
    tools: BTreeMap<ToolKey, (CallCounts, Histogram)>,
    models: BTreeMap<String, ModelMetrics>,
    runs: HashMap<String, RecordedRun>,
}

/// What has to be known of a run whose end is not in the record yet.
#[derive(Default)]
struct RecordedRun {
    /// It was stored and waits.
    is_parked: bool,
    model: Option<ModelId>,
    /// Calls that left, by the id of their tool use.
    left: HashSet<String>,
    /// Fingerprints of the calls that had their result before the model was asked last.
    known: HashSet<u64>,
    /// Of those that got it since: calls of one answer are not each other's repetitions.
    new: Vec<u64>,
}

impl RecordedMetrics {
    /// Takes a record in. Those of one run must come in order, those of several in any.
    pub fn observe(&mut self, record: &AuditRecord) {
        match &record.kind {
            AuditKind::Run(entry) => self.run(&record.run_id, entry),
            AuditKind::ModelCall(call) => self.model_call(&record.run_id, call),
            AuditKind::ToolCall(call) => self.tool_call(&record.run_id, call),
            AuditKind::Approval(_) | AuditKind::Question(_) => {}
        }
    }

    /// What was counted so far.
    pub fn snapshot(&self) -> Snapshot {
        snapshot(&self.counted, &self.tools, &self.models)
    }

    /// Tool calls that left and of which no end is recorded: they are under way, or the program ended
    /// before they did, and what they did is not known.
    pub fn unfinished_calls(&self) -> usize {
        self.runs.values().map(|run| run.left.len()).sum()
    }

    /// Runs of which neither an end is recorded nor that they wait: they go on, or their program ended
    /// before they did.
    pub fn unfinished_runs(&self) -> usize {
        self.runs.values().filter(|run| !run.is_parked).count()
    }

    /// Runs that wait for somebody's word, as far as the record tells: one that was forgotten is among them.
    pub fn parked_runs(&self) -> usize {
        self.runs.values().filter(|run| run.is_parked).count()
    }

    fn run(&mut self, id: &str, entry: &RunEntry) {
        match entry.moment {
            RunMoment::Started | RunMoment::Resumed => {
                // It goes on as the same run. One whose beginning is not in the record begins with what is.
                if entry.moment == RunMoment::Started || !self.runs.contains_key(id) {
                    self.counted.runs_started += 1;
                }
                let run = self.runs.entry(id.to_owned()).or_default();
                run.is_parked = false;
                run.model.get_or_insert_with(|| entry.model.clone());
            }
            RunMoment::Parked => {
                self.runs.entry(id.to_owned()).or_default().is_parked = true;
            }
            RunMoment::Finished => {
                let ends = match entry.outcome {
                    Some(Outcome::Completed) => &mut self.counted.runs_completed,
                    Some(Outcome::Limited) => &mut self.counted.runs_limited,
                    Some(Outcome::Cancelled) => &mut self.counted.runs_cancelled,
                    Some(Outcome::Failed) | None => &mut self.counted.runs_failed,
                };
                *ends += 1;
                self.runs.remove(id);
            }
        }
    }

    fn model_call(&mut self, run_id: &str, call: &ModelCall) {
        let model = ModelId::new(call.provider.clone(), call.model.clone());
        let run = self.runs.entry(run_id.to_owned()).or_default();
        run.model = Some(model.clone());
        run.known.extend(run.new.drain(..));
        let counted = self.model(&model);
        counted.requests.total += 1;
        match call.end {
            ModelCallEnd::Failed => counted.requests.failed += 1,
            ModelCallEnd::Cancelled => counted.requests.cancelled += 1,
            ModelCallEnd::Answered => {
                counted.requests.successful += 1;
                counted.latency.record(call.duration_ms);
                if let Some(usage) = &call.usage {
                    counted.tokens.add(usage);
                }
                match call.cost_usd {
                    Some(usd) => counted.cost_usd += usd,
                    None => counted.unpriced += 1,
                }
            }
        }
    }

    fn tool_call(&mut self, run_id: &str, call: &ToolCallEntry) {
        let run = self.runs.entry(run_id.to_owned()).or_default();
        if call.moment == ToolCallMoment::Started {
            run.left.insert(call.id.clone());
            return;
        }
        run.left.remove(&call.id);
        let is_error = call.is_error.unwrap_or(false);
        let key = (call.server.clone(), call.tool.clone());
        let fingerprint = fingerprint(&key, &call.input);
        let finished = FinishedCall {
            is_error,
            failure: call.failure,
            cached: call.cached.unwrap_or(false),
            attempts: call.attempts.unwrap_or(0),
            repeated: run.known.contains(&fingerprint),
        };
        if !is_error {
            run.new.push(fingerprint);
        }
        let model = run.model.clone();
        let key = if call.failure == Some(ToolFailure::UnknownTool) {
            // As where events are counted: names that a model made up are one.
            (None, "(unknown)".to_owned())
        } else {
            key
        };
        let (calls, latency) = self.tools.entry(key).or_default();
        calls.add(finished);
        if finished.attempts > 0 && !finished.cached {
            latency.record(call.duration_ms.unwrap_or(0));
        }
        if let Some(model) = model {
            self.model(&model).tool_calls.add(finished);
        }
    }

    fn model(&mut self, model: &ModelId) -> &mut ModelMetrics {
        self.models
            .entry(model.to_string())
            .or_insert_with(|| ModelMetrics::new(model.clone()))
    }
}

impl fmt::Debug for RecordedMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordedMetrics")
            .field("tools", &self.tools.len())
            .field("models", &self.models.len())
            .field("runs", &self.runs.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "recorded_tests.rs"]
mod tests;
