//! Tool calls around the run: their arguments, their results, tool search and Rust functions as
//! tools.

mod annotations;
pub mod arguments;
mod failure;
pub mod functions;
pub mod pattern;
pub(crate) mod per_definition;
pub mod results;
pub mod search;
pub mod tokens;

use switchboard_domain::ToolOutput;

pub use annotations::is_read_only;
pub use failure::ToolFailure;

/// Creates an error result that contains `text`.
pub(crate) fn create_error_output(text: impl Into<String>) -> ToolOutput {
    ToolOutput {
        is_error: true,
        ..ToolOutput::text(text)
    }
}
