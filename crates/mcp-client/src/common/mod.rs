//! Code that does not depend on the other modules.

pub(crate) mod backoff;
pub(crate) mod error;
pub(crate) mod sync;
