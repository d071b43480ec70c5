//! A model with scripted calls, and the runner for its scenarios.

use std::collections::HashMap;
use std::future::pending;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream;
use serde_json::Value;
use switchboard_domain::{
    ChatModel, ChatRequest, FinishReason, ModelCapabilities, ModelError, ModelErrorKind,
    ModelEvent, ModelId, ModelStream, PartStart, Usage,
};
use switchboard_evals::{
    report::RunResult,
    runner::{Conversation, EvalEngine},
    suite::Suite,
};
use switchboard_orchestration::Agent;

/// A call as a model writes it: the function, and the text of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) function: String,
    pub(crate) text: String,
}

impl Call {
    pub(crate) fn new(function: &str, input: &Value) -> Self {
        let (function, text) = (function.to_owned(), input.to_string());
        Self { function, text }
    }
}

/// A model with only one answer.
struct Scripted {
    id: ModelId,
    capabilities: ModelCapabilities,
    calls: Vec<Call>,
    tools: usize,
    before: usize,
}

#[async_trait]
impl ChatModel for Scripted {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn capabilities(&self) -> &ModelCapabilities {
        &self.capabilities
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ModelStream, ModelError> {
        let refused = |why: &str| ModelError::new("test", ModelErrorKind::Permission, why);
        if request.tools.len() != self.tools {
            return Err(refused("not all functions are offered"));
        }
        // The scenario ends after the first answer, so the model never gets a tool result.
        if request.messages.len() != self.before + 1 {
            return Err(refused("it is not asked what the entry asks"));
        }
        let mut events = Vec::new();
        for (index, call) in (0..).zip(&self.calls) {
            let (id, name) = (format!("call_{index}"), call.function.clone());
            let part = PartStart::ToolUse { id, name };
            events.push(ModelEvent::PartStarted { index, part });
            let json = call.text.clone();
            events.push(ModelEvent::ToolInputDelta { index, json });
            events.push(ModelEvent::PartFinished { index });
        }
        if self.calls.is_empty() {
            let (index, part) = (0, PartStart::Text);
            events.push(ModelEvent::PartStarted { index, part });
            let text = "None of these functions helps with that.".to_owned();
            events.push(ModelEvent::TextDelta { index, text });
            events.push(ModelEvent::PartFinished { index });
        }
        let reason = FinishReason::Stop.adjust_to_tool_uses(!self.calls.is_empty());
        events.push(ModelEvent::Finished { reason, raw: None });
        Ok(Box::pin(stream::iter(events.into_iter().map(Ok))))
    }
}

/// An engine whose agents use the script with the name of the scenario.
struct Stage(HashMap<String, Vec<Call>>);

#[async_trait]
impl EvalEngine for Stage {
    async fn create_agent(&self, wish: Conversation<'_>) -> Result<Agent, String> {
        let name = &wish.scenario.name;
        let model = Scripted {
            id: wish.model.clone(),
            capabilities: ModelCapabilities::default(),
            calls: self.0.get(name).cloned().ok_or("there is no script")?,
            tools: wish.scenario.tools.len(),
            before: wish.scenario.before.len(),
        };
        let mut agent = Agent::new(Arc::new(model));
        if let Some(tools) = wish.declared_tools() {
            agent = agent.with_tools(tools);
        }
        let mut options = agent.run_options().clone();
        let steps = wish.parameters.get("max_steps").and_then(Value::as_u64);
        let steps = steps.and_then(|it| u32::try_from(it).ok());
        options.limits.max_steps = steps.ok_or("the steps are not limited")?;
        Ok(agent.with_options(options))
    }

    fn response_cost(&self, _: &ModelId, _: &Usage) -> Option<f64> {
        None
    }
}

/// Runs scenarios. `scripts` contains the calls of each scenario by its name.
pub(crate) async fn run(suite: &Suite, scripts: HashMap<String, Vec<Call>>) -> Vec<RunResult> {
    let model = ModelId::new("test", "scripted");
    let (stage, models) = (Stage(scripts), [model]);
    let ran = suite.run_scenarios(&stage, &models, 8, pending(), |_| {});
    ran.await.runs
}
