//! What the systems behind Switchboard do between a question and an answer, and what they get wrong:
//! one test for each line. docs/orchestration.md says which is which.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod ahead;
mod approvals;
mod batches;
mod cancelling;
mod changes;
mod context;
mod crashes;
mod defects;
mod disk;
mod edges;
mod fallbacks;
mod gather_format;
mod growth;
mod keeping;
mod late;
mod letting_go;
mod limits;
mod questions;
mod records;
mod resuming;
mod support;
mod tools;
