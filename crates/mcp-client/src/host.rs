//! The MCP host, which connects to all configured servers and offers their tools as one `ToolHost`.

use std::{
    collections::{BTreeSet, HashSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{
    StreamExt, TryStreamExt,
    future::join_all,
    stream::{self, FuturesUnordered},
};
use rmcp::model::ErrorCode;
use switchboard_domain::{
    JsonObject, ServerProblem, ToolCall, ToolCallError, ToolCatalog, ToolHost, ToolHostChange,
    ToolHostChanges, ToolOutput,
    similar_names::{did_you_mean, find_nearest},
};
use tokio::{
    runtime::Handle,
    sync::{
        Semaphore,
        broadcast::{self, error::RecvError},
    },
    task::{AbortHandle, JoinHandle},
    time::{Instant, timeout, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    calls::{
        deadline::{CallTimeLimits, Deadline},
        request_retries::call_tool,
    },
    config::ServerConfig,
    options::HostOptions,
    primitives::error::HostError,
    primitives::sync::lock_mutex,
    server::{
        process::watchdog::Watchdog,
        state::Server,
        status::{ServerState, ServerStatus},
        supervisor,
    },
    tools::{
        catalog::CatalogTool,
        catalog_names::{catalog_name, may_belong_to_server},
        tool_pinning::{
            fingerprint::{ToolChange, ToolPins},
            store::ToolPinStoreError,
        },
    },
};

/// Number of [`ToolHostChange`] events that are buffered per subscriber. A slower subscriber loses
/// the oldest events.
const CHANGE_CAPACITY: usize = 256;
/// Number of servers that may start at the same time. A starting server occupies one of these
/// places until it is ready, but at most for half a second. A server that does not answer thus
/// delays the start of waiting servers only briefly.
const MAX_PARALLEL_STARTS: usize = 16;
/// Time that [`McpHost::close`] waits for all servers to stop, in addition to the grace periods of
/// their processes. The remaining processes are then killed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for the supervisor tasks to end after the server processes were killed.
const KILL_TIMEOUT: Duration = Duration::from_millis(500);

/// Client of many MCP servers that offers their tools as one [`ToolHost`].
///
/// Dropping it kills all server processes. [`McpHost::close`] ends the servers gracefully.
#[derive(derive_more::Debug)]
#[debug("McpHost {{ servers: {:?}, .. }}", self.server_statuses())]
pub struct McpHost {
    pub(crate) servers: Vec<Arc<Server>>,
    changes: broadcast::Sender<ToolHostChange>,
    pub(crate) options: Arc<HostOptions>,
    watchdog: Watchdog,
    pub(crate) stop: CancellationToken,
    /// Token that is cancelled when all servers have stopped. It ends the streams that
    /// [`ToolHost::watch_changes`] returned.
    ended: CancellationToken,
    pub(crate) tasks: TaskTracker,
    supervisors: Mutex<Vec<AbortHandle>>,
}

impl McpHost {
    /// Starts all servers, each with its own supervisor task, and returns without waiting for them.
    ///
    /// # Errors
    ///
    /// Returns an error if two servers have the same name, or if no tokio runtime is running. Later
    /// problems of a server, such as a program that was not found, are reported in
    /// [`McpHost::server_statuses`].
    pub fn start(configs: Vec<ServerConfig>, options: HostOptions) -> Result<Self, HostError> {
        let runtime = Handle::try_current().map_err(|_| HostError::NoRuntime)?;
        let mut names = HashSet::new();
        if let Some(duplicate) = configs.iter().find(|config| !names.insert(&config.name)) {
            return Err(HostError::DuplicateName {
                name: duplicate.name.clone(),
            });
        }
        let (changes, _) = broadcast::channel(CHANGE_CAPACITY);
        let watchdog = Watchdog::default();
        let new_server = |config| Server::new(config, &options, changes.clone(), watchdog.clone());
        let servers = configs.into_iter().map(|it| Arc::new(new_server(it)));
        let servers: Vec<_> = servers.collect();
        let startup = Arc::new(Semaphore::new(MAX_PARALLEL_STARTS));
        let options = Arc::new(options);
        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        let supervise = |server: &Arc<Server>| {
            let (server, options) = (server.clone(), options.clone());
            let supervisor =
                supervisor::supervise_server(server, options, startup.clone(), stop.clone());
            tasks.spawn_on(supervisor, &runtime).abort_handle()
        };
        let supervisors = servers.iter().map(supervise).collect();
        Ok(Self {
            servers,
            changes,
            options,
            watchdog,
            stop,
            ended: CancellationToken::new(),
            tasks,
            supervisors: Mutex::new(supervisors),
        })
    }

    /// Waits until every server has become ready or has failed. Unlike [`Self::wait_until_ready`],
    /// does not report the failure of a required server.
    pub async fn wait_for_startup(&self) {
        join_all(self.servers.iter().map(|server| server.wait_for_startup())).await;
    }

    /// Waits until every server has become ready or has failed. A server that starts is ready or
    /// has failed after at most its [`connect_timeout`](ServerConfig::connect_timeout). The wait
    /// can be longer if many servers start, because only 16 start at the same time, and if a server
    /// is restarted during the wait.
    ///
    /// # Errors
    ///
    /// Returns an error as soon as a required server has failed. Failures of other servers are in
    /// the server statuses.
    pub async fn wait_until_ready(&self) -> Result<(), HostError> {
        let settled = self.servers.iter().map(|server| async {
            server.wait_for_startup().await;
            server.check_required_ready()
        });
        let settled: FuturesUnordered<_> = settled.collect();
        settled.try_for_each(async |()| Ok(())).await?;
        // All servers are checked again, because one may have failed while others were starting.
        self.servers
            .iter()
            .try_for_each(|server| server.check_required_ready())
    }

    /// Returns the status of every server, in the order of the configuration.
    pub fn server_statuses(&self) -> Vec<ServerStatus> {
        self.servers.iter().map(|server| server.status()).collect()
    }

    /// Calls a tool by the name that its server uses, instead of the catalog name that models use.
    /// Returns [`ToolCallError::UnknownTool`] for a tool that the configuration excludes. Otherwise
    /// works like [`ToolHost::call_tool`].
    pub async fn call_server_tool(
        &self,
        server: &str,
        tool: &str,
        input: JsonObject,
    ) -> Result<ToolOutput, ToolCallError> {
        self.call_by_original_name(server, tool, input, false).await
    }

    /// Calls a tool by the name that its server uses. If `from_page` is set, the caller is an HTML
    /// page of MCP Apps, and the call is refused unless the `visibility` of the tool contains
    /// `app`.
    pub(crate) async fn call_by_original_name(
        &self,
        server: &str,
        tool: &str,
        input: JsonObject,
        from_page: bool,
    ) -> Result<ToolOutput, ToolCallError> {
        let found = self.find_server(server)?;
        let deadline = Deadline::new(Instant::now(), self.call_time_limits(found, tool, None));
        let _ = timeout_at(deadline.wait_end_time(), found.wait_for_startup()).await;
        let snapshot = found.snapshot();
        let Some(resolved) = snapshot.tools.find_by_original_name(tool) else {
            if !snapshot.state.takes_calls() {
                return Err(found.unavailable_error(snapshot.unavailable_reason()));
            }
            let tools = snapshot.tools.model_tools();
            return Err(ToolCallError::UnknownTool {
                name: tool.to_owned(),
                available: tools.map(|tool| tool.original_name().to_owned()).collect(),
            });
        };
        if from_page && !resolved.visibility.app {
            return Err(ToolCallError::Refused {
                server: server.to_owned(),
                tool: tool.to_owned(),
                code: i64::from(ErrorCode::INVALID_REQUEST.0),
                message: "the tool's `visibility` does not allow calls from pages".to_owned(),
            });
        }
        let call = ToolCall {
            input: input.into(),
            ..ToolCall::default()
        };
        let retries = self.options.retries;
        Box::pin(call_tool(found, &resolved, call, deadline, retries)).await
    }

    /// Returns the tools whose current definition differs from their pinned definition. The pinned
    /// definition is the one in [`HostOptions::tool_pins`], or else the first one that the server
    /// listed in this run.
    ///
    /// Approvals that a person gave for a pinned definition do not cover the current definition.
    /// [`ToolHostChange::ToolRedefined`] is published when a definition changes.
    pub fn changed_tools(&self) -> Vec<ToolChange> {
        let servers = self.servers.iter();
        servers.flat_map(|server| server.changed_tools()).collect()
    }

    /// Returns the catalog names of the tools in [`McpHost::changed_tools`]. Models call a tool by
    /// its catalog name.
    pub fn redefined_tool_names(&self) -> BTreeSet<String> {
        let changes = self.changed_tools().into_iter();
        changes.map(|change| change.name).collect()
    }

    /// Pins the current definitions of the changed tools for which `selects` returns `true`, and
    /// returns these tools. Call this method after a person has reviewed the changes. Later runs
    /// accept the definitions too if [`HostOptions::tool_pin_store`] is set.
    ///
    /// # Errors
    ///
    /// Returns an error if the pins cannot be stored. The tools are then accepted in this run only.
    pub fn accept_tools(
        &self,
        selects: impl Fn(&ToolChange) -> bool,
    ) -> Result<Vec<ToolChange>, ToolPinStoreError> {
        let mut accepted = self.changed_tools();
        accepted.retain(|change| {
            let server = self.get_server(&change.server);
            // `accept_change` returns `false` if the server has changed the definition again since
            // `changed_tools` read it. The tool is then not accepted.
            selects(change)
                && server.is_some_and(|server| server.pinned_tools.accept_change(change))
        });
        let mut pins = ToolPins::default();
        for change in &accepted {
            let server = pins.0.entry(change.server.clone()).or_default();
            server.insert(change.tool.clone(), change.now.clone());
        }
        if let Some(store) = &self.options.tool_pin_store {
            store.save(&pins, true)?;
        }
        Ok(accepted)
    }

    /// Saves the fingerprints (pins) of the tool definitions that were first listed in this run.
    /// Returns the handle of the blocking task that writes the file, or `None` without a pin store.
    fn save_new_tool_pins(&self) -> Option<JoinHandle<()>> {
        let store = self.options.tool_pin_store.clone()?;
        let known = &self.options.tool_pins;
        let servers = self.servers.iter();
        let new = servers.map(|server| (server.config.name.clone(), server.new_tool_pins(known)));
        let new = ToolPins(new.collect());
        Some(tokio::task::spawn_blocking(move || {
            if let Err(error) = store.save(&new, false) {
                tracing::warn!(%error, "failed to save the tool pins");
            }
        }))
    }

    /// Requests the restart of a server and returns immediately. Restarts a failed server too.
    /// Returns `false` for an unknown server.
    pub fn restart_server(&self, server: &str) -> bool {
        let server = self.get_server(server);
        if let Some(server) = server {
            server.restart_requested.notify_one();
        }
        server.is_some()
    }

    /// Stops all servers and waits until they have stopped. Closes the connections and the standard
    /// input of the processes, then sends `SIGTERM`, then kills the remaining processes. Running
    /// calls fail. May be called more than once.
    pub async fn close(&self) {
        let saving = self.save_new_tool_pins();
        self.stop.cancel();
        self.tasks.close();
        let grace = self.options.grace;
        let limit = grace.after_stdin + grace.after_term + CLOSE_TIMEOUT;
        if timeout(limit, self.tasks.wait()).await.is_err() {
            tracing::warn!(?limit, "killing servers that did not stop in time");
            self.kill_servers().await;
        }
        if let Some(saving) = saving {
            // An error is ignored: the task fails only if it panicked. The new tool pins are then
            // not stored.
            let _ = saving.await;
        }
        self.watchdog.stop_shell().await;
        self.ended.cancel();
    }

    /// Kills the process groups of all servers within half a second. Running calls fail. A running
    /// [`McpHost::close`] then returns too.
    pub async fn kill_servers(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.kill_all_servers();
        if timeout(KILL_TIMEOUT, self.tasks.wait()).await.is_err() {
            tracing::warn!("the supervisor of a server did not stop");
        }
        for server in &self.servers {
            if server.snapshot().state != ServerState::Stopped {
                server.set_disconnected(ServerState::Stopped, None);
            }
        }
        self.watchdog.stop_shell().await;
        self.ended.cancel();
    }

    fn kill_all_servers(&self) {
        for server in &self.servers {
            server.kill_process_group();
        }
        for supervisor in lock_mutex(&self.supervisors).drain(..) {
            supervisor.abort();
        }
    }

    pub(crate) fn get_server(&self, name: &str) -> Option<&Arc<Server>> {
        let mut servers = self.servers.iter();
        servers.find(|server| server.config.name == name)
    }

    /// Finds a server by its configured name. The error for an unknown server lists all names.
    pub(crate) fn find_server(&self, name: &str) -> Result<&Arc<Server>, ToolCallError> {
        let names = || self.servers.iter().map(|it| it.config.name.as_str());
        self.get_server(name)
            .ok_or_else(|| ToolCallError::Unavailable {
                server: name.to_owned(),
                reason: format!(
                    "not configured{}; configured servers: {}",
                    did_you_mean(find_nearest(name, names())),
                    names().collect::<Vec<_>>().join(", ")
                ),
            })
    }

    /// Returns the time limits of a call. The first configured limit applies, in this order: call,
    /// tool, server, host options. `tool` is the name of the tool on its server.
    fn call_time_limits(
        &self,
        server: &Server,
        tool: &str,
        of_call: Option<Duration>,
    ) -> CallTimeLimits {
        let config = &server.config;
        let of_tool = || config.tool_timeouts.iter().find(|(name, _)| name == tool);
        let total = of_call
            .or_else(|| of_tool().map(|(_, timeout)| *timeout))
            .or(config.call_timeout);
        match total {
            Some(total) => CallTimeLimits {
                total,
                idle: config.idle_timeout,
            },
            None => CallTimeLimits {
                total: self.options.max_call_time.max(self.options.call_timeout),
                idle: Some(config.idle_timeout.unwrap_or(self.options.call_timeout)),
            },
        }
    }

    /// Finds a tool and its server by the catalog name of the tool, by which models call it.
    /// Returns `None` if no server has the tool now.
    fn find_tool(&self, name: &str) -> Option<(&Arc<Server>, Arc<CatalogTool>)> {
        let mut servers = self.servers.iter();
        servers.find_map(|server| Some((server, server.find_tool(name)?)))
    }

    /// Finds the tool with the catalog name `name`. Waits while servers that may have this tool are
    /// starting, but at most until the deadline. Returns an error if no server has the tool after
    /// this wait.
    async fn wait_for_tool(
        &self,
        name: &str,
        started: Instant,
        deadline: Option<Duration>,
    ) -> Result<(&Arc<Server>, Arc<CatalogTool>), ToolCallError> {
        let servers = self.servers.iter();
        let owners: Vec<_> = servers
            .filter(|server| may_belong_to_server(name, &server.config.name))
            .collect();
        let settled = owners.iter().map(|server| async {
            let config = &server.config;
            let mut configured = config.tool_timeouts.iter().map(|(tool, _)| tool.as_str());
            let original = configured.find(|tool| catalog_name(&config.name, tool) == name);
            let limits = self.call_time_limits(server, original.unwrap_or(name), deadline);
            let deadline = Deadline::new(started, limits);
            let _ = timeout_at(deadline.wait_end_time(), server.wait_for_startup()).await;
        });
        let mut settled: FuturesUnordered<_> = settled.collect();
        while settled.next().await.is_some() {
            if let Some(found) = self.find_tool(name) {
                return Ok(found);
            }
        }
        let mut unavailable = owners.iter().filter_map(|server| {
            let snapshot = server.snapshot();
            (!snapshot.state.takes_calls())
                .then(|| server.unavailable_error(snapshot.unavailable_reason()))
        });
        match (self.find_tool(name), unavailable.next()) {
            (Some(found), _) => Ok(found),
            (None, Some(unavailable)) => Err(unavailable),
            (None, None) => {
                let tools = self.build_catalog().tools.into_iter();
                Err(ToolCallError::UnknownTool {
                    name: name.to_owned(),
                    available: tools.map(|tool| tool.name.clone()).collect(),
                })
            }
        }
    }

    fn build_catalog(&self) -> ToolCatalog {
        let mut catalog = ToolCatalog::default();
        let servers = self.servers.iter();
        let snapshots: Vec<_> = servers.map(|it| (it, it.snapshot())).collect();
        let mut names = HashSet::new();
        for (server, snapshot) in &snapshots {
            let mut report = |message: String| {
                catalog.problems.push(ServerProblem {
                    server: server.config.name.clone(),
                    message,
                });
            };
            if snapshot.state != ServerState::Ready {
                report(snapshot.unavailable_reason());
            }
            let (pinned, name) = (&server.pinned_tools, &server.config.name);
            for change in pinned.changed_tools(name, &snapshot.tools) {
                report(format!("the definition of `{}` has changed", change.tool));
            }
            for message in &snapshot.tools.problems {
                report(message.clone());
            }
            for tool in snapshot.tools.model_tools().map(|tool| &tool.definition) {
                // Two tools have one catalog name only if the hashes in their names are equal,
                // which is very rare. Then only the first tool is available.
                if names.insert(tool.name.as_str()) {
                    catalog.tools.push(tool.clone());
                } else {
                    report(format!(
                        "`{}` is not available: a tool of another server has this name",
                        tool.name
                    ));
                }
            }
        }
        catalog
    }
}

#[async_trait]
impl ToolHost for McpHost {
    /// Returns the tools of all ready servers without waiting. [`ToolCatalog::problems`] names the
    /// servers that are starting; wait until the host is ready to get the tools of all servers.
    ///
    /// An expired tool list is fetched again in the background, and a change is then published.
    async fn list_tools(&self) -> ToolCatalog {
        for server in &self.servers {
            server.refresh_tools();
        }
        self.build_catalog()
    }

    /// Calls a tool by its catalog name, the name that models use. If the server is starting, the
    /// call first waits until the server is ready or the deadline has passed.
    async fn call_tool(&self, tool_call: ToolCall) -> Result<ToolOutput, ToolCallError> {
        let started = Instant::now();
        let (server, tool) = if let Some(found) = self.find_tool(&tool_call.name) {
            found
        } else {
            let found = self.wait_for_tool(&tool_call.name, started, tool_call.deadline);
            found.await?
        };
        let limits = self.call_time_limits(server, tool.original_name(), tool_call.deadline);
        let deadline = Deadline::new(started, limits);
        call_tool(server, &tool, tool_call, deadline, self.options.retries).await
    }

    fn watch_changes(&self) -> ToolHostChanges {
        let state = (self.changes.subscribe(), self.ended.clone());
        Box::pin(stream::unfold(state, |(mut changes, ended)| async move {
            loop {
                let next = tokio::select! {
                    // `biased` polls `changes` first, so changes that were published before the
                    // host stopped are still delivered.
                    biased;
                    next = changes.recv() => next,
                    () = ended.cancelled() => return None,
                };
                match next {
                    Ok(change) => return Some((change, (changes, ended))),
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return None,
                }
            }
        }))
    }
}

impl Drop for McpHost {
    fn drop(&mut self) {
        // The processes are killed here, because a runtime that shuts down may not drop the
        // supervisor tasks that own them.
        self.kill_all_servers();
        self.stop.cancel();
        self.ended.cancel();
    }
}
