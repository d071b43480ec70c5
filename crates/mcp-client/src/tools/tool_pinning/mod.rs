//! Tool pins: fingerprints of tool definitions, which are compared within a run and between runs.

pub(crate) mod fingerprint;
pub(crate) mod pins;
pub(crate) mod store;
