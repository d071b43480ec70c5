//! Checkpoints: the points at which a run is stored, so that another process can resume it.

use async_trait::async_trait;

use crate::Run;

/// A store for runs at checkpoints. It stores a run as a whole ([`Run`] is serializable) or
/// incrementally ([`Run::take_snapshot`]). [`Agent::resume_run`](crate::Agent::resume_run)
/// continues the latest stored run.
#[async_trait]
pub trait CheckpointStore: Send + Sync {
    /// Stores the run at a checkpoint. An error does not end the run; it becomes a warning.
    ///
    /// If this method returns an error at [`Checkpoint::Leaving`], calls that are not safe to
    /// repeat are not sent, and their results state the reason. An implementation that accepts
    /// repeated calls after a crash returns `Ok` at this checkpoint.
    async fn save_checkpoint(&self, run: &Run, point: Checkpoint) -> Result<(), CheckpointError>;
}

/// A point in the execution at which a run may be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Checkpoint {
    /// The run has not made its first model call.
    Begun,
    /// The run has a model response, but it has not emitted the events of the response and its tool
    /// calls. A run that is stored here does not pay for the response twice.
    ModelAnswered,
    /// The run has tool results, but it has not emitted their events. If the run is stored here, a
    /// call whose end was published does not run again.
    ToolAnswered,
    /// The run is about to request approvals, which may take long, or it received a decision and
    /// has not emitted the events of it.
    Waiting,
    /// The run is about to send calls that are not safe to repeat, and it has recorded their start.
    /// Without a checkpoint here, such calls may run twice after a crash.
    Leaving,
    /// All sent tool calls have results, and no other checkpoint follows directly.
    Settled,
    /// The run is finished, so it need not be stored.
    Over,
}

/// An error of a store that could not store a run.
#[derive(Debug, thiserror::Error)]
#[error("the run could not be stored: {message}")]
pub struct CheckpointError {
    /// Description of the error for people.
    pub message: String,
    /// The underlying error, if any.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}
