//! Tool pins: fingerprints of tool definitions, which detect changes within a run and between runs.

pub(crate) mod fingerprint;
pub(crate) mod pins;
pub(crate) mod store;
