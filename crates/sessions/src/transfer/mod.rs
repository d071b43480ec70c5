//! Export and import of sessions as JSON Lines.

mod export;
mod import;
mod record;

pub use export::Export;
pub use import::{ImportIds, Imported};
