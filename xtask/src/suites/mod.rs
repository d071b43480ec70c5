//! Runs test suites: the tests of the workspace, and suites that need third-party software.

pub(crate) mod bfcl;
pub(crate) mod browser;
pub(crate) mod clients;
pub(crate) mod conformance;
pub(crate) mod oracle;
pub(crate) mod peers;
pub(crate) mod postgres;
pub(crate) mod schemathesis;
mod served;
pub(crate) mod test;
