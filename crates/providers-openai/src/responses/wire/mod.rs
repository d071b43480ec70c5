//! The serde types of Responses. What goes out borrows from the domain request and is strict; what
//! comes in forgives unknown, missing and mistyped fields.

mod request;
mod response;

pub use request::{
    Body, Content, FunctionTool, InputPart, Item, JsonSchema, Output, OutputContent, Reasoning,
    Role, TextOptions, ToolChoice,
};
pub use response::{Event, IncompleteDetails, Response, UsageReport};

pub use crate::{
    arguments::Arguments,
    built_in::{Declared, NamedTool},
    media::DataUrl,
    text::Text,
    usage::{CacheWriteDetails, InputDetails, OutputDetails},
};
