//! Which tools a recipe offers, and how it describes them.

use std::{collections::HashMap, sync::Arc};

use serde::Serialize;
use switchboard_domain::{
    ToolDefinition,
    nearest::{did_you_mean, nearest},
};

use super::Recipe;
use crate::tools::pattern::Pattern;

/// Which tools are offered, and how they are described.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ToolRules {
    /// Whether there are tools at all.
    pub enabled: bool,
    /// Only these, as [`matches()`] has them; `None` is all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// Not these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// Descriptions that stand for the tools' own, by name or pattern. An exact name goes before a
    /// pattern, and an earlier one before a later.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "as_map")]
    pub descriptions: Vec<(String, String)>,
}

impl Default for ToolRules {
    fn default() -> Self {
        Self {
            enabled: true,
            allow: None,
            exclude: Vec::new(),
            descriptions: Vec::new(),
        }
    }
}

fn as_map<S: serde::Serializer>(
    pairs: &[(String, String)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(name, text)| (name, text)))
}

/// Whether a tool is one of those that a recipe names so.
///
/// Meant is the name under which the model knows it, its own name, or `server__tool`; `*` stands for
/// any characters and `?` for one. Characters that no tool's name has on every provider are the same
/// as `_`, so that `data/read` is `data_read`. An own name with `__` in it is not taken for a server's
/// tool: any server could call one so.
///
/// ```
/// use serde_json::json;
/// use switchboard_domain::{ToolDefinition, ToolOrigin};
/// use switchboard_orchestration::recipe::matches;
///
/// let mut tool = ToolDefinition::new("crm__data_read", "", json!({}));
/// tool.origin = Some(ToolOrigin { server: "crm".into(), tool: "data-read".into() });
/// assert!(matches("crm__*", &tool) && matches("data/read", &tool) && matches("data_*", &tool));
/// assert!(!matches("data", &tool));
/// ```
pub fn matches(pattern: &str, tool: &ToolDefinition) -> bool {
    let plain_pattern = plain(pattern);
    let of_a_server = plain_pattern.contains("__");
    let pattern = Pattern::new(plain_pattern);
    let own = tool
        .origin
        .as_ref()
        .filter(|origin| !(of_a_server && origin.tool.contains("__")))
        .map(|origin| plain(&origin.tool));
    let full = tool
        .origin
        .as_ref()
        .map(|origin| plain(&format!("{}__{}", origin.server, origin.tool)));
    // The name for the model is made of server and tool, so it stands for both.
    let declared = Some(plain(&tool.name));
    [declared, own, full]
        .into_iter()
        .flatten()
        .any(|name| pattern.matches(&name))
}

/// A pattern for a reader that compares characters as they are: whatever stands between the words of a
/// name, as [`matches()`] has it. Where it says more than that, it matches too much and never too little.
pub(super) fn loose(pattern: &str) -> String {
    plain(pattern).replace('_', "?")
}

/// The server and the own name that a pattern such as `crm__delete_*` means, both loose.
pub(super) fn loose_halves(pattern: &str) -> Option<(String, String)> {
    let plain = plain(pattern);
    let (server, tool) = plain.split_once("__")?;
    Some((loose(server), loose(tool)))
}

fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '*' | '?');
    name.chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect()
}

/// Applies a recipe's [`ToolRules`] to the tools of each step.
///
/// Tools that are described anew are made once: as long as a tool stays the same so does its `Arc`,
/// which saves work and keeps prompts the same. It belongs beside a run, and not into it.
#[derive(Debug, Clone)]
pub struct RecipeTools {
    rules: ToolRules,
    described: HashMap<String, Described>,
}

#[derive(Debug, Clone)]
struct Described {
    original: Arc<ToolDefinition>,
    changed: Arc<ToolDefinition>,
}

/// The tools of a step.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SelectedTools {
    /// Those that are offered, in their order.
    pub tools: Vec<Arc<ToolDefinition>>,
    /// Names in the recipe that are no tool's, in words.
    pub problems: Vec<String>,
}

impl RecipeTools {
    /// The tools of a recipe.
    pub fn new(recipe: &Recipe) -> Self {
        Self {
            rules: recipe.tools.clone(),
            described: HashMap::new(),
        }
    }

    /// The tools that are offered out of those that there are.
    pub fn apply(&mut self, tools: &[Arc<ToolDefinition>]) -> SelectedTools {
        if !self.rules.enabled {
            return SelectedTools::default();
        }
        let rules = &self.rules;
        let is_any = |patterns: &[String], tool: &ToolDefinition| {
            patterns.iter().any(|pattern| matches(pattern, tool))
        };
        let offered: Vec<&Arc<ToolDefinition>> = tools
            .iter()
            .filter(|tool| rules.allow.as_ref().is_none_or(|allow| is_any(allow, tool)))
            .filter(|tool| !is_any(&rules.exclude, tool))
            .collect();
        let described = rules.descriptions.iter().map(|(name, _)| name);
        let mut problems = Vec::new();
        for name in rules.allow.iter().flatten().chain(described) {
            if !tools.iter().any(|tool| matches(name, tool)) {
                let names = tools.iter().map(|tool| tool.name.as_str());
                let own = tools.iter().filter_map(|tool| tool.origin.as_ref());
                let own = own.map(|origin| origin.tool.as_str());
                let meant = did_you_mean(nearest(name, names.chain(own)));
                let problem = format!("no tool is called `{name}`, which the recipe names{meant}");
                if !problems.contains(&problem) {
                    problems.push(problem);
                }
            }
        }
        let tools = offered
            .into_iter()
            .map(|tool| match self.rules.description_of(tool) {
                Some(text) => described_as(&mut self.described, tool, text),
                None => Arc::clone(tool),
            })
            .collect();
        SelectedTools { tools, problems }
    }
}

impl ToolRules {
    fn description_of(&self, tool: &ToolDefinition) -> Option<&str> {
        let is_exact = |name: &str| !name.contains(['*', '?']);
        let exact = self.descriptions.iter().filter(|(name, _)| is_exact(name));
        let pattern = self.descriptions.iter().filter(|(name, _)| !is_exact(name));
        exact
            .chain(pattern)
            .find(|(name, _)| matches(name, tool))
            .map(|(_, text)| text.as_str())
    }
}

fn described_as(
    made: &mut HashMap<String, Described>,
    tool: &Arc<ToolDefinition>,
    text: &str,
) -> Arc<ToolDefinition> {
    if let Some(known) = made.get_mut(&tool.name)
        && (Arc::ptr_eq(&known.original, tool) || known.original == *tool)
    {
        known.original = Arc::clone(tool);
        return Arc::clone(&known.changed);
    }
    let changed = Arc::new(ToolDefinition {
        description: text.to_owned(),
        ..ToolDefinition::clone(tool)
    });
    let described = Described {
        original: Arc::clone(tool),
        changed: Arc::clone(&changed),
    };
    made.insert(tool.name.clone(), described);
    changed
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;
