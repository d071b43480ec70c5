//! Meaning of tool annotations, and the annotations of the tools of a run.

use switchboard_domain::ToolAnnotations;

/// Returns whether a tool declares itself read-only and not destructive.
pub fn is_read_only(annotations: ToolAnnotations) -> bool {
    annotations.read_only == Some(true) && annotations.destructive != Some(true)
}

/// Annotations of the tools that a run executes itself.
pub(super) const BUILTIN_TOOL: ToolAnnotations = ToolAnnotations {
    read_only: Some(true),
    destructive: Some(false),
    idempotent: Some(true),
    open_world: Some(false),
};
