//! Measures how well a model uses tools, and keeps runs so that they can be had again.
//!
//! - [`recording`]: what models and tools said in a run, written down as it happens and said again later:
//!   in tests, without network and keys.
//! - [`suite`]: scenarios, with the calls and answers that are right.
//! - [`run`]: runs them, many at once.
//! - [`judge`]: whether the calls of a run were these.
//! - [`bfcl`]: suites from the data of the Berkeley Function Calling Leaderboard.
//! - [`report`]: every run, and what they add up to; [`transcript`]: the whole course of each.
//! - [`page`]: the same as an HTML page that needs nothing beside it.
//! - [`compare`]: what is better and what is worse than before, figure by [`figure`].
#![deny(missing_docs)]

pub mod bfcl;
pub mod compare;
pub mod figure;
pub mod judge;
mod meter;
pub mod page;
pub mod recording;
pub mod report;
pub mod run;
pub mod suite;
mod summary;
pub mod transcript;
