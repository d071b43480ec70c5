//! Command line arguments that several commands share.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use switchboard_orchestration::ApprovalPolicy;

use crate::terminal::output::AskOutput;

/// The sources of the configuration.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// Read this file instead of the project's switchboard.yaml (.toml, .json)
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "SWITCHBOARD_CONFIG",
        hide_env_values = true
    )]
    pub(crate) config: Option<PathBuf>,
    /// Add the MCP servers of this file, in the format of any known host (repeatable)
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "SWITCHBOARD_MCP_CONFIG",
        hide_env_values = true
    )]
    pub(crate) mcp_config: Vec<PathBuf>,
}

/// Output format and configuration.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Output format
    #[arg(short, long, value_enum, default_value_t, env = "SWITCHBOARD_OUTPUT")]
    pub(crate) output: AskOutput,
    #[command(flatten)]
    pub(crate) global: Global,
}

/// Which tool calls need approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Approve {
    /// Ask, except for read-only tools
    Ask,
    /// Allow every configured tool
    All,
    /// Allow read-only tools only
    None,
    /// Store the run when an approval is needed; resume it with `switchboard runs resume`
    Later,
}

impl From<Approve> for ApprovalPolicy {
    fn from(approve: Approve) -> Self {
        match approve {
            Approve::Ask | Approve::Later => Self::Ask,
            Approve::All => Self::All,
            Approve::None => Self::None,
        }
    }
}
