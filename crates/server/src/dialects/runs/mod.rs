//! Starting and resuming the runs of dialect requests.

pub(crate) mod durable;
pub(crate) mod ephemeral;
