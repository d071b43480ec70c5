//! A planner in the place of a language model, so that Switchboard can be tried and tested without
//! an account, a key or a network.
//!
//! It is no language model and says so. It reads the last question and the definitions of the
//! tools that are connected, whichever they are, and
//!
//! 1. ranks the tools by the words they share with the question ([BM25] over names, titles,
//!    descriptions and schemas, with English stems and everyday synonyms),
//! 2. fills the arguments from the question by the tool's schema: numbers, listed values, quoted
//!    text, names, dates, switches, ids,
//! 3. asks for what is missing instead of making it up, or takes it from the result of an earlier
//!    call, or calls another tool that can give it,
//! 4. writes a short answer from the results.
//!
//! A file that the question names is read and quoted where it asks for what is in it, and a question whether a value is
//! more or less than a number is answered from the result that is there, if its unit is the one that is asked for.
//!
//! What a text only speaks of is not done: with a tool that is not read-only nothing is called for what is forbidden, told,
//! asked about, tied to a condition or taken back. A tool that says nothing of itself counts as one that only reads as long as the text
//! asks for what it gives, and as one that may change something where the text speaks of what it does.
//!
//! A message of more than 5000 words or 64 kB is declined: of one that is cut off it would call tools
//! with arguments that are cut off.
//!
//! No tool and no server is known to it by name, but the formatter of a host that lets it gather first
//! and write the answer in a form then. Equal requests give equal answers, apart from
//! relative dates: "yesterday" depends on the day, which [`DemoModel::with_today`] fixes.
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
//! let Plan::Call(calls) = plan else { panic!("it asks or declines: {plan:?}") };
//! assert_eq!(calls[0].name, "add-numbers");
//! assert_eq!(calls[0].input, *json!({"a": 19, "b": 23}).as_object().unwrap());
//! ```
//!
//! [BM25]: https://en.wikipedia.org/wiki/Okapi_BM25
#![deny(missing_docs)]

mod act;
mod answer;
mod catalog;
mod chain;
mod comparison;
mod dialogue;
mod events;
mod extract;
mod fill;
mod history;
mod intent;
mod model;
mod mood;
mod names;
mod phases;
mod plan;
mod rank;
mod records;
mod schema;
mod terms;
mod text;
mod thesaurus;
mod validate;
mod wording;

pub use jiff::civil::Date;
pub use model::{DemoModel, MODEL, PROVIDER};
pub use plan::{Ask, Plan, PlannedCall};
