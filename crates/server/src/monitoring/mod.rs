//! Metrics, and the readiness of the session store.

pub(crate) mod metrics;
pub(crate) mod readiness;
