//! Code that all provider adapters share: configuration, HTTP client, model and error
//! classification.
//!
//! A provider crate implements [`ProviderConfig`] for its configuration and [`WireProtocol`] for
//! each of its protocols, and defines an [`ErrorTable`]. [`HttpModel`] then is the
//! [`ChatModel`](switchboard_domain::ChatModel).

mod client;
mod config;
mod errors;
mod model;

pub use self::{
    client::{HttpClient, ModelPage, ServedModel},
    config::{ProviderConfig, is_blank, read_env_var, redacted_address},
    errors::{ApiError, ErrorClass, ErrorRule, ErrorTable, is_error, value_to_text},
    model::{HttpModel, PreparedRequest, SentRequest, StreamFormat, WireProtocol, open_stream},
};
