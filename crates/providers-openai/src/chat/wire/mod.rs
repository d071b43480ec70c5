//! The serde types of Chat Completions. Request types borrow from the domain request. Response
//! types accept unknown, missing and mistyped fields.

mod content;
mod request;
mod response;

pub use content::{ContentPart, FileData, ImageUrl, InputAudio, UserContent};
pub use request::{
    Body, FunctionCall, JsonSchema, Message, ReasoningFields, ResponseFormat, StreamOptions,
    Thinking, ToolCall,
};
pub use response::{Choice, Chunk, Content, Delta, FunctionDelta, ToolCallDelta, UsageReport};

pub use crate::{
    tools::provider_tools::DeclaredTools,
    wire::{
        call_arguments::CallArguments,
        media::MediaUrl,
        usage::{CacheWriteDetails, InputTokenDetails, OutputTokenDetails},
    },
};
