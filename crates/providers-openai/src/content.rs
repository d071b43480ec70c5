//! Conversion of messages that Chat Completions and Responses share.

pub(crate) mod conversation;
pub(crate) mod tool_results;
pub(crate) mod warnings;

/// Separator between texts that were separate parts of a message.
pub(crate) const PARAGRAPH: &str = "\n\n";
