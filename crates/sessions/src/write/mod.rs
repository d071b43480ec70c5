//! Writes, and the task that performs them.

pub(crate) mod events;
pub(crate) mod import;
pub(crate) mod instance;
pub(crate) mod ledger;
pub(crate) mod queue;
pub(crate) mod run;
pub(crate) mod secret;
pub(crate) mod session;
pub(crate) mod transaction;
