//! How the server `workspace` is started.

use std::{path::PathBuf, time::Duration};

/// What the server `workspace` may do and where. The default reads and writes files below the root
/// and runs no commands.
#[derive(Debug, Clone)]
pub struct WorkspaceOptions {
    pub(super) root: PathBuf,
    pub(super) read_only: bool,
    pub(super) commands: Vec<String>,
    pub(super) allowed_names: Vec<String>,
    pub(super) environment: Vec<String>,
    pub(super) command_timeout: Duration,
    pub(super) query_timeout: Duration,
    pub(super) max_file_bytes: u64,
}

impl WorkspaceOptions {
    /// Everything below this folder, and nothing outside of it.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            read_only: false,
            commands: Vec::new(),
            allowed_names: Vec::new(),
            environment: Vec::new(),
            command_timeout: Duration::from_mins(10),
            query_timeout: Duration::from_secs(10),
            max_file_bytes: 8 << 20,
        }
    }

    /// Leaves out every tool that changes something or runs a command.
    #[must_use]
    pub fn with_read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// A command that `compile` or `test_run` may run, such as `cargo check` or `npm test`. It is
    /// split into words at blanks; quotes (`'` or `"`) keep words together, and there is no shell.
    /// `compile:` or `test:` in front says which tool it is for; without that, a command with `test`
    /// in a word is for `test_run`. A last word `{args}` lets the model add arguments: no options, no
    /// URLs, and no paths that leave the folder, lead through a link or name a secret file. May be
    /// called more than once.
    #[must_use]
    pub fn with_command(mut self, command: impl Into<String>) -> Self {
        self.commands.push(command.into());
        self
    }

    /// Treats files and folders of this name (`.github`, `.env.example`) like any other, although
    /// hidden ones are not written, and ones that usually hold secrets are not read. May be called
    /// more than once.
    #[must_use]
    pub fn with_allowed_name(mut self, name: impl Into<String>) -> Self {
        self.allowed_names.push(name.into());
        self
    }

    /// A variable of the environment of commands: `NAME` takes its value from this process,
    /// `NAME=VALUE` sets it. Commands see a short list of harmless variables otherwise. May be called
    /// more than once.
    #[must_use]
    pub fn with_variable(mut self, variable: impl Into<String>) -> Self {
        self.environment.push(variable.into());
        self
    }

    /// How long a command may run, 10 minutes by default.
    #[must_use]
    pub fn with_command_timeout(mut self, timeout: Duration) -> Self {
        self.command_timeout = timeout;
        self
    }

    /// How long a query may run, 10 seconds by default.
    #[must_use]
    pub fn with_query_timeout(mut self, timeout: Duration) -> Self {
        self.query_timeout = timeout;
        self
    }

    /// How large a file may be to be read or written, in bytes; 8 MiB by default.
    #[must_use]
    pub fn with_max_file_bytes(mut self, bytes: u64) -> Self {
        self.max_file_bytes = bytes;
        self
    }
}
