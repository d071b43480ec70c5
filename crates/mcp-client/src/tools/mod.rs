//! The tools of a server: listing, conversion, names, output schemas and tool pins.

pub(crate) mod catalog;
pub(crate) mod catalog_names;
pub(crate) mod convert;
pub(crate) mod list;
pub(crate) mod output_schema;
pub(crate) mod pagination;
pub(crate) mod tool_pinning;
pub(crate) mod visibility;
