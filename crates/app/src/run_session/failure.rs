//! Exit codes of commands, and the errors that cause them.

use std::{fmt, process::ExitCode};

/// Exit codes of commands. Their values must not change, because scripts depend on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    /// The command succeeded, or the reader of its standard output exited early.
    Success = 0,
    /// The run or the command failed, or an evaluation missed a threshold.
    Failed = 1,
    /// The command line or the configuration is invalid.
    Usage = 2,
    /// The run stopped at a limit, such as the maximum number of steps.
    Limited = 3,
    /// The run is stored and waits for an approval decision of the user.
    Waiting = 4,
    /// A signal or Ctrl-C interrupted the command.
    Interrupted = 130,
}

impl Code {
    /// Returns [`Code::Failed`] if `failed`, or else [`Code::Success`].
    pub(crate) fn failed_if(failed: bool) -> Self {
        if failed { Self::Failed } else { Self::Success }
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code as u8)
    }
}

/// An error that ends a command, and its exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Exit code that the process returns.
    pub(crate) code: Code,
    /// Message that states what happened and what the user can do.
    pub(crate) error: anyhow::Error,
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::runtime_error(error)
    }
}

impl Failure {
    /// Creates an error of the command line or the configuration, with exit code 2.
    pub(crate) fn usage_error(error: impl Into<anyhow::Error>) -> Self {
        Self {
            code: Code::Usage,
            error: error.into(),
        }
    }

    /// Creates an error that occurred while the command ran, with exit code 1.
    pub(crate) fn runtime_error(error: impl Into<anyhow::Error>) -> Self {
        Self {
            code: Code::Failed,
            error: error.into(),
        }
    }

    /// Returns whether the cause of the error is a broken pipe: the reader of standard output has
    /// exited.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        self.error.chain().any(|cause| {
            cause
                .downcast_ref::<std::io::Error>()
                .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
        })
    }

    /// Adds a description of the failed operation at the start of the error message.
    #[must_use]
    pub(crate) fn add_context(self, context: impl fmt::Display + Send + Sync + 'static) -> Self {
        Self {
            error: self.error.context(context),
            ..self
        }
    }
}
