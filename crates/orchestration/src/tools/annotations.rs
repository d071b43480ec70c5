//! Interpretation of tool annotations, and the annotations of built-in tools.

use switchboard_domain::ToolAnnotations;

/// Returns whether a tool declares itself read-only and does not declare itself destructive.
pub fn is_read_only(annotations: ToolAnnotations) -> bool {
    annotations.read_only == Some(true) && annotations.destructive != Some(true)
}

/// Annotations of the built-in tools, which the run executes itself.
pub(super) const BUILTIN_TOOL: ToolAnnotations = ToolAnnotations {
    read_only: Some(true),
    destructive: Some(false),
    idempotent: Some(true),
    open_world: Some(false),
};
