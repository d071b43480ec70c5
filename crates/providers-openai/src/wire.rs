//! Serde types that Chat Completions and Responses share.

pub(crate) mod call_arguments;
pub(crate) mod media;
pub(crate) mod usage;
