//! The serde types of Ollama's chat API.

mod request;
mod response;

pub use request::{Body, Function, FunctionCall, Message, RoleName, Think, Tool, ToolCall};
pub use response::{Chunk, ResponseFunction, ResponseMessage, ResponseToolCall};
