//! Tests of the behaviour and the defects of the source systems, one test for each line of the
//! tables in docs/orchestration.md.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod approvals;
mod batches;
mod cancelling;
mod changes;
mod context;
mod crashes;
mod deadlines;
mod defects;
mod durable_runs;
mod early_decisions;
mod edges;
mod fallbacks;
mod gather_format;
mod limits;
mod memory_store;
mod questions;
mod releases;
mod request_content;
mod resuming;
mod streams;
mod support;
mod tools;
