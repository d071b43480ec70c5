//! Where a run is stored while it goes on, so that another process can take it up.

use async_trait::async_trait;

use crate::Run;

/// Stores runs while they go on, as a whole ([`Run`] is serializable) or step by step ([`Run::snapshot`]). What [`Agent::resume`](crate::Agent::resume) is given is what was
/// stored last.
#[async_trait]
pub trait Checkpoints: Send + Sync {
    /// The run has come to such a point. An error does not end the run; it is told as a warning. Without its
    /// intent stored, a call that may do harm twice does not leave, and its result says why: whoever would
    /// rather have it run all the same gives no error at [`Checkpoint::Leaving`].
    async fn reached(&self, run: &Run, point: Checkpoint) -> Result<(), CheckpointError>;
}

/// A point of a run at which it may be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Checkpoint {
    /// The run is about to begin: its model was not asked yet.
    Begun,
    /// The model's answer is in the run, and nothing was told of its end or of the calls in it. Whoever stores
    /// the run here does not pay for an answer twice.
    ModelAnswered,
    /// Tool calls have their results in the run, and nothing was told of that. Where the run is stored here,
    /// whoever saw a call finish can rely on it never running again.
    ToolAnswered,
    /// Somebody is about to be asked about tool calls, which may take long; or has given a word about one, and nothing
    /// was told of that.
    Waiting,
    /// Tool calls are about to leave together, and one of them may do harm if it runs twice: their intent is
    /// in the run. Whoever stores nothing here may run them twice after a crash.
    Leaving,
    /// What left has its result, and nothing that stores the run comes next.
    Settled,
    /// The run is over and need not be kept.
    Over,
}

/// A run could not be stored.
#[derive(Debug, thiserror::Error)]
#[error("the run could not be stored: {message}")]
pub struct CheckpointError {
    /// What went wrong.
    pub message: String,
    /// Why.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}
