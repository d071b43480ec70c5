//! A demo model that needs no account, no key and no network.
//!
//! The demo model is not a language model, and its texts state that. It matches the words of the
//! last question with the tools of the request:
//!
//! 1. [BM25] over names, titles, descriptions and parameters ranks the tools.
//! 2. The schema of the best tool selects arguments from the question: numbers, enum values,
//!    quoted text, dates, ids and names. Several ids make several calls.
//! 3. A missing argument is taken from the result of one earlier call, or the user is asked for it.
//! 4. The answer lists the results.
//!
//! The demo model does not understand conditions, quotations or intentions. Its capabilities
//! therefore request approval for every tool that is not read-only.
//!
//! Equal requests give equal answers, except for relative dates: [`DemoModel::with_today`] fixes
//! the day.
//!
//! ```
//! use serde_json::json;
//! use switchboard_domain::{ChatRequest, Message, ToolDefinition};
//! use switchboard_providers_offline::{DemoModel, Plan};
//!
//! let schema = json!({
//!     "type": "object",
//!     "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
//!     "required": ["a", "b"],
//! });
//! let tool = ToolDefinition::new("add-numbers", "Returns the sum of two numbers", schema);
//! let question = Message::user("What is the sum of 19 and 23?");
//! let plan = DemoModel::new().plan(&ChatRequest::new([question]).with_tools([tool]));
//! let Plan::Call(calls) = plan else { panic!("not a call: {plan:?}") };
//! assert_eq!(calls[0].name, "add-numbers");
//! assert_eq!(calls[0].input, *json!({"a": 19, "b": 23}).as_object().unwrap());
//! ```
//!
//! [BM25]: https://en.wikipedia.org/wiki/Okapi_BM25
#![deny(missing_docs)]

mod arguments;
mod conversation_turn;
mod model;
mod plan_events;
mod question_values;
mod response_formatter;
mod result_text;
mod step_planner;
mod tool_parameters;
mod tool_ranking;
mod word_stems;

pub use jiff::civil::Date;
pub use model::{DemoModel, MODEL, PROVIDER};
pub use step_planner::{Plan, PlannedCall};
