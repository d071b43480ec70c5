//! The OpenAPI document.

pub(crate) mod document;
pub(crate) mod schema;
