//! The start of the servers of a run.

use std::{pin::pin, time::Duration};

use futures_util::StreamExt as _;
use jiff::Timestamp;
use switchboard_domain::{ModelId, ToolHost as _, Usage};
use switchboard_mcp_client::{HostError, McpHost, ServerState};
use switchboard_orchestration::{
    Outcome, RunError, RunErrorKind, RunEvent, RunEventKind, RunReport,
};
use uuid::Uuid;

use super::code_of;
use crate::{
    run_session::{
        context::Context,
        failure::{Code, Failure},
        interrupts::Interrupts,
        server_status::warn_of_changed_tools,
    },
    terminal::{Screen, output::Answer},
};

/// A run ended before its first step.
pub(crate) enum StartupFailure {
    Interrupted,
    Server(HostError),
}

/// Default time that a question waits for optional servers.
const STARTUP_WAIT: Duration = Duration::from_secs(5);

pub(crate) fn startup_wait(context: &Context) -> Duration {
    context.config.startup_wait.unwrap_or(STARTUP_WAIT)
}

/// Waits for the servers: without limit for required ones, at most `startup_wait` for the others.
/// Later ones are used from the next step on.
pub(crate) async fn ready(
    host: &McpHost,
    startup_wait: Duration,
    screen: &Screen,
    interrupts: &Interrupts,
) -> Result<(), StartupFailure> {
    screen.show_progress("starting MCP servers");
    let result = tokio::select! {
        () = interrupts.first() => Err(StartupFailure::Interrupted),
        ready = started(host, startup_wait) => ready.map_err(StartupFailure::Server),
    };
    screen.pause();
    if result.is_ok() {
        warn_of_changed_tools(host);
    }
    result
}

async fn started(host: &McpHost, startup_wait: Duration) -> Result<(), HostError> {
    let mut changes = host.changes();
    let mut settled = pin!(host.ready());
    if let Ok(ready) = tokio::time::timeout(startup_wait, settled.as_mut()).await {
        return ready;
    }
    let is_missing = || {
        let servers = host.servers();
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

impl StartupFailure {
    /// Reports the failure in the same form as the end of a run.
    pub(super) fn report(
        self,
        session_id: Option<String>,
        model: &ModelId,
        screen: &Screen,
        answer: &mut Answer,
    ) -> Result<Code, Failure> {
        let (outcome, error) = match self {
            Self::Interrupted => (Outcome::Cancelled, None),
            Self::Server(error) => {
                let error = RunError {
                    kind: RunErrorKind::ServerUnavailable,
                    message: error.to_string(),
                    provider: None,
                    status: None,
                    request_id: None,
                };
                (Outcome::Failed, Some(error))
            }
        };
        let run_id = Uuid::now_v7().to_string();
        let report = RunReport {
            run_id: run_id.clone(),
            session_id,
            model: model.clone(),
            answer: String::new(),
            content: Vec::new(),
            outcome,
            finish_reason: None,
            steps: 0,
            usage: Usage::default(),
            tool_calls: Vec::new(),
            warnings: Vec::new(),
            error,
        };
        let event = RunEvent {
            run_id: run_id.into(),
            seq: 1,
            time: Timestamp::now(),
            kind: RunEventKind::RunFinished {
                report: Box::new(report),
            },
        };
        answer.show(&event, screen)?;
        Ok(code_of(outcome))
    }
}
