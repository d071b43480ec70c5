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

pub use annotations::only_reads;
pub use failure::ToolFailure;
