//! A tool host that combines several tool hosts.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use futures_util::{StreamExt, future::join_all, stream};
use switchboard_domain::{
    ServerProblem, ToolCall, ToolCallError, ToolCatalog, ToolDefinition, ToolHost, ToolHostChange,
    ToolHostChanges, ToolOutput,
};

/// Maximum length in bytes of a tool name that every provider accepts.
const MAX_NAME_BYTES: usize = 64;
/// Maximum number of names that are tried for a tool whose name is taken. If all of them are taken,
/// the tool is omitted.
const MAX_NAME_ATTEMPTS: usize = 100;

/// Several tool hosts, such as MCP servers and Rust functions, that act as one tool host.
///
/// The tools are listed in the order of the hosts. If two hosts have a tool with the same name, the
/// tool of the earlier host keeps the name. The other tool is renamed to `server__name` with the
/// server of its origin, or to `host2__name` with the position of its host. A number is appended if
/// that name is taken. A name belongs to the same tool for the life of the set, so a call never
/// reaches another tool.
///
/// The hosts are queried concurrently. A slow host delays the list.
#[derive(Default, derive_more::Debug)]
#[debug("ToolSet {{ hosts: {}, .. }}", hosts.len())]
pub struct ToolSet {
    hosts: Vec<Arc<dyn ToolHost>>,
    members: Arc<Mutex<ToolSetMembers>>,
}

/// The tools that the hosts have listed so far, by their unique names in the set.
type ToolSetMembers = HashMap<String, ToolSetMember>;

struct ToolSetMember {
    /// Index of the tool's host in [`ToolSet::hosts`].
    host: usize,
    /// The tool definition as its host lists it.
    original: Arc<ToolDefinition>,
    /// The tool definition with its unique name in the set.
    offered: Arc<ToolDefinition>,
}

impl ToolSet {
    /// Creates a set without tool hosts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool host to the end of the set.
    #[must_use]
    pub fn with_host(self, host: impl ToolHost + 'static) -> Self {
        self.with_shared_host(Arc::new(host))
    }

    /// Adds a tool host to the end of the set, which other parts of the program may use too.
    #[must_use]
    pub fn with_shared_host(mut self, host: Arc<dyn ToolHost>) -> Self {
        self.hosts.push(host);
        self
    }

    /// Returns the host of the tool that has this name in the set, and the tool's name on this
    /// host. Returns `None` if the tool was never listed.
    fn find_host(&self, name: &str) -> Option<(&dyn ToolHost, String)> {
        let members = lock_members(&self.members);
        let member = members.get(name)?;
        let host = self.hosts.get(member.host)?;
        Some((&**host, member.original.name.clone()))
    }
}

fn lock_members(members: &Mutex<ToolSetMembers>) -> MutexGuard<'_, ToolSetMembers> {
    members.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the name that a tool has in the set. `tool` is its name on the host at index `host`.
/// Returns `None` if the tool was never listed.
fn find_name_in_set(members: &ToolSetMembers, host: usize, tool: &str) -> Option<String> {
    let mut members = members.iter();
    let found = members.find(|(_, it)| it.host == host && it.original.name == tool);
    found.map(|(name, _)| name.clone())
}

/// Returns the definition of a host's tool, with the unique name of the tool in the set. Returns
/// the same `Arc` until the host changes the definition. Returns `None` if no name is free.
fn offer_under_unique_name(
    members: &mut ToolSetMembers,
    host: usize,
    original: &Arc<ToolDefinition>,
) -> Option<Arc<ToolDefinition>> {
    let known = find_name_in_set(members, host, &original.name);
    let name = known.or_else(|| find_free_name(members, host, original))?;
    if let Some(member) = members.get(&name)
        && Arc::ptr_eq(&member.original, original)
    {
        return Some(Arc::clone(&member.offered));
    }
    let mut offered = Arc::clone(original);
    if name != original.name {
        Arc::make_mut(&mut offered).name.clone_from(&name);
    }
    let member = ToolSetMember {
        host,
        original: Arc::clone(original),
        offered: Arc::clone(&offered),
    };
    members.insert(name, member);
    Some(offered)
}

fn find_free_name(members: &ToolSetMembers, host: usize, tool: &ToolDefinition) -> Option<String> {
    if !members.contains_key(&tool.name) {
        return Some(tool.name.clone());
    }
    let full = format!("{}__{}", server_name(host, tool), tool.name);
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let full = full.replace(|c| !is_allowed(c), "_");
    let suffixes = (2..=MAX_NAME_ATTEMPTS).map(|n| format!("_{n}"));
    let mut names = [String::new()].into_iter().chain(suffixes).map(|suffix| {
        // The name contains only ASCII, so it can be cut at any byte.
        let end = full.len().min(MAX_NAME_BYTES - suffix.len());
        format!("{}{suffix}", &full[..end])
    });
    names.find(|name| !members.contains_key(name))
}

/// Returns the server name of a tool. A tool without a server gets a name from its host's position.
fn server_name(host: usize, tool: &ToolDefinition) -> String {
    match &tool.origin {
        Some(origin) if !origin.server.is_empty() => origin.server.clone(),
        _ => format!("host{}", host + 1),
    }
}

#[async_trait]
impl ToolHost for ToolSet {
    async fn list_tools(&self) -> ToolCatalog {
        let catalogs = join_all(self.hosts.iter().map(|host| host.list_tools())).await;
        let mut all = ToolCatalog::default();
        let mut members = lock_members(&self.members);
        for (host, catalog) in catalogs.into_iter().enumerate() {
            for tool in &catalog.tools {
                match offer_under_unique_name(&mut members, host, tool) {
                    Some(tool) => all.tools.push(tool),
                    None => all.problems.push(ServerProblem {
                        server: server_name(host, tool),
                        message: format!(
                            "`{}` is not available: too many tools have this name",
                            tool.name
                        ),
                    }),
                }
            }
            all.problems.extend(catalog.problems);
        }
        all
    }

    async fn call_tool(&self, call: ToolCall) -> Result<ToolOutput, ToolCallError> {
        let mut known = self.find_host(&call.name);
        if known.is_none() {
            // A resumed run may call a tool that this set has not listed yet. Listing the tools
            // makes this tool known to the set.
            let _ = self.list_tools().await;
            known = self.find_host(&call.name);
        }
        let outer = call.name.clone();
        if let Some((host, name)) = known {
            match host.call_tool(ToolCall { name, ..call }).await {
                // The error of the host lists only the tools of this host. An error with the tools
                // of all hosts replaces it below.
                Err(ToolCallError::UnknownTool { .. }) => {}
                answer => return answer,
            }
        }
        let tools = self.list_tools().await.tools;
        Err(ToolCallError::UnknownTool {
            name: outer,
            available: tools.iter().map(|tool| tool.name.clone()).collect(),
        })
    }

    fn watch_changes(&self) -> ToolHostChanges {
        let all = self.hosts.iter().enumerate().map(|(position, host)| {
            let members = Arc::clone(&self.members);
            host.watch_changes().map(move |mut change| {
                if let ToolHostChange::ToolRedefined { tool, .. } = &mut change
                    && let Some(name) = find_name_in_set(&lock_members(&members), position, tool)
                {
                    *tool = name;
                }
                change
            })
        });
        Box::pin(stream::select_all(all))
    }
}

#[cfg(test)]
#[path = "tool_set_tests.rs"]
mod tests;
