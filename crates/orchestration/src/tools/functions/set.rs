//! Several tool hosts as one.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use futures_util::{StreamExt, future::join_all, stream};
use switchboard_domain::{
    ServerProblem, ToolCall, ToolCallError, ToolCatalog, ToolDefinition, ToolHost, ToolHostChange,
    ToolHostChanges, ToolOutput,
};

use crate::tools::per_definition::PerDefinition;

/// Maximum length of a tool name that every provider accepts.
const MAX_NAME_BYTES: usize = 64;
/// Maximum number of names that are tried for one tool.
const MAX_NAME_ATTEMPTS: usize = 100;

/// Several tool hosts as one, such as MCP servers and Rust functions.
///
/// The tools are in the order of the hosts. If two hosts have a tool with the same name, the tool
/// of the earlier host keeps it. The other one is renamed to `server__name` with the server of its
/// origin, or to `host2__name` with the position of the host; a number is appended if that name is
/// taken. A name stays with its tool for the life of the set, so a call never reaches another tool.
///
/// The hosts are queried concurrently. A slow host delays the list.
#[derive(Default)]
pub struct ToolSet {
    hosts: Vec<Member>,
    names: Arc<Mutex<Names>>,
}

struct Member {
    host: Arc<dyn ToolHost>,
    /// Its definitions with other names.
    renamed: PerDefinition<Option<Arc<ToolDefinition>>>,
}

/// The names of the tools in the set, by position of the host and its own name of the tool.
#[derive(Default)]
struct Names(HashMap<(usize, String), String>);

impl ToolSet {
    /// Creates a set without hosts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a host.
    #[must_use]
    pub fn with(self, host: impl ToolHost + 'static) -> Self {
        self.with_shared(Arc::new(host))
    }

    /// Adds a host that is shared with others.
    #[must_use]
    pub fn with_shared(mut self, host: Arc<dyn ToolHost>) -> Self {
        self.hosts.push(Member {
            host,
            renamed: PerDefinition::default(),
        });
        self
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the definition with its name in the set, or `None` if all names are taken.
    fn named(&self, position: usize, tool: &Arc<ToolDefinition>) -> Option<Arc<ToolDefinition>> {
        let name = self.names().name_of(position, tool)?;
        if name == tool.name {
            return Some(Arc::clone(tool));
        }
        let renamed = self.hosts.get(position)?.renamed.of(tool, |tool| {
            Some(Arc::new(ToolDefinition {
                name,
                ..tool.clone()
            }))
        });
        (*renamed).clone()
    }

    /// Returns the host of a tool and the tool's name there.
    fn host_of(&self, name: &str) -> Option<(&dyn ToolHost, String)> {
        let names = self.names();
        let (id, _) = names.0.iter().find(|(_, used)| *used == name)?;
        let member = self.hosts.get(id.0)?;
        Some((&*member.host, id.1.clone()))
    }
}

impl Names {
    fn name_of(&mut self, position: usize, tool: &ToolDefinition) -> Option<String> {
        let id = (position, tool.name.clone());
        if let Some(name) = self.0.get(&id) {
            return Some(name.clone());
        }
        let name = self.free_name(position, tool)?;
        self.0.insert(id, name.clone());
        Some(name)
    }

    fn free_name(&self, position: usize, tool: &ToolDefinition) -> Option<String> {
        let is_free = |name: &String| !self.0.values().any(|used| used == name);
        if is_free(&tool.name) {
            return Some(tool.name.clone());
        }
        let owner = match &tool.origin {
            Some(origin) if !origin.server.is_empty() => origin.server.clone(),
            _ => format!("host{}", position + 1),
        };
        let full: String = format!("{owner}__{}", tool.name)
            .chars()
            .map(|c| match c {
                'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => c,
                _ => '_',
            })
            .collect();
        (1..=MAX_NAME_ATTEMPTS)
            .map(|n| {
                let suffix = if n == 1 {
                    String::new()
                } else {
                    format!("_{n}")
                };
                let room = MAX_NAME_BYTES - suffix.len();
                // ASCII only, so it can be cut anywhere.
                format!("{}{suffix}", &full[..full.len().min(room)])
            })
            .find(is_free)
    }
}

impl fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolSet")
            .field("hosts", &self.hosts.len())
            .field("tools", &self.names().0.len())
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl ToolHost for ToolSet {
    async fn tools(&self) -> ToolCatalog {
        let catalogs = join_all(self.hosts.iter().map(|member| member.host.tools())).await;
        let mut all = ToolCatalog::default();
        for (position, catalog) in catalogs.into_iter().enumerate() {
            for tool in &catalog.tools {
                match self.named(position, tool) {
                    Some(tool) => all.tools.push(tool),
                    None => all.problems.push(ServerProblem {
                        server: tool
                            .origin
                            .as_ref()
                            .map_or_else(|| format!("host{}", position + 1), |o| o.server.clone()),
                        message: format!(
                            "`{}` is not offered: too many tools have this name",
                            tool.name
                        ),
                    }),
                }
            }
            all.problems.extend(catalog.problems);
        }
        all
    }

    async fn call(&self, call: ToolCall) -> Result<ToolOutput, ToolCallError> {
        let mut known = self.host_of(&call.name);
        if known.is_none() {
            // The list may not have been read yet, for example after a run was resumed.
            let _ = self.tools().await;
            known = self.host_of(&call.name);
        }
        let outer = call.name.clone();
        if let Some((host, name)) = known {
            match host.call(ToolCall { name, ..call }).await {
                // The host knows its own names only.
                Err(ToolCallError::UnknownTool { .. }) => {}
                answer => return answer,
            }
        }
        let tools = self.tools().await.tools;
        Err(ToolCallError::UnknownTool {
            name: outer,
            available: tools.iter().map(|tool| tool.name.clone()).collect(),
        })
    }

    fn changes(&self) -> ToolHostChanges {
        let all = self.hosts.iter().enumerate().map(|(position, member)| {
            let names = Arc::clone(&self.names);
            member.host.changes().map(move |change| match change {
                ToolHostChange::ToolRedefined {
                    server,
                    tool,
                    before,
                    now,
                } => {
                    let names = names.lock().unwrap_or_else(PoisonError::into_inner);
                    let name = names.0.get(&(position, tool.clone())).cloned();
                    ToolHostChange::ToolRedefined {
                        server,
                        tool: name.unwrap_or(tool),
                        before,
                        now,
                    }
                }
                other => other,
            })
        });
        Box::pin(stream::select_all(all))
    }
}

#[cfg(test)]
#[path = "set_tests.rs"]
mod tests;
