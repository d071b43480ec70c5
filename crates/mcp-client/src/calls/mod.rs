//! Calls of tools and other requests to servers: attempts, deadlines and retries.

pub(crate) mod deadline;
pub(crate) mod failure;
pub(crate) mod multi_round;
pub(crate) mod request_retries;
pub(crate) mod tasks;
