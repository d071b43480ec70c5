//! Evaluations: suites, what they are run with, and what comes out on a terminal.

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
