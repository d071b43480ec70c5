//! A tool's result, from what the tool gave to what the model reads.
//!
//! | module | does |
//! |---|---|
//! | `output` | checks structured results against the tool's `outputSchema` |
//! | `cache` | keeps results of read-only tools for a while |
//! | `limit`, `outline`, `keep` | cuts what is too long, and keeps the whole to be read piece by piece |
//! | `senses` | words in the place of media that a model cannot take |
//!
//! Everything here is a plain value: no I/O, no clock, no randomness; the time is an argument.

mod cache;
mod keep;
mod limit;
mod outline;
mod output;
mod senses;

pub use cache::{CacheKey, CacheOptions, ResultCache};
pub use keep::{KeptResult, KeptResults, READ_TOOL, read_tool};
pub use limit::ResultLimit;
pub use output::OutputSchemas;
pub(crate) use senses::Sensed;
pub use senses::for_model;
