//! Large tool sets: the model is shown a few tools and searches for the others.
//!
//! With hundreds of tools a request is mostly tools, and models choose worse. So when there are many
//! ([`SearchPolicy`]), [`ToolSelection`] shows the model a tool `search_tools` and what it has found so
//! far. The search runs here, over names, titles, descriptions and parameters ([`ToolIndex`]), so that it
//! works with every provider. It knows forms of words and typing errors and no synonyms: those the model
//! knows, which is told to try other words, and can have the names of all tools of a server.
//!
//! What was shown stays shown, in the order in which it was found: the tools of a request are the
//! beginning of those of the next one, and the provider's prompt cache holds.
//!
//! A tool that exists and was not shown may be called all the same, since models remember tools from
//! earlier in a conversation: the call is checked, approved and run like any other, and the tool is shown
//! from the next step on ([`ToolSelection::reveal`]).
//!
//! ```
//! use std::sync::Arc;
//! use serde_json::json;
//! use switchboard_domain::ToolDefinition;
//! use switchboard_orchestration::tools::search::{SearchPolicy, ToolIndex, ToolSelection};
//!
//! let tools: Vec<_> = ["create_refund", "list_invoices", "get_weather"]
//!     .map(|name| Arc::new(ToolDefinition::new(name, "", json!({"type": "object"}))))
//!     .into();
//! let policy = SearchPolicy { above_tools: 2, ..SearchPolicy::default() };
//! let (mut index, mut selection) = (ToolIndex::default(), ToolSelection::default());
//!
//! index.update(&tools);
//! let shown = selection.select(&policy, &mut index);
//! assert_eq!(shown.len(), 1);
//! assert!(selection.is_search_tool(&shown[0].name));
//!
//! let input = json!({"query": "refund an order"});
//! let answer = selection.answer_search(&policy, &mut index, input.as_object().unwrap());
//! assert_eq!(answer.revealed, ["create_refund"]);
//! let shown = selection.select(&policy, &mut index);
//! assert_eq!(shown[1].name, "create_refund");
//! ```

mod index;
mod selection;
mod words;

use serde::{Deserialize, Serialize};

use crate::tools::pattern::Pattern;

pub use index::{Found, ToolIndex};
pub use selection::{SEARCH_TOOL, SearchAnswer, ToolSelection};

/// When tools are searched for instead of shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SearchPolicy {
    /// Without, every tool is always shown.
    pub enabled: bool,
    /// With more tools than this the search is switched on.
    pub above_tools: usize,
    /// With more [tokens](crate::tools::tokens) of definitions than this too.
    pub above_tokens: u64,
    /// Tools that are shown from the beginning, by the name the model knows them by or their own.
    pub always: Vec<Pattern>,
    /// Tools that one search finds at most.
    pub max_results: usize,
}

impl Default for SearchPolicy {
    fn default() -> Self {
        Self {
            enabled: true,
            above_tools: 40,
            above_tokens: 12_000,
            always: Vec::new(),
            max_results: 8,
        }
    }
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
