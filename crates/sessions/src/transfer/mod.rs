//! Export and import of sessions as JSON Lines.

mod export;
mod export_record;
mod import;

pub use import::{ImportIdPolicy, ImportSummary};
