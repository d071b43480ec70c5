//! Connections, extractors and middleware that all routes share.

pub(crate) mod concurrency_limits;
pub(crate) mod extractors;
pub(crate) mod run_headers;
pub(crate) mod security;
pub(crate) mod serve;
pub(crate) mod sse;
mod write_timeout;
