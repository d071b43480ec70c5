//! Selection and descriptions of the tools in a recipe.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use switchboard_domain::{
    ToolDefinition,
    similar_names::{did_you_mean, find_nearest},
};

use super::Recipe;
use crate::tools::{definition_cache::DefinitionCache, name_pattern::NamePattern};

/// Rules of a recipe that select tools and replace their descriptions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ToolRules {
    /// Whether the model gets any tools. `false` overrides the patterns.
    pub enabled: bool,
    /// Patterns of the tools that the model gets; see [`matches_tool`]. `None` offers all tools.
    #[serde(alias = "whitelist", skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// Patterns of the tools that the model does not get.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// Pairs of a tool name or pattern and a description. The description replaces the original
    /// descriptions of the matching tools.
    ///
    /// If several pairs match a tool, an exact name takes precedence over a pattern, and an earlier
    /// pair over a later one.
    #[serde(
        deserialize_with = "super::read::deserialize_descriptions",
        serialize_with = "serialize_as_map",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub descriptions: Vec<(String, String)>,
    /// Tools under the key `tools` of a recipe file, with optional descriptions: a short form of
    /// `allow` and `descriptions`. [`ToolRules::merge_listed_tools`] moves the names to `allow` and
    /// the descriptions to `descriptions`.
    #[serde(rename = "tools", skip_serializing)]
    listed: Option<Vec<ListedTool>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a name or a map with `name`")]
struct ListedTool {
    name: String,
    description: Option<String>,
}

impl Default for ToolRules {
    fn default() -> Self {
        Self {
            enabled: true,
            allow: None,
            exclude: Vec::new(),
            descriptions: Vec::new(),
            listed: None,
        }
    }
}

fn serialize_as_map<S: serde::Serializer>(
    pairs: &[(String, String)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(name, text)| (name, text)))
}

/// Returns whether a pattern of a recipe matches a tool.
///
/// The pattern is compared with the name that the model sees, with the tool's name on its server,
/// and with `server__tool`. `*` matches any characters and `?` one character. All characters except
/// letters, digits, `*` and `?` are equal to `_`, because some providers reject them in names. So
/// `data/read` matches `data_read`. The names `compile-typescript` and `test/run/suite` of another
/// program also match the tools `compile` and `test_run`.
///
/// A pattern with `__` names a server. It is not compared with a name on a server that contains
/// `__`, because a server could choose such a name to imitate another server.
///
/// ```
/// use serde_json::json;
/// use switchboard_domain::{ToolDefinition, ToolOrigin};
/// use switchboard_orchestration::recipe::matches_tool;
///
/// let mut tool = ToolDefinition::new("crm__data_read", "", json!({}));
/// tool.origin = Some(ToolOrigin { server: "crm".into(), tool: "data-read".into() });
/// assert!(["crm__*", "data/read", "data_*"].iter().all(|it| matches_tool(it, &tool)));
/// assert!(!matches_tool("data", &tool));
/// ```
pub fn matches_tool(pattern: &str, tool: &ToolDefinition) -> bool {
    let plain_pattern = replace_special_characters(pattern);
    let names_server = plain_pattern.contains("__");
    let alias = find_alias(&plain_pattern);
    let pattern = NamePattern::new(plain_pattern);
    let own = tool
        .origin
        .as_ref()
        .filter(|origin| !(names_server && origin.tool.contains("__")))
        .map(|origin| replace_special_characters(&origin.tool));
    let full = tool
        .origin
        .as_ref()
        .map(|origin| replace_special_characters(&format!("{}__{}", origin.server, origin.tool)));
    let declared = Some(replace_special_characters(&tool.name));
    [declared, own, full]
        .into_iter()
        .flatten()
        .any(|name| pattern.matches(&name) || alias == Some(&*name))
}

/// Returns the tool of the bundled server `workspace` that corresponds to a tool of another
/// program. Recipes of that program name its tools.
pub(super) fn find_alias(pattern: &str) -> Option<&'static str> {
    match replace_special_characters(pattern).as_str() {
        "compile_typescript" => Some("compile"),
        "test_run_suite" => Some("test_run"),
        _ => None,
    }
}

/// Converts a pattern of [`matches_tool`] to the text of a [`NamePattern`]. For [`matches_tool`],
/// special characters are equal to `_`, but a [`NamePattern`] compares them exactly, so they become
/// `?`. The converted pattern can match more tools than the original.
pub(super) fn to_name_pattern_text(pattern: &str) -> String {
    replace_special_characters(pattern).replace('_', "?")
}

/// Splits a pattern such as `crm__delete_*` into a pattern of the server and a pattern of the tool.
/// Returns `None` if there is no `__`.
pub(super) fn split_tool_pattern(pattern: &str) -> Option<(String, String)> {
    let plain = replace_special_characters(pattern);
    let (server, tool) = plain.split_once("__")?;
    Some((to_name_pattern_text(server), to_name_pattern_text(tool)))
}

fn replace_special_characters(name: &str) -> String {
    let is_special = |c: char| !c.is_alphanumeric() && !matches!(c, '_' | '*' | '?');
    name.replace(is_special, "_")
}

/// A selector that applies the [`ToolRules`] of a recipe to the tools of each model call.
///
/// A tool with a replaced description has the same `Arc` in every call until its original
/// definition changes. Caches with one entry per `Arc` therefore stay valid.
#[derive(Debug)]
pub struct RecipeTools {
    rules: ToolRules,
    described: DefinitionCache<ToolDefinition>,
}

/// The tools that a recipe selects for one model call, and warnings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SelectedTools {
    /// Selected tools, in the order in which the hosts list them.
    pub tools: Vec<Arc<ToolDefinition>>,
    /// Warnings about names in the recipe that match no tool.
    pub problems: Vec<String>,
}

impl RecipeTools {
    /// Creates a selector with the tool rules of a recipe.
    pub fn new(recipe: &Recipe) -> Self {
        Self {
            rules: recipe.tools.clone(),
            described: DefinitionCache::default(),
        }
    }

    /// Returns the tools that the recipe selects from `tools`, with replaced descriptions.
    pub fn select_tools(&self, tools: &[Arc<ToolDefinition>]) -> SelectedTools {
        if !self.rules.enabled {
            return SelectedTools::default();
        }
        let rules = &self.rules;
        let is_any = |patterns: &[String], tool: &ToolDefinition| {
            patterns.iter().any(|pattern| matches_tool(pattern, tool))
        };
        let offered: Vec<&Arc<ToolDefinition>> = tools
            .iter()
            .filter(|tool| rules.allow.as_ref().is_none_or(|allow| is_any(allow, tool)))
            .filter(|tool| !is_any(&rules.exclude, tool))
            .collect();
        let described = rules.descriptions.iter().map(|(name, _)| name);
        let mut problems = Vec::new();
        for name in rules.allow.iter().flatten().chain(described) {
            if !tools.iter().any(|tool| matches_tool(name, tool)) {
                let names = tools.iter().map(|tool| tool.name.as_str());
                let own = tools.iter().filter_map(|tool| tool.origin.as_ref());
                let own = own.map(|origin| origin.tool.as_str());
                let meant = did_you_mean(find_nearest(name, names.chain(own)));
                let problem =
                    format!("the recipe names the tool `{name}`, which does not exist{meant}");
                if !problems.contains(&problem) {
                    problems.push(problem);
                }
            }
        }
        let tools = offered
            .into_iter()
            .map(|tool| match rules.find_description(tool) {
                Some(text) => self.described.get_or_create(tool, |tool| ToolDefinition {
                    description: text.to_owned(),
                    ..tool.clone()
                }),
                None => Arc::clone(tool),
            })
            .collect();
        SelectedTools { tools, problems }
    }
}

impl ToolRules {
    /// Moves the tools under the key `tools` of the recipe file into `allow` and `descriptions`.
    pub(super) fn merge_listed_tools(&mut self) {
        let Some(tools) = self.listed.take() else {
            return;
        };
        let allow = self.allow.get_or_insert_default();
        allow.extend(tools.iter().map(|tool| tool.name.clone()));
        let described = tools
            .into_iter()
            .filter_map(|tool| Some((tool.name, tool.description?)));
        self.descriptions.splice(0..0, described);
    }

    fn find_description(&self, tool: &ToolDefinition) -> Option<&str> {
        let is_exact = |name: &str| !name.contains(['*', '?']);
        let exact = self.descriptions.iter().filter(|(name, _)| is_exact(name));
        let pattern = self.descriptions.iter().filter(|(name, _)| !is_exact(name));
        exact
            .chain(pattern)
            .find(|(name, _)| matches_tool(name, tool))
            .map(|(_, text)| text.as_str())
    }
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;
