//! Detects state changes of MCP servers, and lets servers ask the user only during a run.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use switchboard_domain::{Elicitation, ElicitationAnswer, Elicitor};
use switchboard_mcp_client::{McpHost, ServerState, ServerStatus};

use crate::{
    run_session::servers::status::changed_tools_warning,
    terminal::{TerminalElicitor, to_one_line},
};

/// States of the MCP servers at the last check, for comparison with the current states.
#[derive(Debug, Default)]
pub(super) struct ServerStateTracker {
    states: BTreeMap<String, (ServerState, usize)>,
    /// Number of tools whose definition differs from the stored definition, by server name.
    redefined: BTreeMap<String, usize>,
}

/// A message to the user about a state change of an MCP server.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ServerChange {
    pub(super) text: String,
    /// `true` if the change is a problem, which is printed as a warning.
    pub(super) worse: bool,
}

impl ServerStateTracker {
    pub(super) fn from_host(host: &McpHost) -> Self {
        let mut watched = Self::default();
        watched.collect_changes(&host.server_statuses());
        watched
    }

    /// Returns the total number of tools of ready servers, and the number of these servers.
    pub(super) fn count_tools_and_servers(host: &McpHost) -> (usize, usize) {
        let ready = host.server_statuses().into_iter();
        let ready = ready.filter(|status| status.state.takes_calls());
        ready.fold((0, 0), |(tools, servers), status| {
            (tools + status.tools, servers + 1)
        })
    }

    /// Compares `now` with the stored states, stores `now`, and returns a message for each change.
    pub(super) fn collect_changes(&mut self, now: &[ServerStatus]) -> Vec<ServerChange> {
        let mut changes = Vec::new();
        for status in now {
            let count = status.changed_tools.len();
            let before = self.redefined.insert(status.name.clone(), count);
            if count > before.unwrap_or_default()
                && let Some(text) = changed_tools_warning(&status.name, &status.changed_tools)
            {
                changes.push(ServerChange { text, worse: true });
            }
            let state = (status.state, status.tools);
            let before = self.states.insert(status.name.clone(), state);
            if before == Some(state) {
                continue;
            }
            let name = to_one_line(&status.name, 64);
            let works = status.state.takes_calls();
            let reason = status.reason.as_deref().unwrap_or_default();
            let shown = status.state.as_str();
            let text = match before {
                Some((_, tools)) if works && tools != status.tools => {
                    format!("{name}: {shown}, {} tools", status.tools)
                }
                _ if reason.is_empty() => format!("{name}: {shown}"),
                _ => format!("{name}: {shown} ({})", to_one_line(reason, 200)),
            };
            changes.push(ServerChange {
                text,
                worse: !works && status.state != ServerState::Starting,
            });
        }
        changes
    }
}

/// Elicitor that passes elicitation requests of MCP servers to the user while a run is in progress.
/// At other times, it cancels them, because the prompt for the next question uses the terminal.
pub(super) struct DuringRunElicitor {
    pub(super) elicitor: TerminalElicitor,
    pub(super) is_running: Arc<AtomicBool>,
}

#[async_trait]
impl Elicitor for DuringRunElicitor {
    async fn elicit(&self, elicitation: &Elicitation) -> ElicitationAnswer {
        if !self.is_running.load(Ordering::Relaxed) {
            return ElicitationAnswer::Cancel;
        }
        self.elicitor.elicit(elicitation).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(state: ServerState, tools: usize, changed: &[&str]) -> ServerStatus {
        ServerStatus {
            name: "crm".into(),
            state,
            reason: (state == ServerState::Failed).then(|| "it ended".into()),
            protocol_version: None,
            server_info: None,
            instructions: None,
            tools,
            app_tools: 0,
            lists: Vec::new(),
            warnings: Vec::new(),
            changed_tools: changed.iter().map(|tool| (*tool).to_owned()).collect(),
            pid: None,
            stderr_tail: Vec::new(),
            logs: Vec::new(),
            transport: "stdio".into(),
            required: false,
        }
    }

    #[test]
    fn a_state_change_of_a_server_is_printed_once() {
        let mut watched = ServerStateTracker::default();
        let mut changes_of = |now: ServerStatus| -> Vec<(String, bool)> {
            let changes = watched.collect_changes(&[now]).into_iter();
            changes.map(|change| (change.text, change.worse)).collect()
        };
        let ready = |tools| status(ServerState::Ready, tools, &[]);
        assert_eq!(changes_of(ready(2)), [("crm: ready".to_owned(), false)]);
        assert_eq!(changes_of(ready(2)), []);
        assert_eq!(
            changes_of(ready(3)),
            [("crm: ready, 3 tools".to_owned(), false)]
        );
        let failed = status(ServerState::Failed, 0, &[]);
        assert_eq!(
            changes_of(failed.clone()),
            [("crm: failed (it ended)".to_owned(), true)]
        );
        assert_eq!(changes_of(failed), []);
        assert!(!changes_of(status(ServerState::Starting, 0, &[]))[0].1);
        let changed = changes_of(status(ServerState::Starting, 0, &["pay"]));
        assert!(changed[0].1 && changed[0].0.contains("`pay` of server `crm` has changed"));
        assert_eq!(changes_of(status(ServerState::Starting, 0, &["pay"])), []);
    }
}
