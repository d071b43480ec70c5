//! Errors, retry delays and locks that all other modules use.

pub(crate) mod backoff;
pub(crate) mod error;
pub(crate) mod sync;
