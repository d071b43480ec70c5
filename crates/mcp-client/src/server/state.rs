//! One server as the host, its task and its calls share it.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
};

use rmcp::{RoleClient, model::ServerPeerInfo, service::Peer};
use switchboard_domain::{ToolCallError, ToolHostChange};
use tokio::sync::{Notify, Semaphore, broadcast, watch};
use tokio_util::task::TaskTracker;

use crate::{
    auth::session::HeldSession,
    calls::{
        alarms::Alarms,
        circuits::{Circuits, Standing},
        context::Caller,
        deadline::Questions,
        tasks::TaskNews,
    },
    config::ServerConfig,
    error::{HostError, Reason},
    features::{
        list_cache::{ListKind, Lists},
        resource_updates::{Subscribed, Told},
    },
    host::HostOptions,
    redact::Redactor,
    server::{
        logs::LogTail,
        process::ProcessGroup,
        status::{ListFreshness, ServerIdentity, ServerState, ServerStatus},
        stderr::StderrTail,
        watchdog::Watchdog,
    },
    server_requests::responder::Asks,
    tools::{
        list::{Found, Tools},
        tool_pinning::{
            fingerprint::{KnownTools, ToolChange},
            pins::SeenTools,
        },
    },
    transport::direct::Direct,
};

pub(crate) const CLOSED: &str = "it was closed";

/// Calls that may run at once on a server that says nothing else.
const CALLS_AT_ONCE: usize = 64;

/// A configured server. Its own task (`life.rs`) changes its state, and the host when that task is no
/// more; while it is connected, what its calls find out is part of it.
pub(crate) struct Server {
    pub(crate) config: ServerConfig,
    pub(crate) redactor: Redactor,
    pub(crate) stderr: StderrTail,
    /// Answers what it asks.
    pub(crate) asks: Arc<Asks>,
    /// What it logs through the protocol.
    pub(crate) logs: LogTail,
    /// Resources that it said to have changed, in the older era.
    pub(crate) told: Told,
    /// Those lists of it that are good for a while.
    pub(crate) lists: Arc<Lists>,
    /// What it says of tasks without being asked.
    pub(crate) tasks: TaskNews,
    /// Whether pages of MCP Apps can be shown.
    pub(crate) shows_apps: bool,
    /// Asks its task to list its tools anew, while it is connected.
    pub(crate) relist: Notify,
    /// Asks its task to end it and start it again.
    pub(crate) again: Notify,
    /// Held by a call while it runs.
    pub(crate) turn: Semaphore,
    /// Its tokens, where it may ask for some.
    pub(crate) session: Option<Arc<HeldSession>>,
    /// How many calls may run at once.
    pub(crate) turns: usize,
    /// Where deadlines of calls are kept.
    pub(crate) alarms: Alarms,
    pub(crate) circuits: Circuits,
    pub(crate) seen: SeenTools,
    /// Whether anybody answers what it asks.
    is_answered: bool,
    group: Mutex<ProcessGroup>,
    watchdog: Watchdog,
    now: watch::Sender<Now>,
    changes: broadcast::Sender<ToolHostChange>,
}

/// A server at one moment.
#[derive(Clone)]
pub(crate) struct Now {
    pub(crate) state: ServerState,
    pub(crate) reason: Option<Reason>,
    /// The connection, while the server is ready.
    pub(crate) link: Option<Arc<Link>>,
    /// What it offers. Kept while it is being restarted, so that a run does not lose its tools for
    /// the moment that takes; a call waits.
    pub(crate) tools: Arc<Tools>,
    /// Why `tools` may not be what it has now.
    stale_list: Option<String>,
    /// What it last said about itself.
    about: Option<Arc<ServerPeerInfo>>,
}

/// A connection with which the handshake is done.
pub(crate) struct Link {
    pub(crate) peer: Peer<RoleClient>,
    /// The way of calls past rmcp, where there is one.
    pub(crate) direct: Option<Arc<Direct>>,
    /// Calls that wait for their answer, or are just being cancelled.
    pub(crate) calls: TaskTracker,
    /// Why the connection is no more, once that is known.
    pub(crate) ended: watch::Sender<Option<String>>,
    /// What a call found wrong with the connection, such as an expired session.
    pub(crate) stale: watch::Sender<Option<String>>,
    /// Told when an answer did not come in time.
    pub(crate) silence: Notify,
    /// Tools that were being called when it ended. That is held against each of them once, however many
    /// calls there were.
    blamed: Mutex<HashSet<String>>,
    /// Resources that are subscribed to on it, in the older era.
    pub(crate) subscribed: Subscribed,
}

impl Link {
    pub(crate) fn new(peer: Peer<RoleClient>, direct: Option<Arc<Direct>>) -> Self {
        Self {
            peer,
            direct,
            calls: TaskTracker::new(),
            ended: watch::Sender::new(None),
            stale: watch::Sender::new(None),
            silence: Notify::new(),
            blamed: Mutex::default(),
            subscribed: Subscribed::default(),
        }
    }

    /// Whether it is the first time that its end is held against this tool.
    pub(crate) fn blame(&self, tool: &str) -> bool {
        let mut blamed = self.blamed.lock().unwrap_or_else(PoisonError::into_inner);
        blamed.insert(tool.to_owned())
    }

    /// Whether nothing is to be expected of it any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.ended.borrow().is_some() || self.stale.borrow().is_some()
    }

    /// Waits for the connection to end and says why it did.
    pub(crate) async fn ended(&self) -> String {
        heard(&self.ended).await
    }

    pub(crate) async fn stale(&self) -> String {
        heard(&self.stale).await
    }
}

/// The state of a server that is connected, and why it is that.
fn standing(circuits: &Circuits, stale_list: Option<&str>) -> (ServerState, Option<Reason>) {
    match (circuits.standing(), stale_list) {
        (Standing::ServerOpen(why), _) => (ServerState::Blocked, Some(Reason::of(why))),
        (Standing::ToolsOpen(why), None) => (ServerState::Degraded, Some(Reason::of(why))),
        (Standing::ToolsOpen(why), Some(stale)) => {
            let both = format!("{why}; and {stale}");
            (ServerState::Degraded, Some(Reason::of(both)))
        }
        (Standing::Sound, Some(stale)) => (ServerState::Degraded, Some(Reason::of(stale))),
        (Standing::Sound, None) => (ServerState::Ready, None),
    }
}

async fn heard(word: &watch::Sender<Option<String>>) -> String {
    let mut word = word.subscribe();
    // Fails only without a sender, which is borrowed.
    let said = word.wait_for(Option::is_some).await;
    said.ok().and_then(|said| said.clone()).unwrap_or_default()
}

impl Now {
    /// Why it takes no calls, for a person, with the server's last words.
    pub(crate) fn why_not(&self) -> String {
        match (&self.reason, self.state) {
            (Some(reason), _) => return reason.to_string(),
            (None, ServerState::Starting) => "it is still starting",
            (None, ServerState::Stopped) => CLOSED,
            (None, _) => "it is not ready",
        }
        .to_owned()
    }

    /// The same beside these last lines, so that nothing is said twice.
    fn why_not_beside(&self, stderr_tail: &[String]) -> String {
        match &self.reason {
            // While it is started again, the lines may be those of its next life.
            Some(Reason {
                cause, last_words, ..
            }) if last_words.is_empty()
                || stderr_tail
                    .windows(last_words.len())
                    .any(|lines| lines == last_words) =>
            {
                cause.clone()
            }
            _ => self.why_not(),
        }
    }
}

impl Server {
    pub(crate) fn new(
        config: ServerConfig,
        options: &HostOptions,
        changes: broadcast::Sender<ToolHostChange>,
        watchdog: Watchdog,
        alarms: Alarms,
    ) -> Self {
        let at_first = Now {
            state: ServerState::Starting,
            reason: None,
            link: None,
            tools: Arc::default(),
            stale_list: None,
            about: None,
        };
        let turns = match config.max_concurrent_calls {
            _ if config.sequential => 1,
            Some(most) => most.clamp(1, Semaphore::MAX_PERMITS),
            None => CALLS_AT_ONCE,
        };
        Self {
            alarms,
            redactor: Redactor::new(&config),
            asks: Arc::new(Asks::new(&config, &options.answering)),
            is_answered: options.answering.elicitor.is_some()
                || options.answering.sampler.is_some(),
            logs: LogTail::default(),
            told: Told::default(),
            lists: Arc::default(),
            tasks: TaskNews::default(),
            shows_apps: options.shows_apps,
            relist: Notify::new(),
            session: HeldSession::new(&config, &options.auth),
            circuits: Circuits::new(options.circuits),
            seen: SeenTools::new(options.known_tools.of(&config.name)),
            watchdog,
            config,
            stderr: StderrTail::default(),
            again: Notify::new(),
            turn: Semaphore::new(turns),
            turns,
            group: Mutex::default(),
            now: watch::Sender::new(at_first),
            changes,
        }
    }

    pub(crate) fn now(&self) -> Now {
        self.now.borrow().clone()
    }

    /// A tool by its name in the catalog.
    pub(crate) fn find(&self, name: &str) -> Option<Found> {
        self.now.borrow().tools.find(name)
    }

    /// Its connection, if calls can be made on it.
    pub(crate) fn sound_link(&self) -> Option<Arc<Link>> {
        let now = self.now.borrow();
        let link = now.link.as_ref()?;
        link.ended.borrow().is_none().then(|| link.clone())
    }

    /// Those of its questions within this call that are before a person or a model; nothing where there is
    /// nobody who could answer one.
    pub(crate) fn questions(&self, caller: &Arc<Caller>) -> Option<Questions> {
        self.is_answered.then(|| Questions {
            asking: self.asks.asking(),
            caller: Arc::clone(caller),
            patience: self.asks.patience(),
        })
    }

    /// Whether nothing is asked of it, and nobody waits to ask.
    pub(crate) fn is_idle(&self) -> bool {
        self.turn.available_permits() == self.turns
    }

    /// Somebody looks at its tools. If they are not good any more they are listed anew, in the background.
    pub(crate) fn refresh(&self) {
        let now = self.now.borrow();
        if now.link.is_some() && now.tools.freshness.is_some_and(|tools| tools.is_over()) {
            self.relist.notify_one();
        }
    }

    /// Waits until it is not starting.
    pub(crate) async fn settled(&self) {
        let mut now = self.now.subscribe();
        // Fails only without a sender, which is ours.
        let _ = now.wait_for(|now| now.state != ServerState::Starting).await;
    }

    /// Waits until it has another connection than `old`, or none is to be expected.
    pub(crate) async fn replaced(&self, old: &Arc<Link>) {
        let mut now = self.now.subscribe();
        let _ = now
            .wait_for(|now| match &now.link {
                Some(link) => !Arc::ptr_eq(link, old),
                None => now.state != ServerState::Starting,
            })
            .await;
    }

    /// Waits for another connection than `old`; `None` once there will be none.
    pub(crate) async fn next_link(&self, old: &Arc<Link>) -> Option<Arc<Link>> {
        let mut now = self.now.subscribe();
        let next = now.wait_for(|now| match &now.link {
            Some(link) => !Arc::ptr_eq(link, old),
            None => now.state == ServerState::Stopped,
        });
        // Fails only without a sender, which is ours.
        next.await.ok()?.link.clone()
    }

    pub(crate) fn unavailable(&self, now: &Now) -> ToolCallError {
        ToolCallError::Unavailable {
            server: self.config.name.clone(),
            reason: now.why_not(),
        }
    }

    /// Fails if it is required and not ready.
    pub(crate) fn ready_if_required(&self) -> Result<(), HostError> {
        let now = self.now();
        if !self.config.required || now.link.is_some() {
            return Ok(());
        }
        let stderr_tail = self.stderr.lines();
        Err(HostError::RequiredServer {
            server: self.config.name.clone(),
            reason: now.why_not_beside(&stderr_tail),
            stderr_tail,
        })
    }

    /// Returns an error if the server failed because its program was not found.
    pub(crate) fn has_program(&self) -> Result<(), HostError> {
        match self.now().reason {
            Some(reason) if reason.lacks_program => Err(HostError::NoProgram {
                server: self.config.name.clone(),
                reason: reason.cause,
            }),
            _ => Ok(()),
        }
    }

    pub(crate) fn status(&self) -> ServerStatus {
        let now = self.now();
        let about = now.about.as_deref();
        let stderr_tail = self.stderr.lines();
        let reason = now.reason.is_some();
        ServerStatus {
            name: self.config.name.clone(),
            state: now.state,
            reason: reason.then(|| now.why_not_beside(&stderr_tail)),
            protocol_version: about.map(|about| about.protocol_version.to_string()),
            server_info: about
                .and_then(|about| about.server_info.as_ref())
                .map(|info| ServerIdentity {
                    name: info.name.clone(),
                    version: info.version.clone(),
                }),
            instructions: about
                .and_then(|about| about.instructions.as_deref())
                .map(|text| self.redactor.clean(text)),
            tools: now.tools.definitions.len(),
            app_tools: now.tools.app_only.len(),
            lists: self.list_freshness(&now),
            warnings: [&self.config.warnings[..], &now.tools.problems].concat(),
            changed_tools: self
                .changed_tools()
                .into_iter()
                .map(|change| change.tool)
                .collect(),
            pid: self.lock_group().pid(),
            stderr_tail,
            logs: self.logs.lines(),
            transport: self.redactor.clean(self.config.transport.describe()),
            required: self.config.required,
        }
    }

    fn list_freshness(&self, now: &Now) -> Vec<ListFreshness> {
        let tools = now.tools.freshness.filter(|_| now.link.is_some());
        let tools = tools.map(|tools| tools.status("tools"));
        let tools = tools.filter(|tools| tools.ttl_ms > 0);
        tools.into_iter().chain(self.lists.status()).collect()
    }

    pub(crate) fn starting(&self, reason: Reason) {
        self.change(|now| {
            now.state = ServerState::Starting;
            now.reason = Some(reason);
            now.link = None;
        });
    }

    pub(crate) fn ready(&self, link: Arc<Link>, tools: Tools) {
        let tools = Arc::new(tools);
        // Whoever finds the server ready also finds which of its tools have changed.
        let redefined = self.seen.look_at(&self.config.name, &tools);
        // It may be another server by now.
        self.lists.all_changed();
        self.change(|now| {
            (now.state, now.reason) = standing(&self.circuits, None);
            now.about = link.peer.peer_info();
            now.link = Some(link);
            now.tools = tools.clone();
            now.stale_list = None;
        });
        self.tools_changed();
        self.tell_redefined(redefined);
    }

    pub(crate) fn relisted(&self, tools: Tools) {
        let tools = Arc::new(tools);
        let before = self.now().tools;
        let redefined = self.seen.look_at(&self.config.name, &tools);
        self.now.send_modify(|now| {
            now.tools = tools.clone();
            now.stale_list = None;
        });
        self.reassess();
        // It may have been asked only to be sure.
        if before.definitions != tools.definitions || before.app_only != tools.app_only {
            self.tools_changed();
        }
        self.tell_redefined(redefined);
    }

    /// The old list stays; it is still the best guess.
    pub(crate) fn not_relisted(&self, problem: String) {
        self.now.send_modify(|now| now.stale_list = Some(problem));
        self.reassess();
    }

    /// Its state while it is connected is what its circuits and its list say.
    pub(crate) fn reassess(&self) {
        let changed = self.now.send_if_modified(|now| {
            if now.link.is_none() {
                return false;
            }
            let standing = standing(&self.circuits, now.stale_list.as_deref());
            if standing.0 == now.state && standing.1 == now.reason {
                return false;
            }
            (now.state, now.reason) = standing;
            true
        });
        if changed {
            self.tell_state();
        }
    }

    pub(crate) fn failed(&self, reason: Reason) {
        tracing::warn!(server = self.config.name, %reason, "an MCP server failed");
        self.gone(ServerState::Failed, Some(reason));
    }

    /// It waits for a person.
    pub(crate) fn blocked(&self, reason: Reason) {
        tracing::warn!(server = self.config.name, %reason, "an MCP server waits for somebody");
        self.gone(ServerState::Blocked, Some(reason));
    }

    pub(crate) fn stopped(&self) {
        self.gone(ServerState::Stopped, None);
    }

    /// Ends the calls under way and kills the process group, both at once.
    pub(crate) fn cut(&self) {
        if let Some(link) = self.now().link {
            link.ended.send_replace(Some(CLOSED.to_owned()));
        }
        self.lock_group().kill();
    }

    fn gone(&self, state: ServerState, reason: Option<Reason>) {
        let had_tools = !self.now.borrow().tools.definitions.is_empty();
        self.change(|now| {
            now.state = state;
            now.reason = reason;
            now.link = None;
            now.tools = Arc::default();
            now.stale_list = None;
        });
        if had_tools {
            self.tools_changed();
        }
    }

    fn change(&self, change: impl FnOnce(&mut Now)) {
        self.now.send_modify(change);
        self.tell_state();
    }

    fn tell_state(&self) {
        let now = self.now();
        self.tell(ToolHostChange::ServerState {
            server: self.config.name.clone(),
            state: now.state.as_str().to_owned(),
            reason: now.reason.map(|reason| reason.to_string()),
        });
    }

    /// Tells of lists that are not kept here.
    pub(crate) fn list_changed(&self, which: ListKind) {
        let server = self.config.name.clone();
        match which {
            ListKind::Prompts => self.tell(ToolHostChange::PromptsChanged { server }),
            ListKind::Resources => self.tell(ToolHostChange::ResourcesChanged { server }),
            ListKind::Tools => self.tools_changed(),
        }
    }

    fn tools_changed(&self) {
        self.tell(ToolHostChange::ToolsChanged {
            server: self.config.name.clone(),
        });
    }

    fn tell(&self, change: ToolHostChange) {
        // Fails when nobody listens.
        let _ = self.changes.send(change);
    }

    /// Tells which tools are not what they were when they were last seen.
    fn tell_redefined(&self, redefined: Vec<ToolHostChange>) {
        for redefined in redefined {
            tracing::warn!(?redefined, "a tool's definition has changed");
            self.tell(redefined);
        }
    }

    /// What of its tools was seen for the first time in this run.
    pub(crate) fn newly_seen(&self, known: &KnownTools) -> BTreeMap<String, String> {
        let first = self.seen.first().into_iter();
        let new = first.filter(|(tool, _)| known.get(&self.config.name, tool).is_none());
        new.collect()
    }

    /// What of its tools is not what it was when it was first seen.
    pub(crate) fn changed_tools(&self) -> Vec<ToolChange> {
        self.changed_among(&self.now().tools)
    }

    /// The same for tools that are its own.
    pub(crate) fn changed_among(&self, tools: &Tools) -> Vec<ToolChange> {
        self.seen.changed(&self.config.name, tools)
    }

    /// The group of the process that is about to be started.
    pub(crate) fn new_group(&self) -> ProcessGroup {
        let group = ProcessGroup::watched_by(&self.watchdog);
        *self.lock_group() = group.clone();
        group
    }

    fn lock_group(&self) -> std::sync::MutexGuard<'_, ProcessGroup> {
        self.group.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
