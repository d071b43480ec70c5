//! The state of one MCP server, which the host, its supervisor and its calls share.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use rmcp::model::ServerPeerInfo;
use serde_json::Value;
use switchboard_domain::{ToolCallError, ToolHostChange, redact::Redactor};
use tokio::sync::{Notify, Semaphore, broadcast, watch};

use crate::{
    auth::session::SessionHandle,
    config::ServerConfig,
    options::HostOptions,
    primitives::error::{HostError, StatusReason},
    primitives::sync::lock_mutex,
    server::{
        circuit_breakers::CircuitBreakers,
        connection::Connection,
        list_cache::{ListCache, ListKind},
        process::{group::ProcessGroup, watchdog::Watchdog},
        status::{ListFreshness, ServerIdentity, ServerState, ServerStatus},
        stderr_and_logs::{LogMessage, MAX_LINES, MAX_LOGS, RingBuffer},
    },
    server_requests::responder::RequestResponder,
    tools::{
        catalog::{CatalogTool, ServerTools},
        tool_pinning::{
            fingerprint::{ToolChange, ToolPins},
            pins::PinnedTools,
        },
    },
};

/// Reason in call errors after the host was closed.
pub(crate) const CLOSED: &str = "the server was stopped";

/// Default maximum number of concurrent calls per server. Further calls wait.
const DEFAULT_MAX_CONCURRENT_CALLS: usize = 64;
/// Number of resource updates buffered per watcher. A slower watcher loses the oldest updates.
const UPDATE_CAPACITY: usize = 256;
/// Number of task notifications buffered per call that waits for a task. If more arrive, the oldest
/// are lost. The call then receives the state of its task from the next poll.
const TASK_UPDATE_CAPACITY: usize = 64;

/// Configured MCP server with its current state, which its supervisor task changes.
pub(crate) struct Server {
    pub(crate) config: ServerConfig,
    pub(crate) redactor: Redactor,
    /// Last 20 lines of the standard error of the server process.
    pub(crate) stderr: Arc<RingBuffer<String>>,
    /// Handler of the requests that the server sends, such as elicitation and sampling.
    pub(crate) responder: RequestResponder,
    /// Last 50 log messages that the server sent.
    pub(crate) logs: RingBuffer<LogMessage>,
    /// Channel for URIs of changed resources, for servers of versions up to 2025-11-25.
    pub(crate) resource_updates: broadcast::Sender<String>,
    pub(crate) list_cache: ListCache,
    /// Channel for task status notifications. Every call that waits for a task receives all of
    /// them.
    pub(crate) task_updates: broadcast::Sender<Value>,
    /// Whether the application can display pages of MCP Apps, which is declared to the server.
    pub(crate) supports_apps: bool,
    /// Signal that the supervisor must list the tools of the server again.
    pub(crate) relist_requested: Notify,
    /// Signal that the supervisor must restart the server.
    pub(crate) restart_requested: Notify,
    /// Semaphore that limits concurrent calls. Each running call holds a permit.
    pub(crate) call_permits: Semaphore,
    pub(crate) max_concurrent_calls: usize,
    /// OAuth session of the server. `None` for servers without an OAuth login.
    pub(crate) auth_session: Option<Arc<SessionHandle>>,
    pub(crate) circuits: CircuitBreakers,
    pub(crate) pinned_tools: PinnedTools,
    group: Mutex<ProcessGroup>,
    watchdog: Watchdog,
    snapshot: watch::Sender<ServerSnapshot>,
    changes: broadcast::Sender<ToolHostChange>,
}

/// State of an MCP server at one moment.
#[derive(Clone)]
pub(crate) struct ServerSnapshot {
    pub(crate) state: ServerState,
    pub(crate) reason: Option<StatusReason>,
    /// Connection to the server. `None` while the server is not connected.
    pub(crate) connection: Option<Arc<Connection>>,
    /// Tools of the server. They stay during a restart, so that a running agent does not lose them.
    pub(crate) tools: Arc<ServerTools>,
    /// Reason why `tools` may be outdated. `None` if the last `tools/list` request succeeded.
    outdated_tools: Option<String>,
    /// Server name, version and capabilities from the last handshake.
    peer_info: Option<Arc<ServerPeerInfo>>,
}

impl ServerSnapshot {
    /// Returns the reason why the server accepts no calls, with the last lines of its standard
    /// error.
    pub(crate) fn unavailable_reason(&self) -> String {
        match &self.reason {
            Some(reason) => reason.to_string(),
            None => self.unavailable_cause(),
        }
    }

    /// Returns the reason why the server accepts no calls, without lines of its standard error.
    fn unavailable_cause(&self) -> String {
        match (&self.reason, self.state) {
            (Some(reason), _) => return reason.cause.clone(),
            (None, ServerState::Starting) => "still starting",
            (None, ServerState::Stopped) => CLOSED,
            (None, _) => "not ready",
        }
        .to_owned()
    }
}

impl Server {
    pub(crate) fn new(
        config: ServerConfig,
        options: &HostOptions,
        changes: broadcast::Sender<ToolHostChange>,
        watchdog: Watchdog,
    ) -> Self {
        let snapshot = ServerSnapshot {
            state: ServerState::Starting,
            reason: None,
            connection: None,
            tools: Arc::default(),
            outdated_tools: None,
            peer_info: None,
        };
        let max_concurrent_calls = match config.max_concurrent_calls {
            _ if config.sequential => 1,
            Some(max) => max.clamp(1, Semaphore::MAX_PERMITS),
            None => DEFAULT_MAX_CONCURRENT_CALLS,
        };
        Self {
            redactor: config.server_redactor(),
            stderr: Arc::new(RingBuffer::new(MAX_LINES)),
            responder: RequestResponder::new(&config, &options.client_handlers),
            logs: RingBuffer::new(MAX_LOGS),
            resource_updates: broadcast::Sender::new(UPDATE_CAPACITY),
            list_cache: ListCache::default(),
            task_updates: broadcast::Sender::new(TASK_UPDATE_CAPACITY),
            supports_apps: options.supports_apps,
            relist_requested: Notify::new(),
            restart_requested: Notify::new(),
            call_permits: Semaphore::new(max_concurrent_calls),
            max_concurrent_calls,
            auth_session: SessionHandle::new(&config, &options.auth),
            circuits: CircuitBreakers::new(options.circuits),
            pinned_tools: PinnedTools::new(options.tool_pins.server_pins(&config.name)),
            group: Mutex::default(),
            watchdog,
            snapshot: watch::Sender::new(snapshot),
            changes,
            config,
        }
    }

    pub(crate) fn snapshot(&self) -> ServerSnapshot {
        self.snapshot.borrow().clone()
    }

    /// Finds a tool of this server by its catalog name, by which models call it.
    pub(crate) fn find_tool(&self, name: &str) -> Option<Arc<CatalogTool>> {
        self.snapshot.borrow().tools.find_tool(name)
    }

    /// Returns whether no call of the server is running.
    pub(crate) fn is_idle(&self) -> bool {
        self.call_permits.available_permits() == self.max_concurrent_calls
    }

    /// Requests a new list of tools in the background if the time to live of the old one is over.
    pub(crate) fn refresh_tools(&self) {
        let snapshot = self.snapshot.borrow();
        let freshness = snapshot.tools.freshness;
        if snapshot.connection.is_some() && freshness.is_some_and(|it| it.is_list_expired()) {
            self.relist_requested.notify_one();
        }
    }

    /// Waits until the server has left the state `Starting`: it is ready, degraded, failed, blocked
    /// or stopped.
    pub(crate) async fn wait_for_startup(&self) {
        self.await_snapshot(|snapshot| snapshot.state != ServerState::Starting)
            .await;
    }

    /// Waits until another connection replaces `old`, or until no reconnection is in progress.
    pub(crate) async fn wait_for_reconnection(&self, old: &Arc<Connection>) {
        self.await_snapshot(|snapshot| match &snapshot.connection {
            Some(connection) => !Arc::ptr_eq(connection, old),
            None => snapshot.state != ServerState::Starting,
        })
        .await;
    }

    /// Waits for a connection other than `old`. Returns `None` after the server was stopped.
    pub(crate) async fn next_connection(&self, old: &Arc<Connection>) -> Option<Arc<Connection>> {
        let snapshot = self.await_snapshot(|snapshot| match &snapshot.connection {
            Some(connection) => !Arc::ptr_eq(connection, old),
            None => snapshot.state == ServerState::Stopped,
        });
        snapshot.await?.connection
    }

    async fn await_snapshot(
        &self,
        condition: impl FnMut(&ServerSnapshot) -> bool,
    ) -> Option<ServerSnapshot> {
        let mut snapshots = self.snapshot.subscribe();
        // Waiting fails only if the sender is dropped, but the sender is a field of this server.
        let snapshot = snapshots.wait_for(condition).await.ok()?;
        Some(snapshot.clone())
    }

    pub(crate) fn unavailable_error(&self, reason: String) -> ToolCallError {
        let server = self.config.name.clone();
        ToolCallError::Unavailable { server, reason }
    }

    /// Returns an error if the server is marked as `required` and has no connection.
    pub(crate) fn check_required_ready(&self) -> Result<(), HostError> {
        let snapshot = self.snapshot();
        if !self.config.required || snapshot.connection.is_some() {
            return Ok(());
        }
        Err(HostError::RequiredServer {
            server: self.config.name.clone(),
            reason: snapshot.unavailable_cause(),
            stderr_tail: self.stderr.to_vec(),
        })
    }

    pub(crate) fn status(&self) -> ServerStatus {
        let snapshot = self.snapshot();
        let peer_info = snapshot.peer_info.as_deref();
        let identity = peer_info.and_then(|info| info.server_info.as_ref());
        let instructions = peer_info.and_then(|info| info.instructions.as_deref());
        let changed_tools = self.changed_tools().into_iter();
        ServerStatus {
            name: self.config.name.clone(),
            state: snapshot.state,
            reason: snapshot.reason.as_ref().map(|reason| reason.cause.clone()),
            protocol_version: peer_info.map(|info| info.protocol_version.to_string()),
            server_info: identity.map(|info| ServerIdentity {
                name: info.name.clone(),
                version: info.version.clone(),
            }),
            instructions: instructions.map(|text| self.redact(text)),
            tools: snapshot.tools.model_tools().count(),
            app_tools: snapshot.tools.app_only_tools().count(),
            lists: self.list_freshness(&snapshot),
            warnings: [&self.config.warnings[..], &snapshot.tools.problems].concat(),
            changed_tools: changed_tools.map(|change| change.tool).collect(),
            pid: lock_mutex(&self.group).pid(),
            stderr_tail: self.stderr.to_vec(),
            logs: self.logs.to_vec(),
            transport: self.redact(self.config.transport.describe_transport()),
            required: self.config.required,
        }
    }

    /// Replaces the known secrets of the server, such as configured tokens, in a text by a
    /// placeholder.
    pub(crate) fn redact(&self, text: impl AsRef<str>) -> String {
        self.redactor.redact_known(text.as_ref()).into_owned()
    }

    fn list_freshness(&self, snapshot: &ServerSnapshot) -> Vec<ListFreshness> {
        let connected = snapshot.connection.is_some();
        let tools = snapshot.tools.freshness.filter(|_| connected);
        let tools = tools.map(|tools| ListFreshness::new("tools", tools));
        let tools = tools.filter(|tools| tools.ttl_ms > 0).into_iter();
        tools.chain(self.list_cache.list_freshness()).collect()
    }

    pub(crate) fn set_starting(&self, reason: StatusReason) {
        self.modify_snapshot(|snapshot| {
            snapshot.state = ServerState::Starting;
            snapshot.reason = Some(reason);
            snapshot.connection = None;
        });
    }

    pub(crate) fn set_ready(&self, connection: Arc<Connection>, tools: ServerTools) {
        let tools = Arc::new(tools);
        // The pins are updated before the state, so that the changed tools are known as soon as the
        // server is ready.
        let redefined = self.pinned_tools.update_pins(&self.config.name, &tools);
        // After a reconnection the URL may lead to another server, so cached lists are dropped.
        self.list_cache.clear();
        self.modify_snapshot(|snapshot| {
            (snapshot.state, snapshot.reason) = self.connected_state(None);
            snapshot.peer_info = connection.peer.peer_info();
            snapshot.connection = Some(connection);
            snapshot.tools = tools;
            snapshot.outdated_tools = None;
        });
        self.publish_list_change(ListKind::Tools);
        self.publish_redefined_tools(redefined);
    }

    pub(crate) fn set_tools(&self, tools: ServerTools) {
        let tools = Arc::new(tools);
        let before = self.snapshot().tools;
        let redefined = self.pinned_tools.update_pins(&self.config.name, &tools);
        self.snapshot.send_modify(|snapshot| {
            snapshot.tools = tools.clone();
            snapshot.outdated_tools = None;
        });
        self.update_state();
        if !before.has_same_tools(&tools) {
            self.publish_list_change(ListKind::Tools);
        }
        self.publish_redefined_tools(redefined);
    }

    /// Stores the reason why the list of tools may be outdated. The old list stays in use.
    pub(crate) fn set_tools_outdated(&self, problem: String) {
        let snapshot = &self.snapshot;
        snapshot.send_modify(|snapshot| snapshot.outdated_tools = Some(problem));
        self.update_state();
    }

    /// Updates the state of a connected server from its circuit breakers and its list of tools.
    pub(crate) fn update_state(&self) {
        let changed = self.snapshot.send_if_modified(|snapshot| {
            if snapshot.connection.is_none() {
                return false;
            }
            let (state, reason) = self.connected_state(snapshot.outdated_tools.as_deref());
            if state == snapshot.state && reason == snapshot.reason {
                return false;
            }
            (snapshot.state, snapshot.reason) = (state, reason);
            true
        });
        if changed {
            self.publish_state();
        }
    }

    fn connected_state(&self, outdated_tools: Option<&str>) -> (ServerState, Option<StatusReason>) {
        let (state, reason) = match (self.circuits.derive_server_state(), outdated_tools) {
            (None, None) => return (ServerState::Ready, None),
            (None, Some(outdated)) => (ServerState::Degraded, outdated.to_owned()),
            (Some((ServerState::Degraded, open)), Some(outdated)) => {
                (ServerState::Degraded, format!("{open}; {outdated}"))
            }
            (Some(open), _) => open,
        };
        (state, Some(StatusReason::new(reason)))
    }

    /// Kills the process group of the server. Its running calls fail immediately.
    pub(crate) fn kill_process_group(&self) {
        if let Some(connection) = self.snapshot().connection {
            connection.mark_ended(CLOSED.to_owned());
        }
        lock_mutex(&self.group).kill();
    }

    /// Sets the state of a server that has no connection, and removes its tools.
    pub(crate) fn set_disconnected(&self, state: ServerState, reason: Option<StatusReason>) {
        if let Some(reason) = &reason {
            tracing::warn!(
                server = self.config.name,
                ?state,
                %reason,
                "an MCP server is no longer available"
            );
        }
        let had_tools = !self.snapshot.borrow().tools.tools.is_empty();
        self.modify_snapshot(|snapshot| {
            snapshot.state = state;
            snapshot.reason = reason;
            snapshot.connection = None;
            snapshot.tools = Arc::default();
            snapshot.outdated_tools = None;
        });
        if had_tools {
            self.publish_list_change(ListKind::Tools);
        }
    }

    fn modify_snapshot(&self, change: impl FnOnce(&mut ServerSnapshot)) {
        self.snapshot.send_modify(change);
        self.publish_state();
    }

    fn publish_state(&self) {
        let snapshot = self.snapshot();
        self.publish_change(ToolHostChange::ServerState {
            server: self.config.name.clone(),
            state: snapshot.state.as_str().to_owned(),
            reason: snapshot.reason.map(|reason| reason.to_string()),
        });
    }

    pub(crate) fn publish_list_change(&self, list: ListKind) {
        let server = self.config.name.clone();
        self.publish_change(match list {
            ListKind::Prompts => ToolHostChange::PromptsChanged { server },
            ListKind::Resources => ToolHostChange::ResourcesChanged { server },
            ListKind::Tools => ToolHostChange::ToolsChanged { server },
        });
    }

    fn publish_redefined_tools(&self, redefined: Vec<ToolHostChange>) {
        for change in redefined {
            tracing::warn!(?change, "the definition of a tool has changed");
            self.publish_change(change);
        }
    }

    fn publish_change(&self, change: ToolHostChange) {
        // Sending fails if the changes have no subscriber.
        let _ = self.changes.send(change);
    }

    /// Returns the pinned fingerprints of the tools that `pins` does not contain, by the name of
    /// the tool on its server.
    pub(crate) fn new_tool_pins(&self, pins: &ToolPins) -> BTreeMap<String, String> {
        let pinned = self.pinned_tools.pinned_fingerprints().into_iter();
        let new = pinned.filter(|(tool, _)| pins.get(&self.config.name, tool).is_none());
        new.collect()
    }

    /// Returns the current tools whose definition differs from the pinned one.
    pub(crate) fn changed_tools(&self) -> Vec<ToolChange> {
        let tools = self.snapshot().tools;
        self.pinned_tools.changed_tools(&self.config.name, &tools)
    }

    /// Creates the process group for a server process that is about to start.
    pub(crate) fn new_process_group(&self) -> ProcessGroup {
        let group = ProcessGroup::with_watchdog(&self.watchdog);
        *lock_mutex(&self.group) = group.clone();
        group
    }
}
