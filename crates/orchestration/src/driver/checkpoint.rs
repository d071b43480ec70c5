//! Checkpoints: defined points at which a run is stored, so that another process can resume it.

use async_trait::async_trait;

use crate::Run;

/// Stores runs at checkpoints, as a whole ([`Run`] is serializable) or incrementally
/// ([`Run::snapshot`]). [`Agent::resume`](crate::Agent::resume) takes the latest stored run.
#[async_trait]
pub trait Checkpoints: Send + Sync {
    /// Stores the run. An error does not end the run; it becomes a warning.
    ///
    /// If [`Checkpoint::Leaving`] returns an error, calls that are not safe to repeat are not sent,
    /// and their result states the reason. An implementation that accepts repeated calls after a
    /// crash returns `Ok` there.
    async fn reached(&self, run: &Run, point: Checkpoint) -> Result<(), CheckpointError>;
}

/// A point at which a run may be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Checkpoint {
    /// Before the first model call.
    Begun,
    /// The run has a model response, and no event of its end or of its calls was emitted. A run
    /// that is stored here does not pay for the response twice.
    ModelAnswered,
    /// The run has tool results, and their events were not emitted. A call whose end was published
    /// does not run again if the run is stored here.
    ToolAnswered,
    /// Before approval requests, which may take long, and after a decision whose events were not
    /// emitted.
    Waiting,
    /// Before calls that include one that is not safe to repeat. The run has their intent. Without
    /// a checkpoint here, they may run twice after a crash.
    Leaving,
    /// All sent calls have their results, and no other checkpoint follows directly.
    Settled,
    /// The run is finished and need not be stored.
    Over,
}

/// A run could not be stored.
#[derive(Debug, thiserror::Error)]
#[error("the run could not be stored: {message}")]
pub struct CheckpointError {
    /// Description of the error.
    pub message: String,
    /// The cause.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}
