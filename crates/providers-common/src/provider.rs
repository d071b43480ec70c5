//! The parts of a provider that do not depend on its wire: configuration, client, model and error
//! classification.
//!
//! A provider crate implements [`ProviderConfig`] for its configuration and [`Wire`] for each of
//! its wires, and defines an [`ErrorTable`]. [`HttpModel`] then is the
//! [`ChatModel`](switchboard_domain::ChatModel).

mod client;
mod config;
mod errors;
mod model;

pub use self::{
    client::{HttpClient, ModelPage, ServedModel},
    config::{ProviderConfig, is_blank, read_variable, redacted_address},
    errors::{ApiError, ErrorClass, ErrorRule, ErrorTable, is_error, text_of},
    model::{HttpModel, PreparedRequest, SentRequest, StreamFormat, Wire, open_stream},
};
