//! Updates about tasks that a server sends on its own.

use rmcp::model::DetailedTask;
use serde_json::Value;
use tokio::sync::broadcast;

/// Number of updates that are kept for a slow receiver. It polls in any case.
const CHANNEL_CAPACITY: usize = 64;

/// Task updates that a server sends, for all calls that wait for a task.
pub(crate) struct TaskUpdates(broadcast::Sender<Value>);

impl Default for TaskUpdates {
    fn default() -> Self {
        Self(broadcast::Sender::new(CHANNEL_CAPACITY))
    }
}

impl TaskUpdates {
    pub(crate) fn publish(&self, task: &DetailedTask) {
        // Fails if no call waits for a task.
        let _ = self.0.send(serde_json::to_value(task).unwrap_or_default());
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Value> {
        self.0.subscribe()
    }
}
