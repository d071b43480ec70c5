//! The schema compiler by its public face: rules side by side, any JSON, and a corpus of tools.
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests are no #[test] functions"
)]

mod answers;
mod checker;
mod corpus;
mod hostile;
mod properties;
mod restored;

mod table;
