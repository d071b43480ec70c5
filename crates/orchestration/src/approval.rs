//! Which tool calls need a person's word.

use serde::{Deserialize, Serialize};
use switchboard_domain::ToolAnnotations;

/// Which tool calls need a person's word. A tool that says it is read-only runs without asking
/// under every policy; the word is the server's own, so only configure servers you trust. A tool that
/// says it is read-only and destructive contradicts itself and counts as one that may change something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalPolicy {
    /// Every configured tool may run.
    #[default]
    All,
    /// Tools that do not say they are read-only are asked for. With nobody to ask they are not run.
    Ask,
    /// Tools that do not say they are read-only are not run.
    None,
}

/// What the policy says of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Run,
    Ask,
    Refuse,
}

impl ApprovalPolicy {
    pub(crate) fn verdict(self, annotations: ToolAnnotations) -> Verdict {
        match self {
            _ if only_reads(annotations) => Verdict::Run,
            Self::All => Verdict::Run,
            Self::Ask => Verdict::Ask,
            Self::None => Verdict::Refuse,
        }
    }
}

/// Whether a tool says, without contradicting itself, that it changes nothing.
pub(crate) fn only_reads(annotations: ToolAnnotations) -> bool {
    annotations.read_only == Some(true) && annotations.destructive != Some(true)
}
