//! Checks of the source code: lints, layers, snapshots and documentation.

pub(crate) mod docs;
pub(crate) mod layers;
pub(crate) mod lint;
pub(crate) mod snapshots;
mod tidy;
