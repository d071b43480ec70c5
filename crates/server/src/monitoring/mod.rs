//! Metrics for `/metrics`, and the check of the session store for `/readyz`.

pub(crate) mod metrics;
pub(crate) mod readiness;
