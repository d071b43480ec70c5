//! The serde types of the request, borrowed from the domain request. Answers are read as JSON
//! values, because parts are replayed unchanged.

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
