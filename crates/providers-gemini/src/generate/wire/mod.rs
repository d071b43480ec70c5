//! The serde types of what is sent: strict, and borrowed from the domain request. What comes in is
//! read as JSON values, since parts go back as they came.

mod content;
mod request;

pub use content::{
    Args, Blob, Content, Data, FileData, FunctionCall, FunctionResponse, Outcome, Part, Response,
    ResultPart, Said,
};
pub use request::{
    Body, CallingMode, FunctionCallingConfig, FunctionDeclaration, GenerationConfig,
    ThinkingConfig, Tool, ToolConfig,
};
