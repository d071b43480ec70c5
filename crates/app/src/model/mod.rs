//! Which model answers.

mod choose;
mod client;
mod prices;
mod providers;
mod resolve;
mod whole;

pub use choose::{Because, Chosen, ModelChoiceError};
pub use prices::list_price;
pub use providers::{Provider, Providers, Readiness};
