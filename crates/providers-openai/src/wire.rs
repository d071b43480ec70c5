//! Serde types that both wires share.

pub(crate) mod arguments;
pub(crate) mod media;
pub(crate) mod usage;
