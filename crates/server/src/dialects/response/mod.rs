//! Builds the bodies of HTTP responses from the events of runs.

pub(crate) mod collected_response;
pub(crate) mod paused_runs;
pub(crate) mod response_state;
pub(crate) mod run_failure;
pub(crate) mod run_response;
pub(crate) mod sse_frames;
