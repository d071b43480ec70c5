//! Evaluations: reads suites, starts their servers, creates their agents and prints results.

pub(crate) mod comparison_table;
pub(crate) mod evaluator;
pub(crate) mod progress;
pub(crate) mod shipped_suites;
mod suite_files;
pub(crate) mod suite_origin;
pub(crate) mod suite_servers;
pub(crate) mod suites;
pub(crate) mod tables;
pub(crate) mod yaml_line_numbers;
