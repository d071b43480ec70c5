//! Tool search: the model sees a few tools and searches for the others.
//!
//! With many tools ([`SearchPolicy`]), the definitions fill the request and models choose worse.
//! [`ToolSelection`] then offers a tool `search_tools` and the tools found so far. The search runs
//! here, over names, titles, descriptions and parameters ([`ToolIndex`]), so it works with every
//! provider. It handles word forms and typing errors, but not synonyms: the model is instructed to
//! try other words, and it can list all tool names of a server.
//!
//! A tool that was offered stays offered, in the order of discovery. The tools of one request are
//! therefore a prefix of the tools of the next one, which keeps the provider's prompt cache.
//!
//! The model may call a tool that exists but was not offered. The call is handled like any other,
//! and the tool is offered from the next step on ([`ToolSelection::offer_tool`]).
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
//! index.set_catalog(&tools);
//! let shown = selection.select_tools(&policy, &index);
//! assert_eq!(shown.len(), 1);
//! assert!(selection.is_search_tool(&shown[0].name));
//!
//! let input = json!({"query": "refund an order"});
//! let result = selection.execute_search(&policy, &index, input.as_object().unwrap());
//! assert!(result.content[0].as_text().contains("create_refund"));
//! let shown = selection.select_tools(&policy, &index);
//! assert_eq!(shown[1].name, "create_refund");
//! ```

mod index;
mod selection;
mod word_stems;

use serde::{Deserialize, Serialize};

use crate::tools::name_pattern::NamePattern;

pub use index::ToolIndex;
pub use selection::{SEARCH_TOOL, ToolSelection};

/// Settings of tool search. With tool search, requests contain only some tools and a tool with
/// which the model searches for the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SearchPolicy {
    /// Whether tool search is enabled. If not, each request contains all tools.
    pub enabled: bool,
    /// Maximum number of tools in the catalog without tool search. With more tools, tool search is
    /// used.
    pub above_tools: usize,
    /// Maximum number of estimated [tokens](crate::tools::tokens) of all tool definitions without
    /// tool search. With more tokens, tool search is used.
    pub above_tokens: u64,
    /// Patterns of tools that are always offered. A pattern matches the name that the model sees or
    /// the name on the server.
    pub always: Vec<NamePattern>,
    /// Maximum number of tools that one search returns to the model.
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
