//! Evaluates how well models use tools. Also records runs and replays them.
//!
//! - [`recording`]: records model and tool traffic, replays it without network access or API keys.
//! - [`suite`]: test scenarios with the expected tool calls and answers of a model.
//! - [`runner`]: runs the scenarios of a suite with each model, several at the same time.
//! - [`scoring`]: compares the tool calls of a model with the expected calls.
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
