//! Which tools the model is shown.

use std::{collections::HashSet, fmt::Write, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use switchboard_domain::{JsonObject, ToolAnnotations, ToolDefinition, ToolOutput};

use super::{SearchPolicy, ToolIndex};

/// The name of the tool that searches for tools, with a number behind it where a server has such a tool too.
pub const SEARCH_TOOL: &str = "search_tools";
/// Servers that the tool's description names.
const SERVERS: usize = 30;
/// Characters of a tool's one-line description.
const LINE: usize = 160;
/// Names of a server's tools that are listed at once.
const LISTED: usize = 200;

/// Which tools the model is shown. It only grows, in the order of discovery.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolSelection {
    /// Names of the tools that are shown, or were before the search was switched on.
    shown: Vec<String>,
    /// What the model searches with; there while the search is on. It stays as it was made, so that it is
    /// the same in every request.
    search_tool: Option<Arc<ToolDefinition>>,
}

/// What a search gave.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchAnswer {
    /// The result for the model.
    pub output: ToolOutput,
    /// The tools that were found, the best first.
    pub found: Vec<String>,
    /// Those of them that were not shown before.
    pub revealed: Vec<String>,
}

impl SearchAnswer {
    fn nothing(text: impl Into<String>, is_error: bool) -> Self {
        Self {
            output: ToolOutput {
                is_error,
                ..ToolOutput::text(text)
            },
            found: Vec::new(),
            revealed: Vec::new(),
        }
    }
}

impl ToolSelection {
    /// The tools of the next request, from the catalog that `index` was [updated](ToolIndex::update)
    /// with: all of them, or the search with what was found so far. Once it is on, the search stays on
    /// for the conversation, and tools that were shown before stay. A tool that is away for a while comes
    /// back in its place; one that comes later and is called like the search is not shown.
    pub fn select(
        &mut self,
        policy: &SearchPolicy,
        index: &mut ToolIndex,
    ) -> Vec<Arc<ToolDefinition>> {
        let is_large =
            index.tools().len() > policy.above_tools || index.tokens() > policy.above_tokens;
        if !policy.enabled || (self.search_tool.is_none() && !is_large) {
            self.show(index.tools().iter());
            return index.tools().to_vec();
        }
        let always = index.tools().iter().filter(|tool| {
            let own = tool.origin.as_ref().map(|origin| origin.tool.as_str());
            policy.always.iter().any(|pattern| {
                pattern.matches(&tool.name) || own.is_some_and(|own| pattern.matches(own))
            })
        });
        self.show(always);
        let search = self
            .search_tool
            .get_or_insert_with(|| Arc::new(search_tool(policy, index, &self.shown)));
        let shown = self
            .shown
            .iter()
            .filter(|name| **name != search.name)
            .filter_map(|name| index.get(name));
        [&*search].into_iter().chain(shown).cloned().collect()
    }

    /// Whether the model searches for tools.
    pub fn is_active(&self) -> bool {
        self.search_tool.is_some()
    }

    /// The definition that the model searches with, while it does.
    pub fn search_tool(&self) -> Option<&Arc<ToolDefinition>> {
        self.search_tool.as_ref()
    }

    /// Whether a call is a search, which is answered here and not by a host.
    pub fn is_search_tool(&self, name: &str) -> bool {
        self.search_tool
            .as_ref()
            .is_some_and(|tool| tool.name == name)
    }

    /// The names of the tools that are shown beside the search, in the order of discovery.
    pub fn shown(&self) -> &[String] {
        &self.shown
    }

    /// Shows a tool from the next request on; returns whether it was not shown before. For tools that the
    /// model is to use or has called.
    pub fn reveal(&mut self, name: &str) -> bool {
        let is_new = !self.shown.iter().any(|shown| shown == name);
        if is_new {
            self.shown.push(name.to_owned());
        }
        is_new
    }

    /// Runs a search, and shows what it found from the next request on. With a server and no words for what is
    /// wanted, it names that server's tools: who knows the language finds there what other words do not.
    pub fn answer_search(
        &mut self,
        policy: &SearchPolicy,
        index: &mut ToolIndex,
        input: &JsonObject,
    ) -> SearchAnswer {
        let said = |key: &str| {
            let said = input.get(key).and_then(Value::as_str).unwrap_or("");
            said.trim()
        };
        let query = said("query");
        let server = match server_named(index, said("server")) {
            Ok(server) => server,
            Err(text) => return SearchAnswer::nothing(text, true),
        };
        let most = policy.max_results.max(1);
        let limit = input
            .get("limit")
            .and_then(Value::as_u64)
            .and_then(|limit| usize::try_from(limit).ok())
            .map_or(most, |limit| limit.clamp(1, most));
        let hits = match (&server, query) {
            (None, "") => {
                let text = "Nothing was searched for: say in `query` what the tool should do.";
                return SearchAnswer::nothing(text, true);
            }
            (Some(server), "") => return SearchAnswer::nothing(all_of(index, server), false),
            (Some(server), query) => index.search_server(server, query, limit),
            (None, query) => index.search(query, limit),
        };
        let mut text = match hits.len() {
            0 => "No tool fits.".to_owned(),
            1 => "One tool fits, and can be called now:".to_owned(),
            n => format!("{n} tools fit, and can be called now, the likeliest first:"),
        };
        let (mut found, mut revealed) = (Vec::new(), Vec::new());
        for hit in hits {
            let name = &hit.tool.name;
            // Writing to a `String` does not fail.
            let _ = write!(text, "\n- {name}");
            let line = one_line(&hit.tool);
            if !line.is_empty() {
                let _ = write!(text, ": {line}");
            }
            if self.reveal(name) {
                revealed.push(name.clone());
            }
            found.push(name.clone());
        }
        if !found.is_empty() {
            text.push_str("\nNot what you need?");
        }
        text.push_str(" Search with other words for the same thing");
        if !index.servers().is_empty() {
            text.push_str(", or give only `server` to see the names of all its tools");
        }
        text.push('.');
        SearchAnswer {
            output: ToolOutput::text(text),
            found,
            revealed,
        }
    }

    fn show<'a>(&mut self, tools: impl Iterator<Item = &'a Arc<ToolDefinition>>) {
        let known: HashSet<&str> = self.shown.iter().map(String::as_str).collect();
        let new: Vec<String> = tools
            .filter(|tool| !known.contains(tool.name.as_str()))
            .map(|tool| tool.name.clone())
            .collect();
        self.shown.extend(new);
    }
}

fn search_tool(policy: &SearchPolicy, index: &ToolIndex, shown: &[String]) -> ToolDefinition {
    let mut name = SEARCH_TOOL.to_owned();
    let mut n = 2;
    while index.get(&name).is_some() {
        name = format!("{SEARCH_TOOL}_{n}");
        n += 1;
    }
    let shown: HashSet<&str> = shown.iter().map(String::as_str).collect();
    let is_hidden = |tool: &&Arc<ToolDefinition>| !shown.contains(tool.name.as_str());
    let hidden = index.tools().iter().filter(is_hidden).count();
    let mut servers: Vec<&str> = index.servers().into_iter().map(|(name, _)| name).collect();
    let more = servers.len().saturating_sub(SERVERS);
    servers.truncate(SERVERS);
    let mut description =
        format!("Finds tools that are not listed here. There are {hidden} of them");
    if !servers.is_empty() {
        let _ = write!(description, ", of: {}", servers.join(", "));
        if more > 0 {
            let _ = write!(description, " and {more} more");
        }
    }
    description.push_str(
        ". Before you say that you cannot do something, search for a tool that can. Tools that are found \
         are listed from then on and can be called.",
    );
    let schema = json!({
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "What the tool should do, in a few English words, such as `create calendar event`: the words of whoever makes tools, not those of the person. Other words for the same thing find more.",
            },
            "server": {
                "type": "string",
                "description": "Search among the tools of this server only. Without `query`: the names of all its tools.",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": policy.max_results.max(1),
                "description": "How many tools to list at most.",
            },
        },
        "additionalProperties": false,
    });
    ToolDefinition {
        annotations: ToolAnnotations {
            read_only: Some(true),
            destructive: Some(false),
            idempotent: Some(true),
            open_world: Some(false),
        },
        ..ToolDefinition::new(name, description, schema)
    }
}

/// The server that is meant, if one is; or that there is none of that name.
fn server_named(index: &ToolIndex, name: &str) -> Result<Option<String>, String> {
    if name.is_empty() {
        return Ok(None);
    }
    let servers = index.servers();
    let names = || servers.iter().map(|(server, _)| *server);
    let exact = names().find(|server| *server == name);
    let found = exact.or_else(|| names().find(|server| server.eq_ignore_ascii_case(name)));
    if let Some(server) = found {
        return Ok(Some(server.to_owned()));
    }
    let all: Vec<&str> = names().take(SERVERS).collect();
    Err(format!(
        "There is no server `{name}`. There are: {}.",
        all.join(", ")
    ))
}

/// The names of a server's tools.
fn all_of(index: &ToolIndex, server: &str) -> String {
    let of_server = |tool: &&Arc<ToolDefinition>| {
        let origin = tool.origin.as_ref();
        origin.is_some_and(|origin| origin.server == server)
    };
    let tools = index.tools().iter().filter(of_server);
    let names: Vec<&str> = tools.map(|tool| tool.name.as_str()).collect();
    let listed = names.len().min(LISTED);
    let mut text = format!(
        "The tools of `{server}` are: {}",
        names[..listed].join(", ")
    );
    if names.len() > listed {
        let _ = write!(text, ", and {} more", names.len() - listed);
    }
    text.push_str(". Give the names that you need as `query`; then you can call them.");
    text
}

/// The first sentence of a description, or the title.
fn one_line(tool: &ToolDefinition) -> String {
    let text = match (tool.description.trim(), &tool.title) {
        ("", Some(title)) => title,
        (description, _) => description,
    };
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = line
        .split_inclusive(". ")
        .next()
        .unwrap_or_default()
        .trim_end();
    let mut chars = sentence.chars();
    let short: String = chars.by_ref().take(LINE).collect();
    if chars.next().is_some() {
        format!("{}…", short.trim_end())
    } else {
        short
    }
}
