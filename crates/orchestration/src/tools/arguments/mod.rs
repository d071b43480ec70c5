//! Arguments of tool calls, from the model's text to the tool's input.
//!
//! | module | purpose |
//! |---|---|
//! | `validators`, `repair` | validate input against the tool's schema and repair it |
//! | `canonicalization` | convert equal inputs to the same JSON text |
//! | `hidden_arguments`, `template`, `client_context` | add values that the model does not see |
//!
//! All of these are plain values without I/O, clock and randomness.

mod canonicalization;
mod client_context;
mod hidden_arguments;
mod repair;
mod schema;
mod template;
#[cfg(test)]
#[path = "support_tests.rs"]
pub(crate) mod test_support;
mod validators;

pub use canonicalization::{canonical_digest, canonical_json};
pub(crate) use canonicalization::{canonical_json_value, hex_sha256};
pub use client_context::{ClientContext, ClientContextError};
pub use hidden_arguments::{ContextInjection, MissingHiddenArgument};
pub use template::{ContextTemplate, UnknownPlaceholder};
pub(crate) use validators::describe_faults;
pub use validators::{InputFault, InputValidators, ValidatedToolInput};
