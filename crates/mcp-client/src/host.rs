//! The host: all servers together.

use std::{
    collections::{BTreeSet, HashSet},
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
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
    JsonObject, ProgressSink, ServerProblem, ToolCall, ToolCallError, ToolCatalog, ToolHost,
    ToolHostChange, ToolHostChanges, ToolOutput,
};
use tokio::{
    runtime::Handle,
    sync::broadcast::{self, error::RecvError},
    task::{AbortHandle, JoinHandle},
    time::{Instant, timeout, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    auth::settings::AuthOptions,
    calls::{
        alarms::Alarms,
        call::{self, Request},
        circuits::CircuitOptions,
        context::Caller,
        deadline::{Deadline, Limits},
    },
    config::{DEFAULT_CALL_TIMEOUT, ServerConfig},
    error::HostError,
    server::{
        gate::Gate,
        state::Server,
        status::{ServerState, ServerStatus},
        supervisor,
        watchdog::{Remains, Watchdog},
    },
    server_requests::{
        responder::Answering,
        roots::{self, Root},
    },
    tools::{
        list::{Found, own_name},
        names::may_belong_to,
        tool_pinning::{
            fingerprint::{KnownTools, ToolChange},
            store::{ToolMemory, ToolMemoryError},
        },
    },
};
use switchboard_domain::nearest::{did_you_mean, nearest};

/// Changes kept for a listener that does not keep up. It misses the oldest ones then, and hears of
/// the later ones.
const CHANGES: usize = 256;
/// What closing takes at most beyond the grace: the connection, and the end of what was killed.
const CLOSING: Duration = Duration::from_secs(5);
/// How long a call may take in all where nobody says anything.
const LONGEST_CALL: Duration = Duration::from_mins(10);
/// Enough that fifty servers are there soon, few enough that the machine still does something else.
const PARALLEL_STARTS: usize = 16;
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
    /// themselves ([`ServerConfig::call_timeout`]). Progress that the server tells begins it anew, up to
    /// [`longest_call`](Self::longest_call).
    pub call_timeout: Duration,
    /// How long such a call may take in all; at least `call_timeout`.
    pub longest_call: Duration,
    /// How many times a call is made again that did not leave, or whose connection broke and whose tool
    /// says that it is read-only or idempotent. All of it within the call's deadline.
    pub retries: u32,
    /// Where the tokens of HTTP servers are kept, and who logs in to them.
    pub auth: AuthOptions,
    /// When what gives no answers is not called any more, and for how long.
    pub circuits: CircuitOptions,
    /// How many servers are started at once. One that is silent holds up the next for half a second at
    /// most; 0 is taken for 1.
    pub parallel_starts: usize,
    /// Tools as they were in earlier runs ([`McpHost::known_tools`]). One whose definition is another now
    /// is one of [`McpHost::changed_tools`].
    pub known_tools: KnownTools,
    /// Where fingerprints of tools are kept for later runs; `None` keeps them nowhere.
    pub tool_memory: Option<Arc<dyn ToolMemory>>,
    /// Who answers what servers ask in the middle of a call.
    pub answering: Answering,
    /// Whether pages of MCP Apps can be shown, which servers are then told: some have other tools for who
    /// can.
    pub shows_apps: bool,
    /// When a server that answers nothing is taken to hang.
    pub probing: Probing,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self {
            restarts: 5,
            restart_delay: Duration::from_millis(500),
            grace: Grace::default(),
            call_timeout: DEFAULT_CALL_TIMEOUT,
            longest_call: LONGEST_CALL,
            retries: 2,
            auth: AuthOptions::default(),
            circuits: CircuitOptions::default(),
            parallel_starts: PARALLEL_STARTS,
            known_tools: KnownTools::default(),
            tool_memory: None,
            answering: Answering::default(),
            shows_apps: false,
            probing: Probing::default(),
        }
    }
}

/// When a server over stdio that answers nothing is taken to hang, so that its process is ended and
/// started again, as one that crashed is.
///
/// After a call that got no answer in time it is sent pings. One answer of any kind ends that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probing {
    /// How long a ping may take.
    pub patience: Duration,
    /// So many pings in a row are to be without an answer, each while no call was under way; 0 never takes
    /// a server to hang.
    pub failures: u32,
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
    options: Arc<HostOptions>,
    watchdog: Watchdog,
    stop: CancellationToken,
    /// Cancelled when every server has ended.
    ended: CancellationToken,
    tasks: TaskTracker,
    handles: Mutex<Vec<AbortHandle>>,
}

/// On whose behalf a tool is called by its own name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behalf {
    /// Whoever has the host.
    Host,
    /// A page of MCP Apps, which may not call every tool.
    Page,
}

/// What of a host others need.
pub(crate) struct Shared<'a> {
    pub(crate) servers: &'a [Arc<Server>],
    pub(crate) options: &'a HostOptions,
    pub(crate) tasks: &'a TaskTracker,
    pub(crate) stop: &'a CancellationToken,
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
        let watchdog = Watchdog::default();
        let alarms = Alarms::start(&runtime);
        let servers: Vec<_> = configs
            .into_iter()
            .map(|config| {
                let (changes, watchdog) = (changes.clone(), watchdog.clone());
                Server::new(config, &options, changes, watchdog, alarms.clone())
            })
            .map(Arc::new)
            .collect();
        let gate = Arc::new(Gate::new(options.parallel_starts));
        let options = Arc::new(options);
        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        let handles = servers
            .iter()
            .map(|server| {
                let life =
                    supervisor::run(server.clone(), options.clone(), gate.clone(), stop.clone());
                tasks.spawn_on(life, &runtime).abort_handle()
            })
            .collect();
        Ok(Self {
            servers,
            changes,
            options,
            watchdog,
            stop,
            ended: CancellationToken::new(),
            tasks,
            handles: Mutex::new(handles),
        })
    }

    /// Waits until no server is starting any more, and checks that every server's program exists. Takes no
    /// longer than the longest [`connect_timeout`](ServerConfig::connect_timeout) and the wait of the last
    /// ones for their turn ([`HostOptions::parallel_starts`]), except while servers are being restarted.
    ///
    /// # Errors
    ///
    /// [`HostError::NoProgram`] names the first server whose program was not found. The other servers can be
    /// used all the same. A server that failed in another way is not an error here: see
    /// [`McpHost::servers`] and [`McpHost::require_ready`].
    pub async fn ready(&self) -> Result<(), HostError> {
        self.settled().await;
        self.servers
            .iter()
            .try_for_each(|server| server.has_program())
    }

    /// Waits like [`McpHost::ready`], whatever becomes of the servers.
    pub async fn settled(&self) {
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
        self.call_own(server, tool, input, Behalf::Host).await
    }

    pub(crate) async fn call_own(
        &self,
        server: &str,
        tool: &str,
        input: JsonObject,
        behalf: Behalf,
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
        let deadline = Deadline::new(Instant::now(), self.limits(found, tool, None));
        let _ = timeout_at(deadline.if_silent(), found.settled()).await;
        let now = found.now();
        let Some(known) = now.tools.find_own(tool) else {
            if !now.state.takes_calls() {
                return Err(found.unavailable(&now));
            }
            let definitions = now.tools.definitions.iter();
            return Err(ToolCallError::UnknownTool {
                name: tool.to_owned(),
                available: definitions.map(|tool| own_name(tool).to_owned()).collect(),
            });
        };
        if behalf == Behalf::Page && now.tools.is_hidden_from_apps(tool) {
            return Err(ToolCallError::Refused {
                server: server.to_owned(),
                tool: tool.to_owned(),
                code: i64::from(ErrorCode::INVALID_REQUEST.0),
                message: "the tool is not for pages, by its own `visibility`".to_owned(),
            });
        }
        let request = Request {
            caller: Caller::of(&known.definition, None),
            tool: known,
            input: input.into(),
            deadline,
            retries: self.options.retries,
            progress: ProgressSink::default(),
        };
        Box::pin(call::call(found, request)).await
    }

    /// Tools whose definitions are not what they were when they were first seen, in this run or in the
    /// runs before it ([`HostOptions::known_tools`]).
    ///
    /// Whoever approved such a tool approved something else. The change itself is told by
    /// [`ToolHostChange::ToolRedefined`].
    pub fn changed_tools(&self) -> Vec<ToolChange> {
        let servers = self.servers.iter();
        servers.flat_map(|server| server.changed_tools()).collect()
    }

    /// The names, as in the catalog, of tools whose definitions are not what they were when they were first
    /// seen or last accepted. What was allowed to them was allowed to others.
    pub fn redefined_tools(&self) -> BTreeSet<String> {
        let changes = self.changed_tools().into_iter();
        changes.map(|change| change.name).collect()
    }

    /// A person has looked at the changed tools that `is_meant` says, and takes them for what they are
    /// now. Gives those that were accepted. They are accepted in later runs too
    /// ([`HostOptions::tool_memory`]); an error is that this cannot be kept, and in this run they are
    /// accepted all the same.
    pub fn accept_tools(
        &self,
        is_meant: impl Fn(&ToolChange) -> bool,
    ) -> Result<Vec<ToolChange>, ToolMemoryError> {
        let mut accepted = self.changed_tools();
        accepted.retain(|change| {
            let mut servers = self.servers.iter();
            let server = servers.find(|server| server.config.name == change.server);
            // One that has become something else since was looked at by nobody.
            is_meant(change) && server.is_some_and(|server| server.seen.accept(change))
        });
        if !accepted.is_empty() {
            let mut known = KnownTools::default();
            for change in &accepted {
                let server = known.0.entry(change.server.clone()).or_default();
                server.insert(change.tool.clone(), change.now.clone());
            }
            if let Some(memory) = &self.options.tool_memory {
                memory.keep(&KnownTools::default(), &known)?;
            }
        }
        Ok(accepted)
    }

    /// Keeps what was seen for the first time, in a thread of its own.
    fn keep_new_tools(&self) -> Option<JoinHandle<()>> {
        let memory = self.options.tool_memory.clone()?;
        let known = &self.options.known_tools;
        let servers = self.servers.iter();
        let remembered = servers.filter(|server| memory.remembers(&server.config.name));
        let new = remembered.map(|server| {
            let name = server.config.name.clone();
            (name, server.newly_seen(known))
        });
        let new = KnownTools(new.filter(|(_, tools)| !tools.is_empty()).collect());
        if new.0.is_empty() {
            return None;
        }
        Some(tokio::task::spawn_blocking(move || {
            // Nobody's work fails for what is not kept.
            if let Err(error) = memory.keep(&new, &KnownTools::default()) {
                tracing::warn!(%error, "what tools are is not kept");
            }
        }))
    }

    /// All tools as they were last seen, for [`HostOptions::known_tools`] of the next run. Those stay in
    /// it whose servers were not there in this one.
    pub fn known_tools(&self) -> KnownTools {
        let mut known = self.options.known_tools.clone();
        for server in &self.servers {
            let last = server.seen.last();
            if !last.is_empty() {
                known
                    .0
                    .entry(server.config.name.clone())
                    .or_default()
                    .extend(last);
            }
        }
        known
    }

    /// Replaces the folders that servers may work in, and tells those that are connected and have none of
    /// their own. One that was connected while there were none hears of them when it is started again.
    pub async fn set_roots(&self, roots: Vec<Root>) {
        let tell = |server| roots::replace_roots(server, &roots);
        join_all(self.servers.iter().map(|server| tell(server))).await;
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
        self.close_servers().await;
        self.watchdog.end().await;
        self.ended.cancel();
    }

    /// [`McpHost::close`] for a program that ends right after it: the helper that would end the servers if this
    /// program were killed is itself killed and not waited for. What it leaves is to be reaped at the very end.
    pub async fn close_at_exit(&self) -> Remains {
        self.close_servers().await;
        let remains = self.watchdog.end_with_program().await;
        self.ended.cancel();
        remains
    }

    async fn close_servers(&self) {
        let kept = self.keep_new_tools();
        self.stop.cancel();
        self.tasks.close();
        let grace = self.options.grace;
        let limit = grace.after_stdin + grace.after_term + CLOSING;
        if timeout(limit, self.tasks.wait()).await.is_err() {
            tracing::warn!(?limit, "servers were not ended in time and are killed");
            self.kill().await;
        }
        if let Some(kept) = kept {
            // It fails only if it panics, which it does not.
            let _ = kept.await;
        }
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
        self.watchdog.end().await;
        self.ended.cancel();
    }

    /// For what servers offer beside tools.
    pub(crate) fn shared(&self) -> Shared<'_> {
        Shared {
            servers: &self.servers,
            options: &self.options,
            tasks: &self.tasks,
            stop: &self.stop,
        }
    }

    fn cut(&self) {
        for server in &self.servers {
            server.cut();
        }
        for handle in self.lock_handles().drain(..) {
            handle.abort();
        }
    }

    /// What a call is allowed. What is said nearest to it counts: by the call itself, for the tool, for
    /// the server; and where nothing is said, the host's own.
    fn limits(&self, server: &Server, tool: &str, own: Option<Duration>) -> Limits {
        let config = &server.config;
        let of_tool = || config.tool_timeouts.iter().find(|(name, _)| name == tool);
        let total = own
            .or_else(|| of_tool().map(|(_, timeout)| *timeout))
            .or(config.call_timeout);
        match total {
            Some(total) => Limits {
                total,
                idle: config.idle_timeout,
            },
            None => Limits {
                total: self.options.longest_call.max(self.options.call_timeout),
                idle: Some(config.idle_timeout.unwrap_or(self.options.call_timeout)),
            },
        }
    }

    fn lock_handles(&self) -> std::sync::MutexGuard<'_, Vec<AbortHandle>> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, name: &str) -> Option<(&Arc<Server>, Found)> {
        let mut servers = self.servers.iter();
        servers.find_map(|server| Some((server, server.find(name)?)))
    }

    /// Looks for a tool that is not there, and waits for servers that may have it and are starting.
    async fn look_up(
        &self,
        name: &str,
        begun: Instant,
        own: Option<Duration>,
    ) -> Result<(&Arc<Server>, Found), ToolCallError> {
        let servers = self.servers.iter();
        let owners: Vec<_> = servers
            .filter(|server| may_belong_to(name, &server.config.name))
            .collect();
        // Each within the time that a call to it has; all of it at once, and no longer than until the
        // tool is there.
        let settled = owners.iter().map(|server| async {
            let deadline = Deadline::new(begun, self.limits(server, name, own));
            let _ = timeout_at(deadline.if_silent(), server.settled()).await;
        });
        let mut settled: FuturesUnordered<_> = settled.collect();
        while settled.next().await.is_some() {
            if let Some(found) = self.find(name) {
                return Ok(found);
            }
        }
        let mut missing = owners.iter().filter_map(|server| {
            let now = server.now();
            (!now.state.takes_calls()).then(|| server.unavailable(&now))
        });
        match (self.find(name), missing.next()) {
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
        let all: Vec<_> = self.servers.iter().map(|server| server.now()).collect();
        // Nothing is looked for that cannot be.
        let is_clear = matches!(all.as_slice(), [only] if only.tools.names_differ());
        let mut names = (!is_clear).then(HashSet::new);
        for (server, now) in self.servers.iter().zip(&all) {
            let mut problem = |message: String| {
                catalog.problems.push(ServerProblem {
                    server: server.config.name.clone(),
                    message,
                });
            };
            if now.state != ServerState::Ready {
                problem(now.why_not());
            }
            for change in server.changed_among(&now.tools) {
                problem(format!("the definition of `{}` has changed", change.tool));
            }
            for message in &now.tools.problems {
                problem(message.clone());
            }
            for tool in &now.tools.definitions {
                // The names are hashed where they could collide, so this is one chance in billions.
                let is_new = |names: &mut HashSet<_>| names.insert(tool.name.as_str());
                if names.as_mut().is_none_or(is_new) {
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

    async fn answer(&self, call: ToolCall) -> Result<ToolOutput, ToolCallError> {
        let begun = Instant::now();
        let (server, tool) = match self.find(&call.name) {
            Some(found) => found,
            None => Box::pin(self.look_up(&call.name, begun, call.deadline)).await?,
        };
        let limits = self.limits(server, own_name(&tool.definition), call.deadline);
        let request = Request {
            caller: Caller::of(&tool.definition, call.idempotency_key),
            tool,
            input: call.input,
            deadline: Deadline::new(begun, limits),
            retries: self.options.retries,
            progress: call.progress,
        };
        call::call(server, request).await
    }
}

#[async_trait]
impl ToolHost for McpHost {
    /// Does not wait: servers that are starting are named in [`ToolCatalog::problems`]. Await
    /// [`McpHost::ready`] before, to have all of them.
    ///
    /// A list that its server said to be good for a while, and that is not any more, is asked for anew in the
    /// background; that it changed is told then.
    async fn tools(&self) -> ToolCatalog {
        for server in &self.servers {
            server.refresh();
        }
        self.catalog()
    }

    /// A call to a server that is starting waits for it, within the call's deadline.
    // As `async_trait` would write it, but with the box made before the future, which the compiler then makes in its
    // place. Else it moves all of it there, four kilobytes, of which nearly nothing is in use yet.
    fn call<'host, 'answer>(
        &'host self,
        call: ToolCall,
    ) -> Pin<Box<dyn Future<Output = Result<ToolOutput, ToolCallError>> + Send + 'answer>>
    where
        'host: 'answer,
        Self: 'answer,
    {
        let room = Box::new_uninit();
        let answer = Box::write(room, self.answer(call));
        Box::into_pin(answer)
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
