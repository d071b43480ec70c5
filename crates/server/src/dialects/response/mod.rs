//! Responses: the events of a run as the body of an HTTP response.

pub(crate) mod collected;
pub(crate) mod failure;
pub(crate) mod frames;
pub(crate) mod paused_runs;
pub(crate) mod run_response;
pub(crate) mod state;
