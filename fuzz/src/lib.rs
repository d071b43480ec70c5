//! What the fuzz targets have in common: how an input is read, and the laws that are asserted.
//!
//! `docs/fuzzing.md` says how to run them and what came of it.
#![deny(missing_docs)]

pub mod input;
pub mod schemas;
pub mod streams;
pub mod texts;
