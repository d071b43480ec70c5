//! Starts and resumes runs for requests in the client protocols (dialects).

pub(crate) mod durable;
pub(crate) mod ephemeral;
