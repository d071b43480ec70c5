//! Shared code of the fuzz targets: parsing of inputs and checks of invariants.
//!
//! `docs/fuzzing.md` describes how to run them and lists the results.
#![deny(missing_docs)]

pub mod input;
pub mod schemas;
pub mod streams;
pub mod texts;
