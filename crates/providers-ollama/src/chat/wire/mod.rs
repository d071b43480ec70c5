//! The serde types of the API.

mod request;
mod response;

pub use request::{
    Arguments, Body, Function, FunctionCall, Message, RoleName, Think, Tool, ToolCall,
};
pub use response::{ArgumentsReport, CallReport, Chunk, FunctionReport, MessageReport};
