//! Starts and resumes runs for requests in the client protocols (dialects).

pub(crate) mod durable_request;
pub(crate) mod ephemeral_request;
