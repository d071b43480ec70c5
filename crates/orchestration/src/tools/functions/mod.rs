//! Rust functions as tools, and the combination of several tool hosts.
//!
//! [`FunctionTools`] makes tools from Rust functions. The input schema comes from the type of the
//! argument. This needs the crate's feature `functions`, which is on by default. [`ToolSet`]
//! combines the functions with MCP servers.
//!
//! ```no_run
//! # #[cfg(feature = "functions")]
//! # mod example {
//! use std::sync::Arc;
//!
//! use futures_util::StreamExt;
//! use switchboard_domain::{ChatModel, ToolHost};
//! use switchboard_orchestration::{
//!     Agent, RunEventKind,
//!     tools::functions::{FunctionTools, ToolSet, schemars},
//! };
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! #[schemars(crate = "switchboard_orchestration::tools::functions::schemars")]
//! struct Account {
//!     /// The customer's number.
//!     customer_id: u64,
//! }
//!
//! async fn answer(model: Arc<dyn ChatModel>, servers: Arc<dyn ToolHost>) {
//!     let functions = FunctionTools::new().with_handler(
//!         "account_value",
//!         "Returns the value of a customer's account in euros.",
//!         |account: Account| async move { Ok::<_, String>(account.customer_id * 100) },
//!     );
//!     let tools = ToolSet::new().with_host(functions).with_shared_host(servers);
//!     let mut run = Agent::new(model)
//!         .with_tools(Arc::new(tools))
//!         .ask("Show the account value of customer 42.");
//!     while let Some(event) = run.next().await {
//!         if let RunEventKind::TextDelta { text } = event.kind {
//!             print!("{text}");
//!         }
//!     }
//! }
//! # }
//! ```

#[cfg(feature = "functions")]
mod function;
mod tool_set;
#[cfg(feature = "functions")]
mod tools;

#[cfg(feature = "functions")]
pub use function::Function;
/// The crate that provides `#[derive(JsonSchema)]` for argument types. A crate that does not depend
/// on `schemars` itself must add
/// `#[schemars(crate = "switchboard_orchestration::tools::functions::schemars")]` to these types.
#[cfg(feature = "functions")]
pub use schemars;
pub use tool_set::ToolSet;
#[cfg(feature = "functions")]
pub use tools::FunctionTools;
