//! The serde types of the request, borrowed from the domain request. Answers are read as JSON
//! values, because parts are replayed unchanged.

mod content;
mod request;

pub use content::{
    Content, FileData, FunctionCall, FunctionResponse, FunctionResponseContent,
    FunctionResponsePart, InlineData, OutputOrError, Part, PartData, PartWithMetadata,
};
pub use request::{
    Body, CallingMode, FunctionCallingConfig, FunctionDeclaration, GenerationConfig,
    ThinkingConfig, Tool, ToolConfig,
};
