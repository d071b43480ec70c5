//! Generates the OpenAPI document of all routes.

pub(crate) mod document;
pub(crate) mod schema;
