//! Measures how well a model uses tools, and keeps runs so that they can be had again.
//!
//! - [`recording`]: what models and tools said in a run, written down as it happens and said again later:
//!   in tests, without network and keys.
//! - [`suite`]: scenarios, with the calls and answers that are right.
//! - [`run`]: runs them, many at once.
//! - [`judge`]: whether the calls of a run were these.
//! - [`report`]: every run, and what they add up to.
#![deny(missing_docs)]

pub mod judge;
pub mod recording;
pub mod report;
pub mod run;
pub mod suite;
