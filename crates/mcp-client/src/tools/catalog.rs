//! The tools of one server after listing, filtering and conversion.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use switchboard_domain::{
    ToolDefinition, check_depth,
    nearest::{did_you_mean, nearest},
};

use crate::{
    config::ServerConfig,
    features::list_cache::Freshness,
    tools::{
        convert::ListedTool, output_schema::OutputSchema, tool_pinning::fingerprint::fingerprint,
    },
};

/// The tools of one server.
#[derive(Clone, Default)]
pub(crate) struct ServerTools {
    /// Tools for models, in the order of the server.
    pub(crate) definitions: Vec<Arc<ToolDefinition>>,
    /// Tools only for pages of MCP Apps, in the order of the server.
    pub(crate) app_only: Vec<Arc<ToolDefinition>>,
    /// Descriptions of missing tools.
    pub(crate) problems: Vec<String>,
    /// How long the list is valid, if the server declares it.
    pub(crate) freshness: Option<Freshness>,
    /// Fingerprints by the tools' original names.
    pub(crate) fingerprints: HashMap<String, String>,
    /// Original names of tools that pages may not call.
    hidden_from_apps: HashSet<String>,
    /// Indexes into `definitions` by the names in the catalog.
    index: HashMap<String, usize>,
    /// Output schemas by the names in the catalog.
    output_schemas: HashMap<String, Arc<OutputSchema>>,
}

/// A tool and its output schema.
#[derive(Clone)]
pub(crate) struct ResolvedTool {
    pub(crate) definition: Arc<ToolDefinition>,
    pub(crate) output_schema: Option<Arc<OutputSchema>>,
}

impl ServerTools {
    /// Applies the configured filters to the listed tools. Drops duplicates and tools with a too
    /// deep schema, and records that as problems.
    pub(crate) fn new(
        config: &ServerConfig,
        listed: Vec<ListedTool>,
        mut problems: Vec<String>,
    ) -> Self {
        check_filters(config, &listed, &mut problems);
        let mut names = HashSet::new();
        let mut tools = Self::default();
        for ListedTool {
            mut tool,
            visibility,
        } in listed
        {
            let name = original_name(&tool).to_owned();
            let allowed = config.allowed_tools.as_ref();
            let is_allowed = allowed.is_none_or(|allowed| allowed.contains(&name));
            if !is_allowed || config.exclude_tools.contains(&name) {
                continue;
            }
            let schemas = [Some(&tool.input_schema), tool.output_schema.as_ref()];
            if let Err(too_deep) = schemas.into_iter().flatten().try_for_each(check_depth) {
                problems.push(format!(
                    "tool `{name}` is not available: one of its schemas is {too_deep}"
                ));
                continue;
            }
            if !names.insert(name.clone()) {
                problems.push(format!("it lists `{name}` twice; the first one is used"));
                continue;
            }
            tool.sequential = config.sequential;
            tools.add(name, tool, visibility.model, visibility.app);
        }
        tools.problems = problems;
        tools
    }

    fn add(&mut self, name: String, tool: ToolDefinition, for_models: bool, for_apps: bool) {
        let tool = Arc::new(tool);
        if let Some(schema) = OutputSchema::new(&tool) {
            self.output_schemas
                .insert(tool.name.clone(), Arc::new(schema));
        }
        if !for_apps {
            self.hidden_from_apps.insert(name.clone());
        }
        if for_models {
            self.fingerprints.insert(name, fingerprint(&tool));
            let index = self.definitions.len();
            self.index.entry(tool.name.clone()).or_insert(index);
            self.definitions.push(tool);
        } else {
            self.app_only.push(tool);
        }
    }

    /// Finds a tool by its name in the catalog.
    pub(crate) fn find(&self, name: &str) -> Option<ResolvedTool> {
        let definition = self.definitions.get(*self.index.get(name)?)?;
        Some(self.resolve(definition))
    }

    /// Finds a tool by its original name, also one only for pages.
    pub(crate) fn find_original(&self, name: &str) -> Option<ResolvedTool> {
        let mut all = self.definitions.iter().chain(&self.app_only);
        let definition = all.find(|tool| original_name(tool) == name)?;
        Some(self.resolve(definition))
    }

    /// Returns whether pages of MCP Apps may not call a tool, by its original name.
    pub(crate) fn is_hidden_from_apps(&self, name: &str) -> bool {
        self.hidden_from_apps.contains(name)
    }

    fn resolve(&self, definition: &Arc<ToolDefinition>) -> ResolvedTool {
        ResolvedTool {
            definition: definition.clone(),
            output_schema: self.output_schemas.get(&definition.name).cloned(),
        }
    }
}

/// Records configured names of tools that the server does not have.
fn check_filters(config: &ServerConfig, listed: &[ListedTool], problems: &mut Vec<String>) {
    let names: Vec<&str> = listed.iter().map(|it| original_name(&it.tool)).collect();
    let allowed = config.allowed_tools.as_deref().unwrap_or_default();
    for (key, configured) in [
        ("allowed_tools", allowed),
        ("exclude_tools", config.exclude_tools.as_slice()),
    ] {
        for name in configured {
            if !names.contains(&name.as_str()) {
                let similar = nearest(name, names.iter().copied());
                problems.push(format!(
                    "`{key}` names `{name}`, a tool that the server does not have{}",
                    did_you_mean(similar)
                ));
            }
        }
    }
}

/// Returns the name that the server uses for its tool.
pub(crate) fn original_name(tool: &ToolDefinition) -> &str {
    let origin = tool.origin.as_ref();
    origin.map_or(&tool.name, |origin| &origin.tool)
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
mod tests;
