//! Creates the agents for the conversations of an evaluation.

use std::{collections::HashMap, sync::Arc};

use async_trait::async_trait;
use serde_json::{Map, Value};
use switchboard_domain::{
    ChatModel, ModelId, ToolCall, ToolCallError, ToolCatalog, ToolHost, ToolHostChanges,
    ToolOutput, Usage, redact::Redactor,
};
use switchboard_evals::runner::{Conversation, EvalEngine};
use switchboard_mcp_client::McpHost;
use switchboard_orchestration::{
    Agent, RunEvent, RunEventKind, ToolCallRecord, recipe::Recipe, strategy::Strategy,
    tools::arguments::ContextInjection,
};
use switchboard_server::Parameters;
use uuid::Uuid;

use super::{
    suite_files::SuiteFileToolHost,
    suite_servers::{Closing, StartedServers, SuiteServerSettings},
};
use crate::{
    models::{ChosenModel, ModelChoiceReason, Provider, find_list_price},
    observe::{AuditLog, AuditRecorder},
    run_session::{
        agent::AgentArgs,
        context::{self, Context},
        interrupts::Interrupts,
        recording::RecordingMode,
    },
    serve::apply_client_parameters,
    storage::approval_decisions::SavedDecisions,
};

/// Engine that creates the agents and servers for the conversations of an evaluation.
pub(crate) struct Evaluator<'c> {
    pub(crate) context: &'c Context,
    /// Agent options of the command line, which apply to all conversations.
    pub(crate) args: AgentArgs,
    /// Models to evaluate, by id. Empty in a replay, whose models are in the recording.
    pub(crate) models: HashMap<ModelId, Arc<dyn ChatModel>>,
    /// Recipes of the suite and its scenarios, by name.
    pub(crate) recipes: HashMap<String, Arc<Recipe>>,
    pub(crate) recording: RecordingMode,
    /// MCP servers of all conversations that do not start their own servers.
    pub(crate) shared: Arc<StartedServers>,
    /// Tool host without MCP servers, for agents without tools.
    pub(crate) nothing: Arc<McpHost>,
    pub(crate) blueprint: SuiteServerSettings,
    /// Values of the tool arguments that the host fills in and models do not see.
    pub(crate) injected: ContextInjection,
    pub(crate) decisions: SavedDecisions,
    pub(crate) audit: AuditLog,
    pub(crate) redactor: Redactor,
    pub(crate) background: EvalBackgroundTasks,
}

/// Background work of an evaluation: the tasks that close the MCP servers of finished
/// conversations, and the audit recorders of the current runs.
#[derive(Default)]
pub(crate) struct EvalBackgroundTasks {
    closing: Closing,
    /// Audit recorders of the current runs, by run id.
    audits: tokio::sync::Mutex<HashMap<Arc<str>, AuditRecorder>>,
}

impl Evaluator<'_> {
    /// Closes the MCP servers and writes the last audit records. A second interruption by the user
    /// kills the servers.
    pub(crate) async fn close_servers(&self, interrupts: &Interrupts) {
        let closing = &self.background.closing;
        let closing = closing.lock().map(|mut tasks| std::mem::take(&mut *tasks));
        let mut closing = closing.unwrap_or_default();
        tokio::select! {
            biased;
            // Aborting the tasks drops the servers, which kills their processes.
            () = interrupts.wait_for_second_interruption() => closing.abort_all(),
            () = async { while closing.join_next().await.is_some() {} } => {}
        }
        context::close_servers(&self.shared.host, interrupts).await;
        self.audit.flush_audit_log().await;
    }

    /// Returns the part of the recording that belongs to one conversation.
    fn conversation_recording(&self, settings: &Conversation<'_>) -> RecordingMode {
        self.recording.select_conversation(&format!(
            "{} · {} · {}",
            settings.scenario.name, settings.model, settings.repetition
        ))
    }

    fn conversation_model(
        &self,
        settings: &Conversation<'_>,
        recording: &RecordingMode,
    ) -> Result<Arc<dyn ChatModel>, String> {
        let found = self.models.get(settings.model);
        let model = found.ok_or_else(|| format!("unknown model {}", settings.model))?;
        Ok(recording.wrap_model(Arc::clone(model)))
    }

    /// Returns the tools of a conversation: the tools that the scenario declares, or the tools of
    /// MCP servers. If the scenario sets `fresh_servers`, starts new servers for this conversation.
    /// Returns an error if a server that the scenario names does not accept calls.
    async fn start_conversation_tools(
        &self,
        settings: &Conversation<'_>,
        recording: &RecordingMode,
    ) -> Result<Arc<dyn ToolHost>, String> {
        if let Some(declared) = settings.declared_tools() {
            return Ok(declared);
        }
        if !recording.is_replay() && !settings.scenario.fresh_servers {
            let mut named = settings.servers.into_iter().flatten();
            if let Some(why) = named.find_map(|name| self.shared.unavailable_reason(name)) {
                return Err(why);
            }
        }
        let started = if settings.scenario.fresh_servers && !recording.is_replay() {
            Arc::new(self.start_fresh_servers().await?)
        } else {
            Arc::clone(&self.shared)
        };
        let host: Arc<dyn ToolHost> = Arc::new(SuiteFileToolHost(started));
        // The tools of all servers are recorded. `SelectedServersToolHost` then hides the tools of
        // the servers that the scenario does not name.
        let host = recording.wrap_tools(host);
        Ok(match settings.servers {
            None => host,
            Some(servers) => Arc::new(SelectedServersToolHost {
                host,
                servers: servers.to_vec(),
            }),
        })
    }

    /// Starts the MCP servers of the suite again, for one conversation only.
    async fn start_fresh_servers(&self) -> Result<StartedServers, String> {
        let started = self.blueprint.start_servers(self.context);
        let mut started = started.map_err(|failure| format!("{:#}", failure.error))?;
        started.closing = Some(Arc::clone(&self.background.closing));
        let ready = started.host.wait_until_ready().await;
        ready.map_err(|error| error.to_string())?;
        Ok(started)
    }
}

#[async_trait]
impl EvalEngine for Evaluator<'_> {
    async fn create_agent(&self, settings: Conversation<'_>) -> Result<Agent, String> {
        let recording = self.conversation_recording(&settings);
        let chosen = ChosenModel {
            model: self.conversation_model(&settings, &recording)?,
            reason: ModelChoiceReason::Named,
        };
        let recipe = match settings.recipe {
            None => None,
            Some(name) => {
                let found = self.recipes.get(name).cloned();
                Some(found.ok_or_else(|| format!("unknown recipe `{name}`"))?)
            }
        };
        let parameters = parse_parameters(settings.parameters)?;
        // The plan has no fallback models, because their calls would count as calls of the
        // evaluated model.
        let plan = self
            .args
            .build_agent_plan(self.context, recipe, chosen, Vec::new());
        let mut plan = plan.map_err(|failure| failure.error.to_string())?;
        apply_client_parameters(&parameters, &mut plan.options);
        // The user who starts a suite approves the tool calls of its conversations.
        plan.options.approval.approved_in_advance = true;
        if self.args.answers.max_steps.is_none()
            && let Some(steps) = parameters.max_steps
        {
            // The user starts the suite, so the suite may raise the configured step limit.
            plan.options.limits.max_steps = steps;
        }
        if !settings.scenario.tools.is_empty() && self.args.answers.strategy.is_none() {
            // A scenario with declared tools scores only the tool calls, so the agent uses a plain
            // tool loop instead of the recipe's strategy.
            plan.options.strategy = Strategy::Loop;
        }
        let without = plan.no_tools || parameters.tools == Some(false);
        // Bundled servers store separate data for each conversation id. All turns of this
        // conversation have the same id, which no other conversation has.
        let conversation = Uuid::now_v7().to_string();
        let agent = plan
            .build_agent(self.context, &self.nothing, &self.decisions)
            .with_context_injection(self.injected.clone().with_default_session(conversation));
        if without {
            return Ok(agent);
        }
        Ok(agent.with_tools(self.start_conversation_tools(&settings, &recording).await?))
    }

    fn response_cost(&self, model: &ModelId, usage: &Usage) -> Option<f64> {
        let provider = self.context.providers.get(&model.provider);
        if provider.is_some_and(Provider::runs_in_process) {
            return Some(0.0);
        }
        let cost = find_list_price(model)?.compute_cost(usage);
        // Tools that the provider runs, such as a web search, have no list price. The cost of a
        // response that used them is therefore unknown.
        (cost.unpriced_requests == 0).then_some(cost.usd)
    }

    fn report_redactor(&self) -> Redactor {
        self.redactor.clone()
    }

    fn is_input_redacted(&self, settings: &Conversation<'_>, call: &ToolCallRecord) -> bool {
        match self.conversation_recording(settings) {
            RecordingMode::Replay(player) => player.is_input_redacted(&call.id),
            RecordingMode::Off | RecordingMode::Recording(_) => false,
        }
    }

    async fn observe_event(&self, event: &RunEvent) {
        let mut audits = self.background.audits.lock().await;
        let recorder = audits
            .entry(Arc::clone(&event.run_id))
            .or_insert_with(|| self.audit.create_run_recorder(None, None));
        recorder.record_event(event).await;
        if matches!(event.kind, RunEventKind::RunFinished { .. }) {
            audits.remove(&event.run_id);
        }
    }
}

pub(crate) fn parse_parameters(fields: &Map<String, Value>) -> Result<Parameters, String> {
    serde_json::from_value(Value::Object(fields.clone())).map_err(|error| error.to_string())
}

/// A tool host that shows models only the tools of selected MCP servers.
struct SelectedServersToolHost {
    host: Arc<dyn ToolHost>,
    servers: Vec<String>,
}

#[async_trait]
impl ToolHost for SelectedServersToolHost {
    async fn list_tools(&self) -> ToolCatalog {
        let mut catalog = self.host.list_tools().await;
        let is_ours = |server: &String| self.servers.contains(server);
        catalog.tools.retain(|tool| {
            let origin = tool.origin.as_ref();
            origin.is_some_and(|origin| is_ours(&origin.server))
        });
        catalog.problems.retain(|problem| is_ours(&problem.server));
        catalog
    }

    async fn call_tool(&self, call: ToolCall) -> Result<ToolOutput, ToolCallError> {
        self.host.call_tool(call).await
    }

    fn watch_changes(&self) -> ToolHostChanges {
        self.host.watch_changes()
    }
}
