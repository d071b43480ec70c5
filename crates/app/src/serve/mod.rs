//! What the HTTP server has of the application: agents for wishes, and what there is to choose from.

mod agents;
mod watch;
mod wish;

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::future::{BoxFuture, FutureExt as _, Shared};
use serde_json::Value;
use switchboard_domain::{ModelId, Principal, SessionId, ToolCatalog, ToolHost};
use switchboard_mcp_client::McpHost;
use switchboard_orchestration::{Agent, questions::Questions};
use switchboard_server::{Engine, ModelInfo, Observer, RecipeInfo, ToolPage, Wish, WishError};

use crate::{
    cli::{agent::AgentArgs, context::Context, unmatched},
    decisions::KeptDecisions,
    model::Readiness,
    observe::AuditLog,
    recipes,
    tape::Tape,
};
use agents::Agents;
use watch::Watch;
pub(crate) use wish::apply;

/// How long the first run waits for servers, if the configuration does not say it.
const STARTUP_WAIT: Duration = Duration::from_secs(5);

/// The application as the server sees it.
pub(crate) struct AppEngine {
    context: Context,
    /// Where all runs are recorded, or had again from.
    tape: Tape,
    /// How many runs were begun, to tell them in a recording.
    begun: AtomicU64,
    /// What the command line says; a wish comes on top.
    args: AgentArgs,
    host: Arc<McpHost>,
    /// A host without tools, for those who want none.
    no_host: Arc<McpHost>,
    questions: Questions,
    decisions: Arc<KeptDecisions>,
    audit: AuditLog,
    agents: Agents,
    /// Servers had their time to come up.
    settled: Shared<BoxFuture<'static, ()>>,
}

/// What the engine is made of.
pub(crate) struct Parts {
    /// Without a recording that is made: that is in `tape` alone, since each run has a part of its own.
    pub(crate) context: Context,
    pub(crate) tape: Tape,
    pub(crate) args: AgentArgs,
    pub(crate) host: Arc<McpHost>,
    pub(crate) no_host: Arc<McpHost>,
    pub(crate) questions: Questions,
    pub(crate) decisions: KeptDecisions,
    pub(crate) audit: AuditLog,
}

impl AppEngine {
    pub(crate) fn new(parts: Parts) -> Self {
        let patience = parts.context.config.startup_wait.unwrap_or(STARTUP_WAIT);
        let host = Arc::clone(&parts.host);
        let settled = async move {
            // Those that take longer are offered from the next step on.
            let _ = tokio::time::timeout(patience, host.settled()).await;
        };
        Self {
            context: parts.context,
            tape: parts.tape,
            begun: AtomicU64::new(0),
            args: parts.args,
            host: parts.host,
            no_host: parts.no_host,
            questions: parts.questions,
            decisions: Arc::new(parts.decisions),
            audit: parts.audit,
            agents: Agents::default(),
            settled: settled.boxed().shared(),
        }
    }

    pub(crate) fn decisions(&self) -> &KeptDecisions {
        &self.decisions
    }

    pub(crate) fn audit(&self) -> &AuditLog {
        &self.audit
    }

    /// Warns of rules that match nothing, once servers had their time to start.
    pub(crate) async fn warn_of_unmatched_rules(&self) {
        self.settled.clone().await;
        unmatched::warn(&self.context.config.run, &self.host).await;
    }

    pub(crate) fn host(&self) -> &Arc<McpHost> {
        &self.host
    }

    /// The model that is asked where nobody names one.
    async fn default_model(&self) -> Option<ModelId> {
        let chosen = self.context.choose_model(self.args.model.as_deref()).await;
        Some(chosen.ok()?.model.id().clone())
    }

    /// The tools there are now; those that were recorded where a recording is had again.
    async fn catalog(&self) -> ToolCatalog {
        match &self.tape {
            tape @ Tape::Replay(_) => tape.tools(Arc::clone(&self.host) as _).tools().await,
            Tape::Off | Tape::Recording(_) => self.host.tools().await,
        }
    }

    /// A server that is required and takes no calls.
    fn missing(&self) -> Option<String> {
        let servers = self.host.servers().into_iter();
        let mut missing = servers.filter(|it| it.required && !it.state.takes_calls());
        missing.next().map(|status| {
            let reason = status
                .reason
                .unwrap_or_else(|| "it is not up yet".to_owned());
            let (name, state) = (status.name, status.state.as_str());
            format!("server `{name}` is required and {state}: {reason}")
        })
    }
}

#[async_trait]
impl Engine for AppEngine {
    // Placeholders of the context are filled by each run, from its own session and principal.
    async fn agent(
        &self,
        wish: &Wish,
        _: &Principal,
        _: Option<&SessionId>,
    ) -> Result<Agent, WishError> {
        self.settled.clone().await;
        if let Some(message) = self.missing() {
            return Err(WishError::Unavailable {
                message,
                retry_after: Some(Duration::from_secs(5)),
            });
        }
        self.agent_for(wish).await
    }

    async fn models(&self) -> Vec<ModelInfo> {
        let default = self.default_model().await;
        if let Some(recorded) = self.tape.models() {
            let recorded = recorded.into_iter();
            let models = recorded.map(|(id, capabilities)| ModelInfo {
                default: default.as_ref() == Some(&id),
                tools: capabilities.tools.unwrap_or(true),
                images: capabilities.images.unwrap_or(false),
                context_window: capabilities.context_window,
                max_output_tokens: capabilities.max_output_tokens,
                ..ModelInfo::unknown(&id)
            });
            return models.collect();
        }
        let providers = &self.context.providers;
        let mut models = Vec::new();
        for provider in providers.iter() {
            let ready = !matches!(providers.readiness(provider), Readiness::KeyMissing(_));
            for (name, capabilities) in providers.known_models(provider) {
                let entry = provider.catalogued(&name);
                let prices = entry.as_ref().map(|entry| &entry.prices);
                let id = ModelId::new(&*provider.name, &*name);
                models.push(ModelInfo {
                    default: default.as_ref() == Some(&id),
                    id: id.to_string(),
                    provider: provider.name.clone(),
                    name,
                    ready,
                    tools: capabilities.tools.unwrap_or(true),
                    images: capabilities.images.unwrap_or(false),
                    context_window: capabilities.context_window,
                    max_output_tokens: capabilities.max_output_tokens,
                    input_price: prices.and_then(|prices| prices.input),
                    output_price: prices.and_then(|prices| prices.output),
                });
            }
        }
        // One that is configured, or that a local server has, need not be among those that are known.
        if let Some(id) = default
            && !models.iter().any(|model| model.default)
        {
            models.insert(0, ModelInfo::unknown(&id));
        }
        models
    }

    async fn recipes(&self) -> Vec<RecipeInfo> {
        let environment = self.context.environment.clone();
        let listed = tokio::task::spawn_blocking(move || recipes::list(&environment)).await;
        let entries = match listed {
            Ok(Ok(entries)) => entries,
            Ok(Err(error)) => {
                tracing::warn!(%error, "the recipes cannot be listed");
                return Vec::new();
            }
            Err(_) => return Vec::new(),
        };
        let good = entries.into_iter().filter_map(|entry| {
            let recipe = entry.recipe.ok()?;
            Some(RecipeInfo {
                name: entry.name,
                title: recipe.title,
                description: recipe.description,
                model: recipe.model,
            })
        });
        good.collect()
    }

    async fn servers(&self) -> Vec<Value> {
        let statuses = self.host.servers();
        let values = statuses.iter().map(serde_json::to_value);
        values.filter_map(Result::ok).collect()
    }

    async fn tools(&self) -> ToolCatalog {
        self.settled.clone().await;
        self.catalog().await
    }

    async fn tool_pages(&self) -> Vec<ToolPage> {
        let mut pages = Vec::new();
        for server in self.host.servers() {
            if !server.state.takes_calls() {
                continue;
            }
            // One that cannot say has none that could be shown.
            let Ok(apps) = self.host.apps(&server.name).await else {
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

    async fn read_tool_page(&self, server: &str, uri: &str) -> Result<String, String> {
        let page = self.host.read_app(server, uri).await;
        page.map(|page| page.html)
            .map_err(|error| error.to_string())
    }

    async fn readiness(&self) -> Result<(), String> {
        self.missing().map_or(Ok(()), Err)
    }

    fn knows_model(&self, model: &ModelId) -> bool {
        if let Some(recorded) = self.tape.models() {
            return recorded.iter().any(|(id, _)| id == model);
        }
        let id = model.to_string();
        let configured = [&self.args.model, &self.context.config.model];
        if configured.into_iter().flatten().any(|name| *name == id) {
            return true;
        }
        let providers = &self.context.providers;
        providers.get(&model.provider).is_some_and(|provider| {
            // The catalogue finds a model under more names than it has.
            let entry = provider.catalogued(&model.name);
            let known = || providers.known_models(provider).into_iter();
            entry.is_some_and(|entry| entry.name == &*model.name)
                || known().any(|(name, _)| name == *model.name)
        })
    }

    fn questions(&self) -> Option<&Questions> {
        Some(&self.questions)
    }

    fn forget(&self, principal: &Principal, session: &str) {
        let decisions = &self.decisions.shared;
        decisions.change(|decisions| decisions.forget_session(principal, session));
    }

    fn observer(&self, principal: &Principal, session: Option<&str>) -> Option<Box<dyn Observer>> {
        let recorder = self
            .audit
            .run(session.map(str::to_owned), Some(principal.clone()));
        Some(Box::new(Watch::new(recorder, Arc::clone(&self.decisions))))
    }
}
