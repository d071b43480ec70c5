//! What a model calls in its first answer, as it wrote it.

use std::sync::Arc;

use serde_json::Value;
use switchboard_orchestration::{RunEventKind, ToolCallRecord};

/// The calls of the first answer of a run.
#[derive(Debug, Default)]
pub(crate) struct FirstAnswer {
    calls: Vec<(String, Arc<Value>)>,
    is_there: bool,
    is_over: bool,
}

impl FirstAnswer {
    /// Takes what happened next.
    pub(crate) fn see(&mut self, event: &RunEventKind) {
        match event {
            RunEventKind::ModelCallFinished { .. } => self.is_there = true,
            // Asked for the second time; one that broke off before was none.
            RunEventKind::ModelCallStarted { .. } => self.is_over = self.is_there,
            RunEventKind::ToolPlanned { id, input, .. } if !self.is_over => {
                self.calls.push((id.clone(), Arc::clone(input)));
            }
            _ => {}
        }
    }

    /// The records of these calls, with their input before anything was mended.
    pub(crate) fn of(self, records: &[ToolCallRecord]) -> Vec<ToolCallRecord> {
        let record = |(id, input): (String, Arc<Value>)| {
            let record = records.iter().find(|record| record.id == id)?;
            let mut record = record.clone();
            record.input = input;
            Some(record)
        };
        self.calls.into_iter().filter_map(record).collect()
    }
}
