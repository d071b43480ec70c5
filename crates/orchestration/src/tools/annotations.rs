//! Interpretation of tool annotations.

use switchboard_domain::ToolAnnotations;

/// Returns whether a tool declares itself read-only and not destructive.
pub fn is_read_only(annotations: ToolAnnotations) -> bool {
    annotations.read_only == Some(true) && annotations.destructive != Some(true)
}
