//! Several tool hosts in one.

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

/// The longest name that every provider takes.
const LONGEST_NAME: usize = 64;
/// Names tried for one tool.
const MOST_TRIES: usize = 100;

/// Several tool hosts in one, such as MCP servers and functions of the program.
///
/// The tools come in the order of the hosts. Where two hosts have a tool of the same name, the one that
/// was there first keeps it, at the same time the one of the earlier host; the other is called
/// `server__name` by the server of its origin, or `host2__name` by the host's place, with a number behind
/// it if that is taken too. Once given, a name stays with its tool for the life of the set: a call never
/// reaches another tool because a server came or went.
///
/// The hosts are asked concurrently. One that answers late holds up the list, so hosts should answer with
/// what they have, as the port says.
#[derive(Default)]
pub struct ToolSet {
    hosts: Vec<Member>,
    names: Arc<Mutex<Names>>,
}

struct Member {
    host: Arc<dyn ToolHost>,
    /// Its definitions under other names.
    renamed: PerDefinition<Option<Arc<ToolDefinition>>>,
}

/// Which tool has which name.
#[derive(Default)]
struct Names {
    /// The place of the host and its own name for the tool, by the name in the set.
    tools: HashMap<String, (usize, String)>,
    /// The other way round.
    names: HashMap<(usize, String), String>,
}

impl ToolSet {
    /// No hosts yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Also offers the tools of `host`.
    #[must_use]
    pub fn with(self, host: impl ToolHost + 'static) -> Self {
        self.with_shared(Arc::new(host))
    }

    /// The same with a host that others use too.
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

    /// The definition under its name in the set; `None` if none was to be had.
    fn named(&self, place: usize, tool: &Arc<ToolDefinition>) -> Option<Arc<ToolDefinition>> {
        let name = self.names().name_of(place, tool)?;
        if name == tool.name {
            return Some(Arc::clone(tool));
        }
        let renamed = self.hosts.get(place)?.renamed.of(tool, |tool| {
            Some(Arc::new(ToolDefinition {
                name,
                ..tool.clone()
            }))
        });
        (*renamed).clone()
    }

    async fn call_at(
        &self,
        place: usize,
        name: String,
        call: ToolCall,
    ) -> Result<ToolOutput, ToolCallError> {
        let Some(member) = self.hosts.get(place) else {
            return Err(self.unknown(call.name).await);
        };
        let outer = call.name.clone();
        match member.host.call(ToolCall { name, ..call }).await {
            // The host knows its own names only.
            Err(ToolCallError::UnknownTool { .. }) => Err(self.unknown(outer).await),
            answer => answer,
        }
    }

    async fn unknown(&self, name: String) -> ToolCallError {
        let tools = self.tools().await.tools;
        ToolCallError::UnknownTool {
            name,
            available: tools.iter().map(|tool| tool.name.clone()).collect(),
        }
    }
}

impl Names {
    fn name_of(&mut self, place: usize, tool: &ToolDefinition) -> Option<String> {
        let id = (place, tool.name.clone());
        if let Some(name) = self.names.get(&id) {
            return Some(name.clone());
        }
        let name = self.free_name(place, tool)?;
        self.tools.insert(name.clone(), id.clone());
        self.names.insert(id, name.clone());
        Some(name)
    }

    fn free_name(&self, place: usize, tool: &ToolDefinition) -> Option<String> {
        let is_free = |name: &String| !self.tools.contains_key(name);
        if is_free(&tool.name) {
            return Some(tool.name.clone());
        }
        let owner = match &tool.origin {
            Some(origin) if !origin.server.is_empty() => origin.server.clone(),
            _ => format!("host{}", place + 1),
        };
        let full: String = format!("{owner}__{}", tool.name)
            .chars()
            .map(|c| match c {
                'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => c,
                _ => '_',
            })
            .collect();
        (1..=MOST_TRIES)
            .map(|n| {
                let suffix = if n == 1 {
                    String::new()
                } else {
                    format!("_{n}")
                };
                let room = LONGEST_NAME - suffix.len();
                // ASCII only, so that it may be cut anywhere.
                format!("{}{suffix}", &full[..full.len().min(room)])
            })
            .find(is_free)
    }
}

impl fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolSet")
            .field("hosts", &self.hosts.len())
            .field("tools", &self.names().tools.len())
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl ToolHost for ToolSet {
    async fn tools(&self) -> ToolCatalog {
        let catalogs = join_all(self.hosts.iter().map(|member| member.host.tools())).await;
        let mut all = ToolCatalog::default();
        for (place, catalog) in catalogs.into_iter().enumerate() {
            for tool in &catalog.tools {
                match self.named(place, tool) {
                    Some(tool) => all.tools.push(tool),
                    None => all.problems.push(ServerProblem {
                        server: tool
                            .origin
                            .as_ref()
                            .map_or_else(|| format!("host{}", place + 1), |o| o.server.clone()),
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
        let known = self.names().tools.get(&call.name).cloned();
        if let Some((place, name)) = known {
            return self.call_at(place, name, call).await;
        }
        // Nobody may have asked for the list yet, such as after a run was resumed.
        let _ = self.tools().await;
        let known = self.names().tools.get(&call.name).cloned();
        if let Some((place, name)) = known {
            return self.call_at(place, name, call).await;
        }
        // A host may know a tool that it cannot list now, and say more about it than that it is unknown.
        // One that says it is unknown has not run it.
        for (place, member) in self.hosts.iter().enumerate() {
            let id = (place, call.name.clone());
            if self.names().names.contains_key(&id) {
                continue;
            }
            match member.host.call(call.clone()).await {
                Err(ToolCallError::UnknownTool { .. }) => {}
                answer => return answer,
            }
        }
        Err(self.unknown(call.name).await)
    }

    fn changes(&self) -> ToolHostChanges {
        let all = self.hosts.iter().enumerate().map(|(place, member)| {
            let names = Arc::clone(&self.names);
            member.host.changes().map(move |change| match change {
                ToolHostChange::ToolRedefined {
                    server,
                    tool,
                    before,
                    now,
                } => {
                    let names = names.lock().unwrap_or_else(PoisonError::into_inner);
                    let name = names.names.get(&(place, tool.clone())).cloned();
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
