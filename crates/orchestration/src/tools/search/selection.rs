//! Selection of the tools that requests offer to the model.

use std::{collections::HashSet, fmt::Write, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use switchboard_domain::{JsonObject, ToolDefinition, ToolOutput};

use super::{SearchPolicy, ToolIndex};
use crate::tools::{annotations::BUILTIN_TOOL, create_error_output, shorten_text};

/// Name of the search tool. A number is appended if another tool has the same name.
pub const SEARCH_TOOL: &str = "search_tools";
/// Maximum number of servers that the description of the search tool names.
const MAX_SERVERS: usize = 30;
/// Maximum length of a tool's one-line description in search results, in characters.
const MAX_LINE_CHARS: usize = 160;
/// Maximum number of tool names that the search tool lists for one server.
const MAX_LISTED: usize = 200;

/// The tools that requests offer to the model. Tools that a search finds are added in the order of
/// discovery and never removed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolSelection {
    /// Names of the offered tools, in the order in which they were first offered. Tools that were
    /// offered before tool search was used are included.
    shown: Vec<String>,
    /// The definition of the search tool. `None` until tool search is used. It does not change
    /// afterwards, so that every request contains the same definition.
    pub(super) search_tool: Option<Arc<ToolDefinition>>,
}

impl ToolSelection {
    /// Returns the tools for the next request from the catalog of `index`: all tools, or the search
    /// tool and the tools found so far. Call [`ToolIndex::set_catalog`] first.
    ///
    /// Once tool search is used, it stays in use for the conversation, and tools that were offered
    /// before stay offered. A tool that is temporarily missing keeps its position. A later tool
    /// with the name of the search tool is not offered.
    pub fn select_tools(
        &mut self,
        policy: &SearchPolicy,
        index: &ToolIndex,
    ) -> Vec<Arc<ToolDefinition>> {
        let is_large = index.catalog_tools().len() > policy.above_tools
            || index.total_tokens() > policy.above_tokens;
        if !policy.enabled || (self.search_tool.is_none() && !is_large) {
            self.offer_tools(index.catalog_tools().iter());
            return index.catalog_tools().to_vec();
        }
        let always = index.catalog_tools().iter().filter(|tool| {
            policy
                .always
                .iter()
                .any(|pattern| pattern.matches(&tool.name) || pattern.matches(tool.original_name()))
        });
        self.offer_tools(always);
        let search = self
            .search_tool
            .get_or_insert_with(|| Arc::new(build_search_tool(policy, index, &self.shown)));
        let shown = self
            .shown
            .iter()
            .filter(|name| **name != search.name)
            .filter_map(|name| index.find_tool(name));
        [&*search].into_iter().chain(shown).cloned().collect()
    }

    /// Returns whether `name` is the name of the search tool, which the run executes itself.
    pub fn is_search_tool(&self, name: &str) -> bool {
        self.search_tool
            .as_ref()
            .is_some_and(|tool| tool.name == name)
    }

    /// Offers a tool from the next request on, for example because the model called it. Returns
    /// whether the tool was not offered before.
    pub fn offer_tool(&mut self, name: &str) -> bool {
        let is_new = !self.shown.iter().any(|shown| shown == name);
        if is_new {
            self.shown.push(name.to_owned());
        }
        is_new
    }

    /// Executes a call of the search tool and offers the found tools from the next request on.
    /// Without a query, lists the tool names of the given server. Returns the result for the model.
    pub fn execute_search(
        &mut self,
        policy: &SearchPolicy,
        index: &ToolIndex,
        input: &JsonObject,
    ) -> ToolOutput {
        self.try_execute_search(policy, index, input)
            .map_or_else(create_error_output, ToolOutput::text)
    }

    fn try_execute_search(
        &mut self,
        policy: &SearchPolicy,
        index: &ToolIndex,
        input: &JsonObject,
    ) -> Result<String, String> {
        let text_of = |key: &str| {
            let text = input.get(key).and_then(Value::as_str).unwrap_or("");
            text.trim()
        };
        let query = text_of("query");
        let server = find_server(index, text_of("server"))?;
        let max_results = policy.max_results.max(1);
        let limit = input
            .get("limit")
            .and_then(Value::as_u64)
            .and_then(|limit| usize::try_from(limit).ok())
            .map_or(max_results, |limit| limit.clamp(1, max_results));
        if query.is_empty() {
            let server =
                server.ok_or("The query is empty. Describe the purpose of the tool in `query`.")?;
            return Ok(list_tools(index, server));
        }
        let found = index.search_tools(query, limit, server);
        let mut text = match found.len() {
            0 => "No tool matches.".to_owned(),
            1 => "1 tool matches and can be called now:".to_owned(),
            n => format!("{n} tools match and can be called now, best match first:"),
        };
        for tool in &found {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n- {}", tool.name);
            let line = one_line_description(tool);
            if !line.is_empty() {
                let _ = write!(text, ": {line}");
            }
            self.offer_tool(&tool.name);
        }
        if !found.is_empty() {
            text.push_str("\nIf these are not the right tools:");
        }
        text.push_str(" Search with synonyms");
        if !index.server_names().is_empty() {
            text.push_str(", or give only `server` to list its tools");
        }
        text.push('.');
        Ok(text)
    }

    fn offer_tools<'a>(&mut self, tools: impl Iterator<Item = &'a Arc<ToolDefinition>>) {
        let known: HashSet<&str> = self.shown.iter().map(String::as_str).collect();
        let new: Vec<String> = tools
            .filter(|tool| !known.contains(tool.name.as_str()))
            .map(|tool| tool.name.clone())
            .collect();
        self.shown.extend(new);
    }
}

fn build_search_tool(policy: &SearchPolicy, index: &ToolIndex, shown: &[String]) -> ToolDefinition {
    let mut name = SEARCH_TOOL.to_owned();
    let mut n = 2;
    while index.find_tool(&name).is_some() {
        name = format!("{SEARCH_TOOL}_{n}");
        n += 1;
    }
    let shown: HashSet<&str> = shown.iter().map(String::as_str).collect();
    let is_hidden = |tool: &&Arc<ToolDefinition>| !shown.contains(tool.name.as_str());
    let hidden = index.catalog_tools().iter().filter(is_hidden).count();
    let mut servers = index.server_names();
    let more = servers.len().saturating_sub(MAX_SERVERS);
    servers.truncate(MAX_SERVERS);
    let mut description = format!("Finds tools that are not listed here: {hidden} tools");
    if !servers.is_empty() {
        let _ = write!(description, " of the servers {}", servers.join(", "));
        if more > 0 {
            let _ = write!(description, " and {more} more");
        }
    }
    description.push_str(
        ". Before you answer that something is not possible, search for a tool. Tools that are \
         found are listed from then on and can be called.",
    );
    let schema = json!({
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "The purpose of the tool in a few English words, such as `create \
                                calendar event`. Use technical terms instead of the user's words. \
                                Synonyms find more tools.",
            },
            "server": {
                "type": "string",
                "description": "Search among the tools of this server only. Without `query`: list \
                                all its tools.",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": policy.max_results.max(1),
                "description": "Maximum number of tools.",
            },
        },
        "additionalProperties": false,
    });
    ToolDefinition {
        annotations: BUILTIN_TOOL,
        ..ToolDefinition::new(name, description, schema)
    }
}

/// Returns the server with this name, ignoring ASCII case; `None` if `name` is empty. If the server
/// does not exist, the error lists the servers for the model.
fn find_server<'i>(index: &'i ToolIndex, name: &str) -> Result<Option<&'i str>, String> {
    if name.is_empty() {
        return Ok(None);
    }
    let servers = index.server_names();
    let exact = servers.iter().find(|server| **server == name);
    let found = exact.or_else(|| servers.iter().find(|it| it.eq_ignore_ascii_case(name)));
    found.map(|server| Some(*server)).ok_or_else(|| {
        let listed = &servers[..servers.len().min(MAX_SERVERS)];
        format!("Unknown server `{name}`. Servers: {}.", listed.join(", "))
    })
}

/// Lists the names of at most [`MAX_LISTED`] tools of a server, as text for the model.
fn list_tools(index: &ToolIndex, server: &str) -> String {
    let tools = index.catalog_tools().iter();
    let tools = tools.filter(|tool| tool.server_name() == Some(server));
    let names: Vec<&str> = tools.map(|tool| tool.name.as_str()).collect();
    let listed = names.len().min(MAX_LISTED);
    let mut text = format!(
        "The tools of `{server}` are: {}",
        names[..listed].join(", ")
    );
    if names.len() > listed {
        let _ = write!(text, ", and {} more", names.len() - listed);
    }
    text.push_str(". To call one of them, first search for its name with `query`.");
    text
}

/// Returns the first sentence of a tool's description, or of its title if it has no description.
/// The sentence is cut to [`MAX_LINE_CHARS`] characters.
fn one_line_description(tool: &ToolDefinition) -> String {
    let text = match (tool.description.trim(), &tool.title) {
        ("", Some(title)) => title,
        (description, _) => description,
    };
    let line = shorten_text(text, text.len());
    let end = line.find(". ").map_or(line.len(), |end| end + 1);
    shorten_text(&line[..end], MAX_LINE_CHARS)
}
