//! Agents for the conversations of an evaluation.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use serde_json::{Map, Value};
use switchboard_domain::{
    ApprovalDecision, ApprovalRequest, Approver, ChatModel, ModelId, ToolCall, ToolCallError,
    ToolCatalog, ToolHost, ToolHostChanges, ToolOutput, Usage,
};
use switchboard_evals::{
    recording::Scrubber,
    run::{Engine, Wish},
};
use switchboard_mcp_client::McpHost;
use switchboard_orchestration::{
    Agent, RunEvent, RunEventKind, ToolCallRecord, recipe::Recipe, strategy::Strategy,
    tools::arguments::ContextInjection,
};
use switchboard_server::Parameters;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::servers::{Blueprint, Started};
use crate::{
    cli::{
        agent::{AgentArgs, AgentParts},
        context::{self, Context},
        interrupt::Interrupts,
    },
    decisions::KeptDecisions,
    model::{Because, Chosen, Provider, list_price},
    observe::{AuditLog, Recorder},
    serve::apply,
    tape::Tape,
};

/// What conversations are had with.
pub(crate) struct Evaluator<'c> {
    pub(crate) context: &'c Context,
    /// What the command line says of every run.
    pub(crate) args: AgentArgs,
    /// Those that are asked. None where a recording answers.
    pub(crate) models: HashMap<ModelId, Arc<dyn ChatModel>>,
    /// Those that scenarios name.
    pub(crate) recipes: HashMap<String, Arc<Recipe>>,
    pub(crate) tape: Tape,
    /// The servers that all conversations share.
    pub(crate) shared: Started,
    /// A host without servers.
    pub(crate) nothing: Arc<McpHost>,
    pub(crate) blueprint: Blueprint,
    /// What tools are given that models neither see nor write.
    pub(crate) injected: ContextInjection,
    pub(crate) decisions: KeptDecisions,
    pub(crate) audit: AuditLog,
    pub(crate) scrubber: Scrubber,
    pub(crate) going: Going,
}

/// What goes on beside the conversations.
#[derive(Default)]
pub(crate) struct Going {
    /// Servers of single conversations that are closing.
    closing: Arc<Mutex<JoinSet<()>>>,
    /// What is kept of runs under way, by their ids.
    audits: tokio::sync::Mutex<HashMap<Arc<str>, Recorder>>,
}

impl Evaluator<'_> {
    /// Ends what was started, at once if somebody interrupts a second time.
    pub(crate) async fn close(&self, interrupts: &Interrupts) {
        let mut closing = std::mem::take(&mut *lock(&self.going.closing));
        tokio::select! {
            biased;
            // Dropping them kills their processes.
            () = interrupts.second() => closing.abort_all(),
            () = async { while closing.join_next().await.is_some() {} } => {}
        }
        context::close(&self.shared.host, interrupts).await;
        self.audit.flush().await;
    }

    /// The part of a recording that belongs to a conversation.
    fn tape(&self, wish: &Wish<'_>) -> Tape {
        self.tape.track(&format!(
            "{} · {} · {}",
            wish.scenario.name, wish.model, wish.repetition
        ))
    }

    fn model(&self, wish: &Wish<'_>, tape: &Tape) -> Result<Arc<dyn ChatModel>, String> {
        let found = match tape {
            Tape::Replay(player) => player.model(wish.model),
            Tape::Off | Tape::Recording(_) => {
                let model = self.models.get(wish.model);
                model.map(|model| tape.recorded(Arc::clone(model)))
            }
        };
        found.ok_or_else(|| format!("there is no model {}", wish.model))
    }

    /// The tools of a conversation.
    async fn tools(&self, wish: &Wish<'_>, tape: &Tape) -> Result<Arc<dyn ToolHost>, String> {
        if let Some(declared) = &wish.tools {
            return Ok(Arc::clone(declared));
        }
        if !tape.is_replay() && !wish.scenario.fresh_servers {
            let mut named = wish.servers.into_iter().flatten();
            if let Some(why) = named.find_map(|name| self.shared.missing(name)) {
                return Err(why);
            }
        }
        let host: Arc<dyn ToolHost> = if wish.scenario.fresh_servers && !tape.is_replay() {
            let one = self.fresh().await?;
            let started = Arc::clone(&one.started);
            started.with_files(Arc::new(one))
        } else {
            self.shared.with_files(Arc::clone(&self.shared.host) as _)
        };
        // The whole list is recorded, so that it is the same for all.
        let host = tape.tools(host);
        Ok(match wish.servers {
            None => host,
            Some(servers) => Arc::new(Narrowed {
                host,
                servers: servers.to_vec(),
            }),
        })
    }

    /// Servers for one conversation.
    async fn fresh(&self) -> Result<OfOne, String> {
        let started = self.blueprint.start(self.context);
        let started = started.map_err(|failure| format!("{:#}", failure.error))?;
        let one = OfOne {
            closing: Arc::clone(&self.going.closing),
            started: Arc::new(started),
        };
        let ready = one.started.host.require_ready().await;
        ready.map_err(|error| error.to_string())?;
        Ok(one)
    }
}

#[async_trait]
impl Engine for Evaluator<'_> {
    async fn agent(&self, wish: Wish<'_>) -> Result<Agent, String> {
        let tape = self.tape(&wish);
        let chosen = Chosen {
            model: self.model(&wish, &tape)?,
            because: Because::Named,
        };
        let recipe = match wish.recipe {
            None => None,
            Some(name) => {
                let found = self.recipes.get(name).cloned();
                Some(found.ok_or_else(|| format!("there is no recipe `{name}`"))?)
            }
        };
        let parameters = parameters(wish.parameters)?;
        // Another model that stands in for one would be measured in its name.
        let mut plan = self.args.settle(self.context, recipe, chosen, Vec::new());
        apply(&parameters, &mut plan.options);
        // A person who runs a suite approves its calls.
        plan.options.approval.approved_in_advance = true;
        if self.args.max_steps.is_none()
            && let Some(steps) = parameters.max_steps
        {
            // Here it is the author of the suite who says it, and not a client.
            plan.options.limits.max_steps = steps;
        }
        if wish.tools.is_some() && self.args.strategy.is_none() {
            // Such a scenario is about the calls alone.
            plan.options.strategy = Strategy::Loop;
        }
        let without = plan.no_tools || parameters.tools == Some(false);
        let parts = AgentParts {
            approver: Arc::new(Nobody),
            decisions: &self.decisions,
            checkpoints: None,
        };
        // The turns of a conversation share what servers keep for it, and no other conversation does.
        let conversation = Uuid::now_v7().to_string();
        let agent = plan
            .agent_with(self.context, &self.nothing, parts)
            .with_context(self.injected.clone().in_conversation(conversation));
        if without {
            return Ok(agent);
        }
        Ok(agent.with_tools(self.tools(&wish, &tape).await?))
    }

    fn cost(&self, model: &ModelId, usage: &Usage) -> Option<f64> {
        let provider = self.context.providers.get(&model.provider);
        if provider.is_some_and(Provider::is_offline) {
            return Some(0.0);
        }
        let cost = list_price(model)?.cost(usage);
        // What the provider's own tools cost is in no list: then the sum is not the whole.
        (cost.unpriced_requests == 0).then_some(cost.usd)
    }

    fn scrubber(&self) -> Scrubber {
        self.scrubber.clone()
    }

    fn is_replay(&self) -> bool {
        self.tape.is_replay()
    }

    fn wrote_mark(&self, wish: &Wish<'_>, call: &ToolCallRecord) -> bool {
        match self.tape(wish) {
            Tape::Replay(player) => player.wrote_mark(&call.id),
            Tape::Off | Tape::Recording(_) => false,
        }
    }

    async fn heard(&self, event: &RunEvent) {
        let mut audits = self.going.audits.lock().await;
        let recorder = audits
            .entry(Arc::clone(&event.run_id))
            .or_insert_with(|| self.audit.run(None, None));
        recorder.observe(event).await;
        if matches!(event.kind, RunEventKind::RunFinished { .. }) {
            audits.remove(&event.run_id);
        }
    }
}

/// The fields of a run that a scenario sets.
pub(crate) fn parameters(fields: &Map<String, Value>) -> Result<Parameters, String> {
    serde_json::from_value(Value::Object(fields.clone())).map_err(|error| error.to_string())
}

/// Nobody to ask.
struct Nobody;

#[async_trait]
impl Approver for Nobody {
    async fn decide(&self, _: &ApprovalRequest) -> ApprovalDecision {
        ApprovalDecision::NobodyThere
    }
}

/// The tools of some servers of a host.
struct Narrowed {
    host: Arc<dyn ToolHost>,
    servers: Vec<String>,
}

#[async_trait]
impl ToolHost for Narrowed {
    async fn tools(&self) -> ToolCatalog {
        let mut catalog = self.host.tools().await;
        let is_ours = |server: &String| self.servers.contains(server);
        catalog.tools.retain(|tool| {
            let origin = tool.origin.as_ref();
            origin.is_some_and(|origin| is_ours(&origin.server))
        });
        catalog.problems.retain(|problem| is_ours(&problem.server));
        catalog
    }

    async fn call(&self, call: ToolCall) -> Result<ToolOutput, ToolCallError> {
        self.host.call(call).await
    }

    fn changes(&self) -> ToolHostChanges {
        self.host.changes()
    }
}

/// Servers of one conversation. They are closed when nobody needs them any more.
struct OfOne {
    closing: Arc<Mutex<JoinSet<()>>>,
    started: Arc<Started>,
}

impl Drop for OfOne {
    fn drop(&mut self) {
        let started = Arc::clone(&self.started);
        lock(&self.closing).spawn(async move {
            started.host.close().await;
        });
    }
}

#[async_trait]
impl ToolHost for OfOne {
    async fn tools(&self) -> ToolCatalog {
        self.started.host.tools().await
    }

    async fn call(&self, call: ToolCall) -> Result<ToolOutput, ToolCallError> {
        self.started.host.call(call).await
    }

    fn changes(&self) -> ToolHostChanges {
        self.started.host.changes()
    }
}

fn lock(closing: &Mutex<JoinSet<()>>) -> std::sync::MutexGuard<'_, JoinSet<()>> {
    closing.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Evaluator<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Evaluator")
            .field("models", &self.models.len())
            .field("shared", &self.shared)
            .finish_non_exhaustive()
    }
}
