//! A tool's arguments, from what a model wrote to what a tool gets.
//!
//! | module | does |
//! |---|---|
//! | `validators` | checks input against the tool's schema, and asks for repairs if it does not fit |
//! | `repair`, `text`, `fit` | small repairs, each told in words: of the text, then of the values |
//! | `excused` | whether all that is wrong lies where somebody excuses it |
//! | `canonical` | one text for equal inputs |
//! | `context`, `template`, `scrub` | values that the host gives and the model never sees |
//!
//! Everything here is a plain value: no I/O, no clock, no randomness.

mod canonical;
mod context;
mod excused;
mod fit;
mod repair;
mod schema;
mod scrub;
mod template;
#[cfg(test)]
pub(crate) mod tests_support;
mod text;
mod validators;

pub(crate) use canonical::canonical_value;
pub use canonical::{canonical, digest};
pub use context::{ClientContext, ClientContextError, ContextInjection, Hidden, MissingContext};
pub use excused::Demand;
pub use repair::Repair;
pub use template::{ContextTemplate, UnknownPlaceholder};
pub(crate) use validators::compile;
pub use validators::{Checked, InputFault, Validators};
