//! Settings of the server `workspace`.

use std::{path::PathBuf, time::Duration};

/// Root folder and permissions of the bundled server `workspace`.
#[derive(Debug, Clone)]
pub struct WorkspaceOptions {
    /// The root folder. The file and data tools access only files below it.
    pub root: PathBuf,
    /// Whether the server omits all tools that change files or run commands.
    pub read_only: bool,
    /// The commands that the tools `compile` and `test_run` may run, such as `npm test` or
    /// `cargo check`. No shell runs them: white space separates words, and quotes (`'` or `"`)
    /// group words. The prefix `compile:` or `test:` selects the tool. Without a prefix, a command
    /// with `test` in one of its words belongs to `test_run`, and any other command to `compile`.
    /// If the last word is `{args}`, the model may add arguments: no options, no URLs, and no paths
    /// that leave the folder, contain a link or name a secret file.
    pub commands: Vec<String>,
    /// Names of hidden or secret files and folders that the server may access, such as `.github` or
    /// `.env.example`.
    pub allowed_names: Vec<String>,
    /// Environment variables for commands: `NAME` to pass on a variable of this process, or
    /// `NAME=VALUE`. Commands also inherit a short list of variables without secrets.
    pub environment: Vec<String>,
    /// Time-out of one command. The default is 10 minutes.
    pub command_timeout: Duration,
    /// Time-out of one data query. The default is 10 seconds.
    pub query_timeout: Duration,
    /// Maximum size of a file to read or write, in bytes. The default is 8 MiB.
    pub max_file_bytes: u64,
}

impl WorkspaceOptions {
    /// Creates options that allow the tools to read and write files below the folder `root`, but
    /// not to run commands.
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
}
