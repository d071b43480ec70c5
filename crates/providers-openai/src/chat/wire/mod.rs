//! The serde types of Chat Completions. What goes out borrows from the domain request and is strict;
//! what comes in forgives unknown, missing and mistyped fields.

mod content;
mod request;
mod response;

pub use content::{ContentPart, FileData, ImageUrl, InputAudio, UserContent};
pub use request::{
    AllowedTools, Body, FunctionCall, FunctionName, FunctionTool, JsonSchema, Message,
    NamedFunction, ResponseFormat, StreamOptions, Thinking, Thoughts, Tool, ToolCall, ToolChoice,
};
pub use response::{
    Choice, Chunk, CompletionDetails, Content, Delta, FunctionDelta, PromptDetails, ToolCallDelta,
    UsageReport,
};

pub use crate::{arguments::Arguments, media::DataUrl, text::Text};
