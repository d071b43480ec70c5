//! Which tools the model is shown.

use std::{collections::HashSet, fmt::Write, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use switchboard_domain::{JsonObject, ToolAnnotations, ToolDefinition, ToolOutput};

use super::{SearchPolicy, ToolIndex};

const NAME: &str = "search_tools";
/// Servers that the tool's description names.
const SERVERS: usize = 30;
/// Characters of a tool's one-line description.
const LINE: usize = 160;

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

    /// Runs a search, and shows what it found from the next request on.
    pub fn answer_search(
        &mut self,
        policy: &SearchPolicy,
        index: &mut ToolIndex,
        input: &JsonObject,
    ) -> SearchAnswer {
        let query = input
            .get("query")
            .and_then(Value::as_str)
            .unwrap_or("")
            .trim();
        if query.is_empty() {
            let text = "Nothing was searched for: say in `query` what the tool should do.";
            return SearchAnswer {
                output: ToolOutput {
                    is_error: true,
                    ..ToolOutput::text(text)
                },
                found: Vec::new(),
                revealed: Vec::new(),
            };
        }
        let most = policy.max_results.max(1);
        let limit = input
            .get("limit")
            .and_then(Value::as_u64)
            .and_then(|limit| usize::try_from(limit).ok())
            .map_or(most, |limit| limit.clamp(1, most));
        let hits = index.search(query, limit);
        let mut text = match hits.len() {
            0 => "No tool fits. Search again with other words, or for something more general."
                .to_owned(),
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
    let mut name = NAME.to_owned();
    let mut n = 2;
    while index.get(&name).is_some() {
        name = format!("{NAME}_{n}");
        n += 1;
    }
    let shown: HashSet<&str> = shown.iter().map(String::as_str).collect();
    let mut servers: Vec<&str> = Vec::new();
    let mut hidden = 0_usize;
    for tool in index.tools() {
        hidden += usize::from(!shown.contains(tool.name.as_str()));
        let server = tool.origin.as_ref().map(|origin| origin.server.as_str());
        servers.extend(server.filter(|server| !servers.contains(server)));
    }
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
                "description": "What the tool should do, in a few English words, such as `create calendar event`.",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": policy.max_results.max(1),
                "description": "How many tools to list at most.",
            },
        },
        "required": ["query"],
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
