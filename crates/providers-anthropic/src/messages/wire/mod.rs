//! The serde types of the Messages API. What goes out borrows from the domain request and is strict;
//! what comes in forgives unknown, missing and mistyped fields.

mod content;
mod request;
mod response;

pub use content::{Block, Input, Source};
pub(crate) use request::STREAM;
pub use request::{
    Body, CacheControl, Mark, Message, Metadata, OutputConfig, OutputFormat, Role, ServerTool,
    Thinking, Tool, ToolChoice,
};
pub use response::{
    CacheCreation, Envelope, MessageHead, OutputDetails, ServerToolUse, StopDetails, UsageReport,
    WireDelta,
};
