//! Opens and closes what a run needs: MCP servers, the audit and the saved decisions.

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use switchboard_domain::{Elicitor, ToolHost as _};
use switchboard_mcp_client::{ClientHandlers, HostError, McpHost, ServerState};

use super::{
    context::{self, Context},
    failure::Failure,
    interrupts::Interrupts,
    rule_name_check,
    servers::{Servers, status::warn_of_changed_tools},
};
use crate::{
    models::current_model::CurrentModelSampler,
    observe::AuditLog,
    storage::{approval_decisions::SavedDecisions, sessions::OpenSessionStore},
    terminal::{Screen, print_warning},
};

/// Reason why a run ended before its first step.
pub(crate) enum StartupFailure {
    Interrupted,
    Server(HostError),
}

/// Default time that a question waits for optional servers that are still starting.
const STARTUP_WAIT: Duration = Duration::from_secs(5);

pub(crate) fn startup_wait_time(context: &Context) -> Duration {
    context.config.startup_wait.unwrap_or(STARTUP_WAIT)
}

/// What a run needs besides its agent: MCP servers, audit log and saved approval decisions.
pub(crate) struct RunResources {
    pub(crate) host: Arc<McpHost>,
    pub(crate) audit: AuditLog,
    pub(crate) decisions: SavedDecisions,
}

impl RunResources {
    /// Opens the audit and the decision file and starts the servers in the background. `sessions`
    /// is the store of the runs, if they are stored. Servers send elicitation requests to
    /// `elicitor` and sampling requests to `sampler`.
    pub(crate) fn start_resources(
        context: &Context,
        no_tools: bool,
        sessions: Option<&OpenSessionStore>,
        elicitor: Option<Arc<dyn Elicitor>>,
        sampler: CurrentModelSampler,
    ) -> Result<Self, Failure> {
        let mut servers = if no_tools {
            Servers::default()
        } else {
            context.servers_to_start()?
        };
        servers.options.client_handlers = ClientHandlers {
            elicitor,
            sampler: Some(Arc::new(sampler)),
            ..ClientHandlers::default()
        };
        let audit = AuditLog::open_audit(&context.config, &context.environment, sessions);
        let decisions = SavedDecisions::load_decisions(&context.environment);
        Ok(Self {
            audit: audit.map_err(Failure::usage_error)?,
            decisions: decisions.map_err(Failure::usage_error)?,
            host: Arc::new(context::start_servers(servers)?),
        })
    }

    /// Waits for required servers as long as necessary, and for optional servers at most
    /// `startup_wait`. If an optional server starts later, the run uses it from its next step on.
    pub(crate) async fn wait_for_servers(
        &self,
        context: &Context,
        screen: &Screen,
        interrupted: impl Future<Output = ()>,
    ) -> Result<(), StartupFailure> {
        screen.show_progress("starting MCP servers");
        let result = tokio::select! {
            () = interrupted => Err(StartupFailure::Interrupted),
            ready = wait_for_startup(&self.host, startup_wait_time(context)) => {
                ready.map_err(StartupFailure::Server)
            }
        };
        screen.remove_spinner();
        if result.is_ok() {
            warn_of_changed_tools(&self.host);
            rule_name_check::warn_about_unknown_names_in_rules(&context.config, &self.host).await;
        }
        result
    }

    /// Saves the approval decisions that are remembered. Prints an error as a warning, because the
    /// run has already ended.
    pub(crate) fn save_approval_decisions(&self) {
        if let Err(error) = self.decisions.save_decisions() {
            print_warning(&format!("failed to save your approval decisions: {error}"));
        }
    }

    /// Saves the approval decisions, closes the MCP servers and writes the last audit records to
    /// disk.
    pub(crate) async fn close_resources(&self, interrupts: &Interrupts) {
        self.save_approval_decisions();
        tokio::join!(
            context::close_servers(&self.host, interrupts),
            self.audit.flush_audit_log()
        );
    }
}

async fn wait_for_startup(host: &McpHost, startup_wait: Duration) -> Result<(), HostError> {
    let mut changes = host.watch_changes();
    let mut settled = pin!(host.wait_until_ready());
    if let Ok(ready) = tokio::time::timeout(startup_wait, settled.as_mut()).await {
        return ready;
    }
    let is_missing = || {
        let servers = host.server_statuses();
        let mut required = servers.iter().filter(|server| server.required);
        required.any(|server| server.state == ServerState::Starting)
    };
    while is_missing() {
        tokio::select! {
            ready = settled.as_mut() => return ready,
            Some(_) = changes.next() => {}
        }
    }
    Ok(())
}
