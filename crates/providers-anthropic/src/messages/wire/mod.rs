//! The serde types of the Messages API. Request types borrow from the domain request. Response
//! types accept unknown, missing and mistyped fields.

mod content;
mod request;
mod response;

pub use content::{Block, BlockSource};
pub use request::{
    Body, CacheBreakpoint, CacheControl, Message, Metadata, OutputConfig, OutputFormat, Role,
    ServerTool, Thinking, Tool, ToolChoice,
};
pub use response::{
    CacheCreation, MessageDelta, MessageStart, OutputDetails, ServerToolUse, StopDetails,
    StreamEvent, UsageReport,
};
