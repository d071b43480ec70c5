//! One server as the host, its task and its calls share it.

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::{RoleClient, model::ServerPeerInfo, service::Peer};
use switchboard_domain::{ToolCallError, ToolHostChange};
use tokio::sync::{Notify, Semaphore, broadcast, watch};
use tokio_util::task::TaskTracker;

use crate::{
    config::ServerConfig,
    error::{HostError, Reason},
    list::Tools,
    process::ProcessGroup,
    redact::Redactor,
    status::{ServerIdentity, ServerState, ServerStatus},
    stderr::StderrTail,
};

pub(crate) const CLOSED: &str = "it was closed";

/// A configured server. Only its own task (`life.rs`) changes its state, and the host when that task is
/// no more.
pub(crate) struct Server {
    pub(crate) config: ServerConfig,
    pub(crate) redactor: Redactor,
    pub(crate) stderr: StderrTail,
    /// Asks its task to end it and start it again.
    pub(crate) again: Notify,
    /// Held by a call where the server takes one at a time.
    pub(crate) turn: Semaphore,
    group: Mutex<ProcessGroup>,
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
    /// What it last said about itself.
    about: Option<Arc<ServerPeerInfo>>,
}

/// A connection with which the handshake is done.
pub(crate) struct Link {
    pub(crate) peer: Peer<RoleClient>,
    /// Calls that wait for their answer, or are just being cancelled.
    pub(crate) calls: TaskTracker,
    /// Why the connection is no more, once that is known.
    pub(crate) ended: watch::Sender<Option<String>>,
    /// What a call found wrong with the connection, such as an expired session.
    pub(crate) stale: watch::Sender<Option<String>>,
}

impl Link {
    pub(crate) fn new(peer: Peer<RoleClient>) -> Self {
        Self {
            peer,
            calls: TaskTracker::new(),
            ended: watch::Sender::new(None),
            stale: watch::Sender::new(None),
        }
    }

    /// Waits for the connection to end and says why it did.
    pub(crate) async fn ended(&self) -> String {
        heard(&self.ended).await
    }

    pub(crate) async fn stale(&self) -> String {
        heard(&self.stale).await
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
            Some(Reason { cause, last_words })
                if last_words.is_empty()
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
    pub(crate) fn new(config: ServerConfig, changes: broadcast::Sender<ToolHostChange>) -> Self {
        let at_first = Now {
            state: ServerState::Starting,
            reason: None,
            link: None,
            tools: Arc::default(),
            about: None,
        };
        let turns = if config.sequential {
            1
        } else {
            Semaphore::MAX_PERMITS
        };
        Self {
            redactor: Redactor::new(&config),
            config,
            stderr: StderrTail::default(),
            again: Notify::new(),
            turn: Semaphore::new(turns),
            group: Mutex::default(),
            now: watch::Sender::new(at_first),
            changes,
        }
    }

    pub(crate) fn now(&self) -> Now {
        self.now.borrow().clone()
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

    pub(crate) fn unavailable(&self, now: &Now) -> ToolCallError {
        ToolCallError::Unavailable {
            server: self.config.name.clone(),
            reason: now.why_not(),
        }
    }

    /// Fails if it is required and not ready.
    pub(crate) fn ready_if_required(&self) -> Result<(), HostError> {
        let now = self.now();
        if !self.config.required || now.state == ServerState::Ready {
            return Ok(());
        }
        let stderr_tail = self.stderr.lines();
        Err(HostError::RequiredServer {
            server: self.config.name.clone(),
            reason: now.why_not_beside(&stderr_tail),
            stderr_tail,
        })
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
            warnings: now.tools.problems.clone(),
            pid: self.lock_group().pid(),
            stderr_tail,
            transport: self.redactor.clean(self.config.transport.describe()),
            required: self.config.required,
        }
    }

    pub(crate) fn starting(&self, reason: Reason) {
        self.change(|now| {
            now.state = ServerState::Starting;
            now.reason = Some(reason);
            now.link = None;
        });
    }

    pub(crate) fn ready(&self, link: Arc<Link>, tools: Tools) {
        self.change(|now| {
            now.state = ServerState::Ready;
            now.reason = None;
            now.about = link.peer.peer_info();
            now.link = Some(link);
            now.tools = Arc::new(tools);
        });
        self.tools_changed();
    }

    pub(crate) fn relisted(&self, tools: Tools) {
        self.now.send_modify(|now| now.tools = Arc::new(tools));
        self.tools_changed();
    }

    /// The old list stays; it is still the best guess.
    pub(crate) fn not_relisted(&self, problem: String) {
        self.now.send_modify(|now| {
            let tools = Arc::make_mut(&mut now.tools);
            tools.problems.clear();
            tools.problems.push(problem);
        });
    }

    pub(crate) fn failed(&self, reason: Reason) {
        tracing::warn!(server = self.config.name, %reason, "an MCP server failed");
        self.gone(ServerState::Failed, Some(reason));
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
        });
        if had_tools {
            self.tools_changed();
        }
    }

    fn change(&self, change: impl FnOnce(&mut Now)) {
        self.now.send_modify(change);
        let now = self.now();
        self.tell(ToolHostChange::ServerState {
            server: self.config.name.clone(),
            state: now.state.as_str().to_owned(),
            reason: now.reason.map(|reason| reason.to_string()),
        });
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

    /// The group of the process that is about to be started.
    pub(crate) fn set_group(&self, group: ProcessGroup) {
        *self.lock_group() = group;
    }

    fn lock_group(&self) -> std::sync::MutexGuard<'_, ProcessGroup> {
        self.group.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
