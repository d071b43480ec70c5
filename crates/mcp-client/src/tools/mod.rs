//! The tools of a server: listing, conversion, names, output schemas and tool pins.

pub(crate) mod convert;
pub(crate) mod list;
pub(crate) mod names;
pub(crate) mod output_schema;
pub(crate) mod tool_pinning;
