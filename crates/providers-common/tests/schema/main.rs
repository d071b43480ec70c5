//! Tests of the schema compiler through its public API: each rule, random JSON, and the schemas of
//! real tools.
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
