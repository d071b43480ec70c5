//! The serde types of Responses. What goes out borrows from the domain request and is strict; what
//! comes in forgives unknown, missing and mistyped fields.

mod request;
mod response;

pub use request::{
    Body, Content, FunctionName, FunctionTool, InputPart, Item, JsonSchema, Output, OutputContent,
    Reasoning, Role, TextOptions, ToolChoice,
};
pub use response::{Event, IncompleteDetails, InputDetails, OutputDetails, Response, UsageReport};

pub use crate::{arguments::Arguments, media::DataUrl, text::Text};
