//! The serde types of Ollama's chat API.

mod request;
mod response;

pub use request::{
    Arguments, Body, Function, FunctionCall, Message, RoleName, Think, Tool, ToolCall,
};
pub use response::{ArgumentsReport, CallReport, Chunk, FunctionReport, MessageReport};
