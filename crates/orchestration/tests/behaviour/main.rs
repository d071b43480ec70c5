//! What the systems behind Switchboard do between a question and an answer, and what they get wrong:
//! one test for each line. docs/orchestration.md says which is which.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod approvals;
mod batches;
mod changes;
mod defects;
mod edges;
mod fallbacks;
mod gather_format;
mod growth;
mod limits;
mod records;
mod resuming;
mod support;
mod tools;
