//! The engine of the HTTP server, which provides agents, models, recipes and servers.

mod agent_cache;
mod run_observer;
mod run_parameters;

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::future::{BoxFuture, FutureExt as _, Shared};
use serde_json::Value;
use switchboard_domain::{
    ModelCapabilities, ModelId, Principal, SessionId, SessionStoreError, StoredAuditRecord,
    ToolCatalog,
};
use switchboard_mcp_client::McpHost;
use switchboard_orchestration::{Agent, policy::limits::SharedCallRates, questions::Questions};
use switchboard_server::{
    Engine, ModelInfo, RecipeInfo, RunEventObserver, RunSettings, RunSettingsError, ToolPage,
};

use crate::{
    observe::AuditLog,
    run_session::{
        agent::AgentArgs, context::Context, recording::RecordingMode, rule_name_check,
        run_resources::startup_wait_time, servers::status::describe_unavailable_server,
    },
    storage::{approval_decisions::SavedDecisions, recipes},
    terminal::{self, to_one_line},
};
use agent_cache::AgentCache;
use run_observer::RunObserver;
pub(crate) use run_parameters::apply_client_parameters;

/// Implementation of [`Engine`] that creates the agents for requests to the HTTP server.
pub(crate) struct AppEngine {
    pub(crate) parts: EngineParts,
    /// Number of runs started so far, from which each run gets its name in a recording.
    started_runs: AtomicU64,
    agents: AgentCache,
    /// Future that completes when all MCP servers have started or the configured `startup_wait` has
    /// passed.
    settled: Shared<BoxFuture<'static, ()>>,
}

/// Components of [`AppEngine`] that the command `serve` creates.
pub(crate) struct EngineParts {
    /// Loaded configuration. The option `--record` does not change `context.recording`.
    pub(crate) context: Context,
    /// Recording mode of the runs. Without the option `--record`, it equals `context.recording`.
    pub(crate) recording: RecordingMode,
    /// Options of the command line, which the parameters of a request may override.
    pub(crate) args: AgentArgs,
    pub(crate) host: Arc<McpHost>,
    /// Tool host without MCP servers, for runs without tools.
    pub(crate) no_host: Arc<McpHost>,
    pub(crate) questions: Questions,
    pub(crate) call_rates: SharedCallRates,
    pub(crate) decisions: Arc<SavedDecisions>,
    pub(crate) audit: AuditLog,
}

impl AppEngine {
    pub(crate) fn new(parts: EngineParts) -> Self {
        let startup_wait = startup_wait_time(&parts.context);
        let host = Arc::clone(&parts.host);
        let settled = async move {
            // A time-out is ignored. If a server starts later, a run uses it from its next step on.
            let _ = tokio::time::timeout(startup_wait, host.wait_for_startup()).await;
        };
        Self {
            parts,
            started_runs: AtomicU64::new(0),
            agents: AgentCache::default(),
            settled: settled.boxed().shared(),
        }
    }

    /// Warns about rules that match no server or tool, after the servers had time to start.
    pub(crate) async fn warn_about_unknown_names_in_rules(&self) {
        self.settled.clone().await;
        let config = &self.parts.context.config;
        rule_name_check::warn_about_unknown_names_in_rules(config, &self.parts.host).await;
    }

    /// Prints and logs one line for each MCP server after all servers have started or failed: its
    /// transport and the number of its tools, or the error.
    pub(crate) async fn report_servers(&self) {
        self.parts.host.wait_for_startup().await;
        for status in self.parts.host.server_statuses() {
            let (name, tools, transport) = (&status.name, status.tools, &status.transport);
            if status.state.takes_calls() {
                let text = format!("server `{name}` is connected with {tools} tools ({transport})");
                tracing::info!("{text}");
                terminal::print_note(&to_one_line(&text, 400));
            } else {
                let text = format!("{} ({transport})", describe_unavailable_server(&status));
                tracing::warn!("{text}");
                terminal::print_warning(&to_one_line(&text, 400));
            }
        }
    }

    /// Returns the model for requests that name no model. `None` if no model is available.
    async fn default_model(&self) -> Option<ModelId> {
        let model = self.parts.args.model.as_deref();
        let chosen = self.parts.context.choose_model(model).await;
        Some(chosen.ok()?.model.id().clone())
    }

    /// Returns an error message if a required server does not accept calls.
    fn missing_server_error(&self) -> Option<String> {
        let mut servers = self.parts.host.server_statuses().into_iter();
        let missing = servers.find(|it| it.required && !it.state.takes_calls())?;
        let problem = describe_unavailable_server(&missing);
        Some(format!("required {problem}"))
    }
}

#[async_trait]
impl Engine for AppEngine {
    // The principal and the session are unused: the run inserts them into its context values, for
    // placeholders such as `${session.id}`.
    async fn create_agent(
        &self,
        settings: &RunSettings,
        _: &Principal,
        _: Option<&SessionId>,
    ) -> Result<Agent, RunSettingsError> {
        self.settled.clone().await;
        if let Some(message) = self.missing_server_error() {
            return Err(RunSettingsError::Unavailable {
                message,
                retry_after: Some(Duration::from_secs(5)),
            });
        }
        self.find_or_create_agent(settings).await
    }

    async fn available_models(&self) -> Vec<ModelInfo> {
        let default = self.default_model().await;
        let model_info = |id: &ModelId, capabilities: &ModelCapabilities| ModelInfo {
            default: default.as_ref() == Some(id),
            tools: capabilities.tools.unwrap_or(true),
            images: capabilities.images.unwrap_or(false),
            context_window: capabilities.context_window,
            max_output_tokens: capabilities.max_output_tokens,
            ..ModelInfo::from_model_id(id)
        };
        if let Some(recorded) = self.parts.recording.recorded_models() {
            let recorded = recorded.iter();
            return recorded.map(|(id, it)| model_info(id, it)).collect();
        }
        let providers = &self.parts.context.providers;
        let mut models = Vec::new();
        for provider in providers.iter() {
            let ready = providers.has_access(provider);
            for (name, capabilities) in provider.known_models() {
                let entry = provider.find_catalogue_entry(&name);
                let prices = entry.as_ref().map(|entry| &entry.prices);
                models.push(ModelInfo {
                    ready,
                    input_price: prices.and_then(|prices| prices.input),
                    output_price: prices.and_then(|prices| prices.output),
                    ..model_info(&ModelId::new(&*provider.name, &*name), &capabilities)
                });
            }
        }
        // The default model is added to the list, because the model list of its provider may not
        // contain it.
        if let Some(id) = default
            && !models.iter().any(|model| model.default)
        {
            models.insert(0, ModelInfo::from_model_id(&id));
        }
        models
    }

    async fn available_recipes(&self) -> Vec<RecipeInfo> {
        let environment = self.parts.context.environment.clone();
        let listed = tokio::task::spawn_blocking(move || recipes::list_recipes(&environment)).await;
        let entries = match listed {
            Ok(Ok(entries)) => entries,
            Ok(Err(error)) => {
                tracing::warn!(%error, "failed to list the recipes");
                return Vec::new();
            }
            Err(_) => return Vec::new(),
        };
        let good = entries.into_iter().filter_map(|entry| {
            let recipe = entry.recipe.ok()?.recipe;
            Some(RecipeInfo {
                name: entry.name,
                title: recipe.title,
                description: recipe.description,
                model: recipe.model,
            })
        });
        good.collect()
    }

    async fn mcp_server_states(&self) -> Vec<Value> {
        let statuses = self.parts.host.server_statuses();
        let values = statuses.iter().map(serde_json::to_value);
        values.filter_map(Result::ok).collect()
    }

    async fn tool_catalog(&self) -> ToolCatalog {
        self.settled.clone().await;
        self.parts.recording.list_tools(&self.parts.host).await
    }

    async fn list_tool_ui_pages(&self) -> Vec<ToolPage> {
        let mut pages = Vec::new();
        for server in self.parts.host.server_statuses() {
            if !server.state.takes_calls() {
                continue;
            }
            // An error means that the server does not provide MCP app pages, so the server is
            // skipped.
            let Ok(apps) = self.parts.host.list_apps(&server.name).await else {
                continue;
            };
            pages.extend(apps.items.into_iter().map(|app| ToolPage {
                server: server.name.clone(),
                tool: app.tool,
                uri: app.uri,
            }));
        }
        pages
    }

    async fn read_tool_ui_page(&self, server: &str, uri: &str) -> Result<String, String> {
        let page = self.parts.host.read_app(server, uri).await;
        page.map(|page| page.html)
            .map_err(|error| error.to_string())
    }

    async fn check_readiness(&self) -> Result<(), String> {
        self.missing_server_error().map_or(Ok(()), Err)
    }

    fn is_model_available(&self, model: &ModelId) -> bool {
        if let Some(recorded) = self.parts.recording.recorded_models() {
            return recorded.iter().any(|(id, _)| id == model);
        }
        let id = model.to_string();
        let configured = [&self.parts.args.model, &self.parts.context.config.model];
        if configured.into_iter().flatten().any(|name| *name == id) {
            return true;
        }
        let providers = &self.parts.context.providers;
        providers.get(&model.provider).is_some_and(|provider| {
            // The catalogue lookup also accepts aliases. Only an entry whose name equals the name
            // of `model` counts.
            let entry = provider.find_catalogue_entry(&model.name);
            let known = || provider.known_models().into_iter();
            entry.is_some_and(|entry| entry.name == &*model.name)
                || known().any(|(name, _)| name == *model.name)
        })
    }

    fn pending_questions(&self) -> Option<&Questions> {
        Some(&self.parts.questions)
    }

    fn forget_session_approvals(&self, principal: &Principal, session: &str) {
        let decisions = &self.parts.decisions.shared;
        decisions
            .change_decisions(|decisions| decisions.forget_session_decisions(principal, session));
    }

    async fn list_audit_records(
        &self,
        owner: &Principal,
        before: &str,
        limit: u32,
    ) -> Result<Vec<StoredAuditRecord>, SessionStoreError> {
        let audit = &self.parts.audit;
        audit.list_stored_records(owner, before, limit).await
    }

    fn create_run_observer(
        &self,
        principal: &Principal,
        session: Option<&str>,
    ) -> Option<Box<dyn RunEventObserver>> {
        let (session, owner) = (session.map(str::to_owned), Some(principal.clone()));
        let recorder = self.parts.audit.create_run_recorder(session, owner);
        Some(Box::new(RunObserver {
            recorder,
            decisions: Arc::clone(&self.parts.decisions),
        }))
    }
}
