//! Checkpoints: the points at which a run is stored, so that another process can resume it.

use async_trait::async_trait;

use crate::Run;

/// A store that saves runs at checkpoints. An implementation saves the whole run ([`Run`] is
/// serializable) or the state and the new messages ([`Run::take_snapshot`]).
/// [`Agent::resume_run`](crate::Agent::resume_run) continues a run that the caller loaded from the
/// store.
#[async_trait]
pub trait CheckpointStore: Send + Sync {
    /// Stores the run at a checkpoint. An error does not end the run; it becomes a warning.
    ///
    /// If this method returns an error at [`Checkpoint::Leaving`], the driver does not send tool
    /// calls that are not safe to repeat, and their results state the error. An implementation that
    /// accepts repeated calls after a crash returns `Ok` at this checkpoint.
    async fn save_checkpoint(&self, run: &Run, point: Checkpoint) -> Result<(), CheckpointError>;
}

/// A point in the execution of a run at which a store may save the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Checkpoint {
    /// The run is new and has not called the model yet.
    Begun,
    /// The run has a model response, but the events of the response are not emitted yet. If the run
    /// is stored here, a crash does not cause a second, paid model call.
    ModelAnswered,
    /// The run has tool results, but their events are not emitted yet. If the run is stored here, a
    /// tool call whose `tool_finished` event was emitted does not run again after a crash.
    ToolAnswered,
    /// The run is about to wait for approval decisions, which may take long. Or the run received a
    /// decision, and the events of this decision are not emitted yet.
    Waiting,
    /// The run is about to send tool calls that are not safe to repeat, and it has recorded their
    /// start. Without a checkpoint here, these calls may run twice after a crash.
    Leaving,
    /// All tool calls that were sent have results. The driver omits this checkpoint if the next
    /// action starts with another checkpoint.
    Settled,
    /// The run is finished. A finished run is not resumed, so a store may ignore this checkpoint.
    Over,
}

/// The error of a store that could not save a run at a checkpoint.
#[derive(Debug, thiserror::Error)]
#[error("the run could not be stored: {message}")]
pub struct CheckpointError {
    /// Description of the storage error for people.
    pub message: String,
    /// The error of the storage system, if any.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}
