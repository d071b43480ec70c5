//! Starts and resumes runs for the requests of dialects.

pub(crate) mod durable;
pub(crate) mod ephemeral;
