//! Write transactions, and the thread that performs them.

mod audit;
mod call_rates;
pub(crate) mod queue;
pub(crate) mod transaction;
