//! Builds the bodies of HTTP responses from the events of runs.

pub(crate) mod collected;
pub(crate) mod failure;
pub(crate) mod frames;
pub(crate) mod paused_runs;
pub(crate) mod run_response;
pub(crate) mod state;
