//! Measures how well a model uses tools, and keeps runs so that they can be had again.
//!
//! - [`recording`]: what models and tools said in a run, written down as it happens and said again later:
//!   in tests, without network and keys.
//! - [`suite`]: scenarios, with the calls and answers that are right.
//! - [`runner`]: runs them, many at once.
//! - [`scoring`]: whether the calls of a run were these.
//! - [`bfcl`]: suites from the data of the Berkeley Function Calling Leaderboard.
//! - [`report`]: every run, and what they add up to, also as an HTML page and beside an earlier report.
#![deny(missing_docs)]

pub mod bfcl;
pub mod recording;
pub mod report;
pub mod runner;
pub mod scoring;
pub mod suite;
