//! Evaluations: suites, the engine, servers and the output at a terminal.

pub(crate) mod changes;
pub(crate) mod engine;
mod files;
pub(crate) mod origin;
pub(crate) mod place;
pub(crate) mod progress;
pub(crate) mod servers;
pub(crate) mod shipped;
pub(crate) mod suites;
pub(crate) mod tables;
