//! Models: providers, resolution of model names, the default model, and prices.

pub(crate) mod current_model;
mod model_choice;
mod model_resolution;
mod non_streaming_model;
mod prices;
mod provider_client;
mod providers;

pub(crate) use model_choice::{ChosenModel, ModelChoiceReason};
pub(crate) use prices::find_list_price;
pub(crate) use providers::{Provider, Providers, Readiness};
