//! Results of tool calls, from the tool's output to the model's input.
//!
//! | module | purpose |
//! |---|---|
//! | `cache` | stores results of read-only tools |
//! | `limit`, `full_results` | cuts long results and stores the full text |
//! | `media` | replaces media that a model does not accept |
//!
//! All of these are plain values without I/O, clock and randomness; the time is an argument.

mod cache;
mod full_results;
mod limit;
mod media;

pub use cache::{CacheKey, CacheOptions, ResultCache};
pub use full_results::{FullResult, FullResults, READ_TOOL, result_reading_tool};
pub use limit::ResultLimit;
pub(crate) use media::replace_unsupported_media;
