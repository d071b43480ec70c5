//! Settings of the server `workspace`.

use std::{path::PathBuf, time::Duration};

/// Root folder and permissions of the server `workspace`. By default, it reads and writes files
/// below the root and runs no commands.
#[derive(Debug, Clone)]
pub struct WorkspaceOptions {
    pub(crate) root: PathBuf,
    pub(crate) read_only: bool,
    pub(crate) commands: Vec<String>,
    pub(crate) allowed_names: Vec<String>,
    pub(crate) environment: Vec<String>,
    pub(crate) command_timeout: Duration,
    pub(crate) query_timeout: Duration,
    pub(crate) max_file_bytes: u64,
}

impl WorkspaceOptions {
    /// Creates options for the files below this folder.
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

    /// Removes all tools that change files or run commands.
    #[must_use]
    pub fn with_read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Allows `compile` or `test_run` to run a command, such as `cargo check` or `npm test`. Spaces
    /// separate words, quotes (`'` or `"`) group them, without a shell. The prefix `compile:`
    /// or `test:` selects the tool; without it, a command with `test` in a word is for `test_run`.
    /// With the last word `{args}`, the model may add arguments: no options, no URLs, and no paths
    /// that leave the folder, contain a link or name a secret file. May be called several times.
    #[must_use]
    pub fn with_command(mut self, command: impl Into<String>) -> Self {
        self.commands.push(command.into());
        self
    }

    /// Allows access to hidden or secret files and folders of this name, such as `.github` or
    /// `.env.example`. May be called several times.
    #[must_use]
    pub fn with_allowed_name(mut self, name: impl Into<String>) -> Self {
        self.allowed_names.push(name.into());
        self
    }

    /// Sets an environment variable of commands: `NAME` with its value in this process, or
    /// `NAME=VALUE`. Commands also inherit a short list of variables without secrets. May be called
    /// several times.
    #[must_use]
    pub fn with_variable(mut self, variable: impl Into<String>) -> Self {
        self.environment.push(variable.into());
        self
    }

    /// Sets the time-out of a command. The default is 10 minutes.
    #[must_use]
    pub fn with_command_timeout(mut self, timeout: Duration) -> Self {
        self.command_timeout = timeout;
        self
    }

    /// Sets the time-out of a query. The default is 10 seconds.
    #[must_use]
    pub fn with_query_timeout(mut self, timeout: Duration) -> Self {
        self.query_timeout = timeout;
        self
    }

    /// Sets the maximum size of files to read or write, in bytes. The default is 8 MiB.
    #[must_use]
    pub fn with_max_file_bytes(mut self, bytes: u64) -> Self {
        self.max_file_bytes = bytes;
        self
    }
}
