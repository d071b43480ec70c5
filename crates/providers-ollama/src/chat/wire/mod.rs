//! The serde types of the API.

mod request;
mod response;
mod text;

pub use request::{
    Arguments, Body, Function, FunctionCall, Message, RoleName, Think, Tool, ToolCall,
};
pub use response::{ArgumentsReport, CallReport, Chunk, FunctionReport, MessageReport};
pub use text::Text;
