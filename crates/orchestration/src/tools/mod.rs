//! Tool calls around the run: their arguments, their results, tool search and Rust functions as tools.

pub mod arguments;
pub mod functions;
pub mod results;
pub mod search;
