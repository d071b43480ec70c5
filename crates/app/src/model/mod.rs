//! Which model answers.

mod choose;
mod client;
mod providers;

pub use choose::{Because, Chosen, ModelChoiceError};
pub use providers::{Provider, Providers, Readiness};
