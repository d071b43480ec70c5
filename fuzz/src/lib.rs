//! Shared code of the fuzz targets: parsing of inputs and checks of invariants.
//!
//! `README.md` describes how to run them.
#![deny(missing_docs)]

pub mod input;
pub mod schemas;
pub mod streams;
pub mod texts;
