//! The conversion of messages, as far as both wires share it.

pub(crate) mod conversation;
pub(crate) mod tool_results;
pub(crate) mod warnings;

/// Separator between texts that were separate parts of a message.
pub(crate) const PARAGRAPH: &str = "\n\n";
