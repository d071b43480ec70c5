//! Warns about rules in the configuration that match no server or tool, such as misspelled ones.

use std::{collections::BTreeSet, sync::Arc};

use switchboard_domain::{
    ToolDefinition, ToolHost as _,
    similar_names::{did_you_mean, find_nearest},
};
use switchboard_mcp_client::{McpHost, ServerStatus};
use switchboard_orchestration::{
    policy::approval::{ApprovalRule, RuleVerdict},
    tools::name_pattern::NamePattern,
};

use crate::{config::Config, terminal};

/// The existing servers and tools, with whose names the rules are compared.
struct KnownServersAndTools {
    servers: Vec<ServerStatus>,
    tools: Vec<Arc<ToolDefinition>>,
}

/// Prints and logs a warning for each configured rule that matches no server or tool.
pub(crate) async fn warn_about_unknown_names_in_rules(config: &Config, host: &McpHost) {
    for message in find_unknown_names_in_rules(config, host).await {
        tracing::warn!("{message}");
        terminal::print_warning(&message);
    }
}

/// Returns a message for each name in `approvals` and `guards` that matches no server or tool.
///
/// The tools of a server that did not start are unknown, so names that may belong to them are not
/// reported. A name without a server may belong to any server.
pub(crate) async fn find_unknown_names_in_rules(config: &Config, host: &McpHost) -> Vec<String> {
    let guards = config.guards.as_deref().unwrap_or_default();
    if config.approvals.is_none() && guards.is_empty() {
        return Vec::new();
    }
    // Server states are read before tools. A server that becomes ready in between counts as not
    // ready, so its missing tools cause no warning.
    let servers = host.server_statuses();
    if servers.is_empty() {
        // If there are no servers, for example with `--no-tools`, no rule can be checked.
        return Vec::new();
    }
    let tools = host.list_tools().await.tools;
    let known = KnownServersAndTools { servers, tools };
    let mut messages = Vec::new();
    if let Some(approvals) = &config.approvals {
        let rules = approvals.approval_rules();
        messages.extend(rules.flat_map(|rule| known.describe_unknown_names(rule)));
    }
    messages.extend(guards.iter().filter_map(|guard| {
        let problem = known.describe_unknown_tool(&guard.tool, None, false)?;
        Some(format!(
            "`guards`: a guard names tool {problem}; the guard has no effect"
        ))
    }));
    messages
}

impl KnownServersAndTools {
    fn describe_unknown_names(&self, rule: &ApprovalRule) -> Vec<String> {
        let verdict = match rule.verdict {
            RuleVerdict::Allow => "allow",
            RuleVerdict::Ask => "ask",
            RuleVerdict::Deny => "deny",
        };
        let message = |what: &str, problem: String| {
            format!(
                "`approvals.rules`: a rule with verdict `{verdict}` names {what} {problem}; this \
                 part of the rule has no effect"
            )
        };
        if let Some(server) = &rule.server
            && let Some(problem) = self.describe_unknown_server(server)
        {
            return vec![message("server", problem)];
        }
        let tools = rule.tool.iter();
        tools
            .filter_map(|tool| self.describe_unknown_tool(tool, rule.server.as_ref(), true))
            .map(|problem| message("tool", problem))
            .collect()
    }

    fn describe_unknown_server(&self, pattern: &NamePattern) -> Option<String> {
        let names = || self.servers.iter().map(|server| server.name.as_str());
        if names().any(|name| pattern.matches(name)) {
            return None;
        }
        let near = did_you_mean(find_nearest(pattern.as_str(), names()));
        Some(format!(
            "`{pattern}`, but no configured server has this name{near}"
        ))
    }

    /// Returns a message if the pattern `name` matches no tool. Compares it with the tool names
    /// that models receive and, with `own`, with the names on the MCP servers. With `of`, considers
    /// only tools of servers that `of` matches. Returns `None` if one of these servers does not
    /// accept calls, because its tools are unknown.
    fn describe_unknown_tool(
        &self,
        name: &NamePattern,
        of: Option<&NamePattern>,
        own: bool,
    ) -> Option<String> {
        let is_meant = |server: &str| of.is_none_or(|pattern| pattern.matches(server));
        let mut servers = self.servers.iter();
        if servers.any(|it| !it.state.takes_calls() && is_meant(&it.name)) {
            return None;
        }
        let mut names = BTreeSet::new();
        for tool in &self.tools {
            let origin = tool.origin.as_ref();
            if !is_meant(origin.map_or("", |origin| &origin.server)) {
                continue;
            }
            names.insert(tool.name.as_str());
            names.extend(origin.filter(|_| own).map(|origin| origin.tool.as_str()));
        }
        if names.iter().any(|known| name.matches(known)) {
            return None;
        }
        let near = did_you_mean(find_nearest(name.as_str(), names.iter().copied()));
        Some(match of {
            Some(server) => {
                format!("`{name}`, but no tool of server `{server}` has this name{near}")
            }
            None => format!("`{name}`, but no tool has this name{near}"),
        })
    }
}
