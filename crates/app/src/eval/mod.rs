//! Evaluations: suites, the engine, servers and the output at a terminal.

pub(crate) mod comparison_table;
pub(crate) mod document_positions;
pub(crate) mod engine;
mod files;
pub(crate) mod progress;
pub(crate) mod servers;
pub(crate) mod shipped_suites;
pub(crate) mod suite_origin;
pub(crate) mod suites;
pub(crate) mod tables;
