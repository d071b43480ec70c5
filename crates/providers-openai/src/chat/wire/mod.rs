//! The serde types of Chat Completions. What goes out borrows from the domain request and is strict;
//! what comes in forgives unknown, missing and mistyped fields.

mod content;
mod request;
mod response;

pub use content::{ContentPart, FileData, ImageUrl, InputAudio, UserContent};
pub use request::{
    AllowedTools, Body, FunctionCall, FunctionTool, JsonSchema, Message, ResponseFormat,
    StreamOptions, Thinking, Thoughts, Tool, ToolCall, ToolChoice,
};
pub use response::{Choice, Chunk, Content, Delta, FunctionDelta, ToolCallDelta, UsageReport};

pub use crate::{
    arguments::Arguments,
    built_in::{Declared, NamedTool},
    media::DataUrl,
    text::Text,
    usage::{CacheWriteDetails, InputDetails, OutputDetails},
};
