//! Export and import of sessions as JSON Lines.

mod export;
mod import;
mod record;

pub use import::{ImportIds, ImportSummary};
