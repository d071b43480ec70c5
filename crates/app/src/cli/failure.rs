//! How a command ends.

use std::{fmt, process::ExitCode};

/// The exit codes, which scripts rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    /// Answered, done.
    Success = 0,
    /// The run failed.
    Failed = 1,
    /// Wrong usage or configuration.
    Usage = 2,
    /// A limit was reached.
    Limited = 3,
    /// The run waits for somebody's word and is stored.
    Waiting = 4,
    /// Somebody interrupted it.
    Interrupted = 130,
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code as u8)
    }
}

/// An error that ends a command, and its exit code.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub code: Code,
    /// What happened and what to do.
    pub error: anyhow::Error,
}

impl Failure {
    /// The user must change something: exit code 2.
    pub fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self {
            code: Code::Usage,
            error: error.into(),
        }
    }

    /// It did not work: exit code 1.
    pub fn run(error: impl Into<anyhow::Error>) -> Self {
        Self {
            code: Code::Failed,
            error: error.into(),
        }
    }

    /// Whether nobody reads what the command writes.
    pub(super) fn is_broken_pipe(&self) -> bool {
        self.error.chain().any(|cause| {
            cause
                .downcast_ref::<std::io::Error>()
                .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
        })
    }

    /// Says what was being done.
    #[must_use]
    pub fn context(self, context: impl fmt::Display + Send + Sync + 'static) -> Self {
        Self {
            error: self.error.context(context),
            ..self
        }
    }
}
