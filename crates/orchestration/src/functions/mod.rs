//! Tools that are functions of the program, and several tool hosts in one.
//!
//! [`FunctionTools`] makes a tool of a Rust function: its input schema comes from the type of its
//! argument. It needs the crate's feature `functions`, which is on by default. [`ToolSet`] puts it beside
//! MCP servers.

#[cfg(feature = "functions")]
mod function;
mod set;
#[cfg(feature = "functions")]
mod tools;

#[cfg(feature = "functions")]
pub use function::Function;
/// What the types of arguments derive: `#[derive(JsonSchema)]` with `#[schemars(crate = "…")]`, for those
/// who do not depend on the crate themselves.
#[cfg(feature = "functions")]
pub use schemars;
pub use set::ToolSet;
#[cfg(feature = "functions")]
pub use tools::FunctionTools;
