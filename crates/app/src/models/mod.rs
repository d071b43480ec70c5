//! The models: providers, names, choice and prices.

mod choose;
mod client;
pub(crate) mod current_model;
mod prices;
mod providers;
mod resolve;
mod whole;

pub(crate) use choose::{ChoiceReason, Chosen};
pub(crate) use prices::list_price;
pub(crate) use providers::{Provider, Providers, Readiness};
