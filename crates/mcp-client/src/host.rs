//! The host: all servers together.

use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{
    TryStreamExt,
    future::join_all,
    stream::{self, FuturesUnordered},
};
use switchboard_domain::{
    JsonObject, ProgressSink, ServerProblem, ToolCall, ToolCallError, ToolCatalog, ToolDefinition,
    ToolHost, ToolHostChange, ToolHostChanges, ToolOutput,
};
use tokio::{
    runtime::Handle,
    sync::broadcast::{self, error::RecvError},
    task::AbortHandle,
    time::{Instant, timeout, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    call::{self, Request},
    config::{DEFAULT_CALL_TIMEOUT, ServerConfig},
    error::HostError,
    life,
    names::may_belong_to,
    server::Server,
    status::{ServerState, ServerStatus},
};
use switchboard_domain::nearest::{did_you_mean, nearest};

/// Changes kept for a listener that does not keep up. It misses the oldest ones then, and hears of
/// the later ones.
const CHANGES: usize = 256;
/// What closing takes at most beyond the grace: the connection, and the end of what was killed.
const CLOSING: Duration = Duration::from_secs(5);
/// What [`McpHost::kill`] takes at most.
const KILLING: Duration = Duration::from_millis(500);

/// How a host treats its servers.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// How many times in a row a server that was ready and went away is started again; 0 is never.
    /// A server that then stays for a minute has the full number again. One that does not come up
    /// the first time is not tried again: its configuration is mostly to blame.
    pub restarts: u32,
    /// How long to wait before the first restart. Each further one waits twice as long as the one
    /// before, at most half a minute. A connection to an HTTP server is made anew at once the first
    /// time.
    pub restart_delay: Duration,
    /// How a server's process is ended.
    pub grace: Grace,
    /// How long a call may take that brings no deadline of its own, on servers that do not say it
    /// themselves ([`ServerConfig::call_timeout`]).
    pub call_timeout: Duration,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self {
            restarts: 5,
            restart_delay: Duration::from_millis(500),
            grace: Grace::default(),
            call_timeout: DEFAULT_CALL_TIMEOUT,
        }
    }
}

/// How much time a server's processes have to end by themselves; then they are killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grace {
    /// After their standard input was closed, which is how MCP asks a server to leave.
    pub after_stdin: Duration,
    /// After that and `SIGTERM` to the whole process group (not on Windows).
    pub after_term: Duration,
}

impl Default for Grace {
    fn default() -> Self {
        Self {
            after_stdin: Duration::from_secs(1),
            after_term: Duration::from_secs(1),
        }
    }
}

/// Many MCP servers behind one [`ToolHost`].
///
/// Dropping it kills the servers' process groups at once; [`McpHost::close`] is the polite way.
pub struct McpHost {
    servers: Vec<Arc<Server>>,
    changes: broadcast::Sender<ToolHostChange>,
    grace: Grace,
    call_timeout: Duration,
    stop: CancellationToken,
    /// Cancelled when every server has ended.
    ended: CancellationToken,
    tasks: TaskTracker,
    handles: Mutex<Vec<AbortHandle>>,
}

impl McpHost {
    /// Starts all servers at once, each in a task of its own, and returns without waiting for them.
    ///
    /// Fails if two have the same name, and outside a tokio runtime. What goes wrong with a server
    /// afterwards is its state.
    pub fn start(configs: Vec<ServerConfig>, options: HostOptions) -> Result<Self, HostError> {
        let runtime = Handle::try_current().map_err(|_| HostError::NoRuntime)?;
        let mut names = HashSet::new();
        if let Some(twice) = configs.iter().find(|config| !names.insert(&config.name)) {
            return Err(HostError::DuplicateName {
                name: twice.name.clone(),
            });
        }
        let (changes, _) = broadcast::channel(CHANGES);
        let servers: Vec<_> = configs
            .into_iter()
            .map(|config| Arc::new(Server::new(config, changes.clone())))
            .collect();
        let (grace, call_timeout) = (options.grace, options.call_timeout);
        let options = Arc::new(options);
        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        let handles = servers
            .iter()
            .map(|server| {
                let life = life::run(server.clone(), options.clone(), stop.clone());
                tasks.spawn_on(life, &runtime).abort_handle()
            })
            .collect();
        Ok(Self {
            servers,
            changes,
            grace,
            call_timeout,
            stop,
            ended: CancellationToken::new(),
            tasks,
            handles: Mutex::new(handles),
        })
    }

    /// Waits until no server is starting any more. Takes no longer than the longest
    /// [`connect_timeout`](ServerConfig::connect_timeout), except while servers are being restarted.
    pub async fn ready(&self) {
        join_all(self.servers.iter().map(|server| server.settled())).await;
    }

    /// Waits like [`McpHost::ready`], and fails as soon as a server that is required has come to be
    /// something else than ready. Then it does not wait for the others.
    pub async fn require_ready(&self) -> Result<(), HostError> {
        let settled = self.servers.iter().map(|server| async {
            server.settled().await;
            server.ready_if_required()
        });
        let settled: FuturesUnordered<_> = settled.collect();
        settled.try_for_each(async |()| Ok(())).await?;
        // One that was ready may be gone while another one was waited for.
        self.servers
            .iter()
            .try_for_each(|server| server.ready_if_required())
    }

    /// Every server as it is now, in the order of the configuration.
    pub fn servers(&self) -> Vec<ServerStatus> {
        self.servers.iter().map(|server| server.status()).collect()
    }

    /// Runs a tool of a server by the names that the server itself uses. Otherwise like
    /// [`ToolHost::call`]; a tool that the configuration excludes is not there.
    pub async fn call_raw(
        &self,
        server: &str,
        tool: &str,
        input: JsonObject,
    ) -> Result<ToolOutput, ToolCallError> {
        let Some(found) = self.servers.iter().find(|s| s.config.name == server) else {
            let names = || self.servers.iter().map(|s| s.config.name.as_str());
            let known: Vec<&str> = names().collect();
            return Err(ToolCallError::Unavailable {
                server: server.to_owned(),
                reason: format!(
                    "there is no such server{}; there are: {}",
                    did_you_mean(nearest(server, names())),
                    known.join(", ")
                ),
            });
        };
        let limit = self.call_timeout(found);
        let until = Instant::now() + limit;
        let _ = timeout_at(until, found.settled()).await;
        let now = found.now();
        let tools = || {
            now.tools
                .definitions
                .iter()
                .filter_map(|t| t.origin.as_ref())
        };
        if !tools().any(|origin| origin.tool == tool) {
            if now.state != ServerState::Ready {
                return Err(found.unavailable(&now));
            }
            return Err(ToolCallError::UnknownTool {
                name: tool.to_owned(),
                available: tools().map(|origin| origin.tool.clone()).collect(),
            });
        }
        let request = Request {
            tool,
            input,
            limit,
            until,
            idempotency_key: None,
            progress: ProgressSink::default(),
        };
        call::call(found, request).await
    }

    /// Ends a server and starts it again, also one that failed. Returns at once; `false` if there is
    /// no such server.
    pub fn restart(&self, server: &str) -> bool {
        let found = self.servers.iter().find(|s| s.config.name == server);
        if let Some(found) = found {
            found.again.notify_one();
        }
        found.is_some()
    }

    /// Ends all servers and waits until they are gone: the connection is closed, and with it the
    /// process's standard input; processes that are still there after the grace are told to leave,
    /// then killed. Calls that are under way fail. Closing twice is no error.
    pub async fn close(&self) {
        self.stop.cancel();
        self.tasks.close();
        let limit = self.grace.after_stdin + self.grace.after_term + CLOSING;
        if timeout(limit, self.tasks.wait()).await.is_err() {
            tracing::warn!(?limit, "servers were not ended in time and are killed");
            self.kill().await;
        }
        self.ended.cancel();
    }

    /// Kills all servers' process groups at once and takes no more than half a second. Calls that are
    /// under way fail. For somebody who will not wait for [`McpHost::close`], which may be under way
    /// and then returns too.
    pub async fn kill(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.cut();
        if timeout(KILLING, self.tasks.wait()).await.is_err() {
            tracing::warn!("a server's task does not end");
        }
        for server in &self.servers {
            // One whose task had the time has said it.
            if server.now().state != ServerState::Stopped {
                server.stopped();
            }
        }
        self.ended.cancel();
    }

    fn cut(&self) {
        for server in &self.servers {
            server.cut();
        }
        for handle in self.lock_handles().drain(..) {
            handle.abort();
        }
    }

    fn call_timeout(&self, server: &Server) -> Duration {
        server.config.call_timeout.unwrap_or(self.call_timeout)
    }

    fn lock_handles(&self) -> std::sync::MutexGuard<'_, Vec<AbortHandle>> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, name: &str) -> Option<(&Arc<Server>, Arc<ToolDefinition>)> {
        self.servers.iter().find_map(|server| {
            let now = server.now();
            let tool = now
                .tools
                .definitions
                .iter()
                .find(|tool| tool.name == name)?;
            Some((server, tool.clone()))
        })
    }

    /// Looks a tool up, and waits for servers that may have it and are starting.
    async fn look_up(
        &self,
        name: &str,
        limit: Option<Duration>,
    ) -> Result<(&Arc<Server>, Arc<ToolDefinition>), ToolCallError> {
        if let Some(found) = self.find(name) {
            return Ok(found);
        }
        let mut missing = None;
        for server in &self.servers {
            if may_belong_to(name, &server.config.name) {
                let limit = limit.unwrap_or_else(|| self.call_timeout(server));
                let _ = timeout(limit, server.settled()).await;
                let now = server.now();
                if now.state != ServerState::Ready && missing.is_none() {
                    missing = Some(server.unavailable(&now));
                }
            }
        }
        match (self.find(name), missing) {
            (Some(found), _) => Ok(found),
            (None, Some(unavailable)) => Err(unavailable),
            (None, None) => Err(ToolCallError::UnknownTool {
                name: name.to_owned(),
                available: self
                    .catalog()
                    .tools
                    .iter()
                    .map(|tool| tool.name.clone())
                    .collect(),
            }),
        }
    }

    fn catalog(&self) -> ToolCatalog {
        let mut catalog = ToolCatalog::default();
        let mut names = HashSet::new();
        for server in &self.servers {
            let now = server.now();
            let mut problem = |message: String| {
                catalog.problems.push(ServerProblem {
                    server: server.config.name.clone(),
                    message,
                });
            };
            if now.state != ServerState::Ready {
                problem(now.why_not());
            }
            for message in &now.tools.problems {
                problem(message.clone());
            }
            for tool in &now.tools.definitions {
                // The names are hashed where they could collide, so this is one chance in billions.
                if names.insert(tool.name.clone()) {
                    catalog.tools.push(tool.clone());
                } else {
                    problem(format!(
                        "`{}` is left out: another server's tool has this name",
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
    /// Does not wait: servers that are starting are named in [`ToolCatalog::problems`]. Await
    /// [`McpHost::ready`] before, to have all of them.
    async fn tools(&self) -> ToolCatalog {
        self.catalog()
    }

    /// A call to a server that is starting waits for it, within the call's deadline.
    async fn call(&self, call: ToolCall) -> Result<ToolOutput, ToolCallError> {
        let begun = Instant::now();
        let (server, tool) = self.look_up(&call.name, call.deadline).await?;
        let own_name = tool
            .origin
            .as_ref()
            .map_or(tool.name.as_str(), |origin| origin.tool.as_str());
        let limit = call.deadline.unwrap_or_else(|| self.call_timeout(server));
        let request = Request {
            tool: own_name,
            input: call.input,
            limit,
            until: begun + limit,
            idempotency_key: call.idempotency_key,
            progress: call.progress,
        };
        call::call(server, request).await
    }

    fn changes(&self) -> ToolHostChanges {
        let heard = (self.changes.subscribe(), self.ended.clone());
        Box::pin(stream::unfold(heard, |(mut changes, ended)| async move {
            loop {
                let next = tokio::select! {
                    // What was said before the end is heard before the end.
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
        // The tasks own the processes, whose drop kills their groups; but a runtime that is shutting
        // down may not run them any more.
        self.cut();
        self.stop.cancel();
        self.ended.cancel();
    }
}

impl fmt::Debug for McpHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpHost")
            .field("servers", &self.servers())
            .finish_non_exhaustive()
    }
}
