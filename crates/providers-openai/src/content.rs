//! Message conversion that the Chat Completions and Responses mappings share.

pub(crate) mod conversation_mapper;
pub(crate) mod tool_results;

/// Separator that joins several text parts of a message into one string.
pub(crate) const PARAGRAPH: &str = "\n\n";
