//! Collects the tool calls in the first model response of a run, for the benchmark's rules.

use std::sync::Arc;

use serde_json::Value;
use switchboard_orchestration::{RunEventKind, ToolCallRecord};

/// A collector of the tool calls in a run's first model response, as the model wrote them.
#[derive(Debug, Default)]
pub(crate) struct FirstResponseCalls {
    calls: Vec<(String, Arc<Value>)>,
    has_ended: bool,
    has_second: bool,
}

impl FirstResponseCalls {
    pub(crate) fn add_run_event(&mut self, event: &RunEventKind) {
        match event {
            RunEventKind::ModelCallFinished { .. } => self.has_ended = true,
            // A second response has started only if a response has ended before. A failed model
            // call has no response and therefore does not count.
            RunEventKind::ModelCallStarted { .. } => self.has_second = self.has_ended,
            RunEventKind::ToolPlanned { id, input, .. } if !self.has_second => {
                self.calls.push((id.clone(), Arc::clone(input)));
            }
            _ => {}
        }
    }

    /// Returns the records of the calls in the first response. Their input is replaced by the input
    /// that the model wrote, before repairs. `records` are the records of all calls of the run.
    pub(crate) fn into_call_records(self, records: &[ToolCallRecord]) -> Vec<ToolCallRecord> {
        let record = |(id, input): (String, Arc<Value>)| {
            let mut record = records.iter().find(|record| record.id == id)?.clone();
            record.input = input;
            Some(record)
        };
        self.calls.into_iter().filter_map(record).collect()
    }
}
