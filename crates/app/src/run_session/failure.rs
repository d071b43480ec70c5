//! Exit codes and errors of commands.

use std::{fmt, process::ExitCode};

/// Exit codes of commands. Scripts rely on their values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    /// The command succeeded.
    Success = 0,
    /// The run failed.
    Failed = 1,
    /// Wrong usage or configuration.
    Usage = 2,
    /// A limit was reached.
    Limited = 3,
    /// The run is stored and waits for an approval decision.
    Waiting = 4,
    /// A signal interrupted the command.
    Interrupted = 130,
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code as u8)
    }
}

/// An error that ends a command, and its exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Exit code of the command.
    pub(crate) code: Code,
    /// Message about what happened and what the user can do.
    pub(crate) error: anyhow::Error,
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::runtime_error(error)
    }
}

impl Failure {
    /// Creates an error that the user must fix: exit code 2.
    pub(crate) fn usage_error(error: impl Into<anyhow::Error>) -> Self {
        Self {
            code: Code::Usage,
            error: error.into(),
        }
    }

    /// Creates a runtime error: exit code 1.
    pub(crate) fn runtime_error(error: impl Into<anyhow::Error>) -> Self {
        Self {
            code: Code::Failed,
            error: error.into(),
        }
    }

    /// Returns whether the error is a broken pipe: the reader of standard output has exited.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        self.error.chain().any(|cause| {
            cause
                .downcast_ref::<std::io::Error>()
                .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
        })
    }

    /// Prefixes the error message with a description of the failed operation.
    #[must_use]
    pub(crate) fn add_context(self, context: impl fmt::Display + Send + Sync + 'static) -> Self {
        Self {
            error: self.error.context(context),
            ..self
        }
    }
}
