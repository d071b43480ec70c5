//! Evaluates how well models use tools, and records and replays runs.
//!
//! - [`recording`]: recordings of model and tool traffic, replayed without network and keys.
//! - [`suite`]: scenarios with expected calls and answers.
//! - [`runner`]: runs scenarios concurrently.
//! - [`scoring`]: compares calls with the expected ones.
//! - [`bfcl`]: imports the data of the Berkeley Function Calling Leaderboard.
//! - [`report`]: results, summaries, comparison with an earlier report, and the HTML page.
#![deny(missing_docs)]

pub mod bfcl;
pub mod recording;
pub mod report;
pub mod runner;
pub mod scoring;
pub mod suite;

#[cfg(test)]
#[path = "table_tests.rs"]
mod test_table;
