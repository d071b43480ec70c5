//! Arguments of tool calls, from the model's text to the tool's input.
//!
//! | module | purpose |
//! |---|---|
//! | `validators` | validates input against the tool's schema and repairs it |
//! | `repair`, `values` | repairs of malformed JSON and of values |
//! | `exemption` | exemptions of values from the schema |
//! | `canonical` | a canonical text for equal inputs |
//! | `context`, `template` | values from the host that the model does not see |
//!
//! All of these are plain values without I/O, clock and randomness.

mod canonical;
mod context;
mod exemption;
mod repair;
mod schema;
mod template;
#[cfg(test)]
#[path = "support_tests.rs"]
pub(crate) mod test_support;
mod validators;
mod values;

pub(crate) use canonical::canonical_value;
pub use canonical::{canonical, digest};
pub use context::{ClientContext, ClientContextError, ContextInjection, Hidden, MissingContext};
pub use exemption::Requirement;
pub use repair::Repair;
pub use template::{ContextTemplate, UnknownPlaceholder};
pub(crate) use validators::compile;
pub use validators::{Checked, InputFault, Validators};
