//! Command-line arguments that several commands share.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use switchboard_orchestration::ApprovalPolicy;

use super::failure::Failure;
use crate::config::environment::Environment;

/// Command-line arguments that select configuration files and MCP server files.
#[derive(Debug, Clone, Args)]
pub(crate) struct GlobalArgs {
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

/// Values of `--approve`, which select the tool calls that need an approval.
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

/// Environment variable for `--approve`. clap does not read it, because the value `all` approves
/// calls in advance only if the user types the flag.
pub(crate) const APPROVE: &str = "SWITCHBOARD_APPROVE";

impl Approve {
    /// Reads the environment variable `SWITCHBOARD_APPROVE`. Returns an error for an unknown value.
    pub(crate) fn read_approval_variable(
        environment: &Environment,
    ) -> Result<Option<Self>, Failure> {
        let value = environment.get(APPROVE);
        let read = value.map(|value| {
            let invalid = |_| anyhow!("the variable {APPROVE} must be ask, all, none or later");
            Self::from_str(value, false).map_err(|error| Failure::usage_error(invalid(error)))
        });
        read.transpose()
    }
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
