//! What can be written, one operation each: a value that holds everything it needs, so that it can be done again.

pub(crate) mod events;
pub(crate) mod import;
pub(crate) mod instance;
pub(crate) mod ledger;
pub(crate) mod run;
pub(crate) mod secret;
pub(crate) mod session;
