//! Write transactions, and the thread that performs them.

pub(crate) mod queue;
pub(crate) mod transaction;
