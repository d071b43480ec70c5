//! The tools of one MCP server after listing, filtering and conversion.

use std::{collections::HashSet, sync::Arc};

use switchboard_domain::{
    ToolDefinition, check_depth,
    similar_names::{did_you_mean, find_nearest},
};

use crate::{
    config::ServerConfig,
    tools::{
        convert::ListedTool, output_schema::OutputSchema, pagination::Freshness,
        tool_pinning::fingerprint::fingerprint, visibility::Visibility,
    },
};

/// Tools of one MCP server that the configured filters allow.
#[derive(Clone, Default)]
pub(crate) struct ServerTools {
    /// Tools in the order of the server's list.
    pub(crate) tools: Vec<Arc<CatalogTool>>,
    /// Problems of the list, such as the reason why a tool was dropped.
    pub(crate) problems: Vec<String>,
    /// Time to live of the list of tools, if the server declares it.
    pub(crate) freshness: Option<Freshness>,
}

/// Tool of an MCP server with its output schema, its fingerprint and its visibility.
pub(crate) struct CatalogTool {
    pub(crate) definition: Arc<ToolDefinition>,
    pub(crate) output_schema: Option<OutputSchema>,
    pub(crate) fingerprint: String,
    pub(crate) visibility: Visibility,
}

impl CatalogTool {
    /// Returns the name of the tool on its server, which is not its catalog name.
    pub(crate) fn original_name(&self) -> &str {
        self.definition.original_name()
    }
}

impl ServerTools {
    /// Applies the configured filters to the listed tools. Drops duplicates and tools whose schema
    /// is nested too deeply, and records these as problems.
    pub(crate) fn new(
        config: &ServerConfig,
        listed: Vec<ListedTool>,
        mut problems: Vec<String>,
    ) -> Self {
        check_tool_filters(config, &listed, &mut problems);
        let mut names = HashSet::new();
        let mut tools = Vec::new();
        for ListedTool {
            mut tool,
            visibility,
        } in listed
        {
            let name = tool.original_name().to_owned();
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
                problems.push(format!(
                    "`{name}` is listed twice; the first definition is used"
                ));
                continue;
            }
            tool.sequential = config.sequential;
            let definition = Arc::new(tool);
            tools.push(Arc::new(CatalogTool {
                output_schema: OutputSchema::new(&definition),
                fingerprint: fingerprint(&definition),
                visibility,
                definition,
            }));
        }
        Self {
            tools,
            problems,
            freshness: None,
        }
    }

    /// Returns the tools that models may call. The other tools are only for pages of MCP Apps.
    pub(crate) fn model_tools(&self) -> impl Iterator<Item = &Arc<CatalogTool>> {
        self.tools.iter().filter(|tool| tool.visibility.model)
    }

    /// Returns the tools that only pages of MCP Apps may call, not models.
    pub(crate) fn app_only_tools(&self) -> impl Iterator<Item = &Arc<CatalogTool>> {
        self.tools.iter().filter(|tool| !tool.visibility.model)
    }

    /// Finds a tool by its catalog name, by which models call it. Ignores tools that only pages of
    /// MCP Apps may call.
    pub(crate) fn find_tool(&self, name: &str) -> Option<Arc<CatalogTool>> {
        let mut tools = self.model_tools();
        tools.find(|tool| tool.definition.name == name).cloned()
    }

    /// Finds a tool by its name on the server, including tools that only pages of MCP Apps may
    /// call.
    pub(crate) fn find_by_original_name(&self, name: &str) -> Option<Arc<CatalogTool>> {
        let mut tools = self.tools.iter();
        tools.find(|tool| tool.original_name() == name).cloned()
    }

    /// Returns whether two lists have the same tool definitions and visibilities in the same order.
    pub(crate) fn has_same_tools(&self, other: &Self) -> bool {
        let is_same = |(one, other): (&Arc<CatalogTool>, &Arc<CatalogTool>)| {
            one.definition == other.definition && one.visibility == other.visibility
        };
        self.tools.len() == other.tools.len() && self.tools.iter().zip(&other.tools).all(is_same)
    }
}

/// Adds a problem for each tool in the configured filters that the server does not list.
fn check_tool_filters(config: &ServerConfig, listed: &[ListedTool], problems: &mut Vec<String>) {
    let names: Vec<&str> = listed.iter().map(|it| it.tool.original_name()).collect();
    let allowed = config.allowed_tools.as_deref().unwrap_or_default();
    for (key, configured) in [
        ("allowed_tools", allowed),
        ("exclude_tools", config.exclude_tools.as_slice()),
    ] {
        for name in configured {
            if !names.contains(&name.as_str()) {
                let similar = find_nearest(name, names.iter().copied());
                problems.push(format!(
                    "`{key}` contains `{name}`, but the server has no such tool{}",
                    did_you_mean(similar)
                ));
            }
        }
    }
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
mod tests;
