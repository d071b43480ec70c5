//! Runs the scenarios of a suite.

use std::{fmt, sync::Arc, time::Instant};

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use serde_json::{Map, Value};
use switchboard_domain::{
    Message, ModelId, ToolCall, ToolCallError, ToolCatalog, ToolContent, ToolDefinition, ToolHost,
    ToolHostChanges, ToolOrigin, ToolOutput, Usage,
};
use switchboard_orchestration::{
    Agent, AnswerItem, Outcome, RunEventKind, RunReport, ToolCallRecord,
};

use crate::{
    judge::{Worth, judge, needed},
    report::{RunResult, TurnResult},
    suite::{DeclaredTool, Scenario, Suite, Turn},
};

/// Makes what runs need; the program that is evaluated implements it.
#[async_trait]
pub trait Engine: Send + Sync {
    /// An agent for one conversation. Fails with what a person reads.
    async fn agent(&self, wish: Wish<'_>) -> Result<Agent, String>;

    /// What these tokens cost in US dollars, if that is known.
    fn cost(&self, model: &ModelId, usage: &Usage) -> Option<f64>;
}

/// What a conversation is run with.
#[derive(Clone)]
pub struct Wish<'a> {
    /// The model.
    pub model: &'a ModelId,
    /// The recipe.
    pub recipe: Option<&'a str>,
    /// The only servers whose tools are there; `None` for all.
    pub servers: Option<&'a [String]>,
    /// Tools that take the place of all servers.
    pub tools: Option<Arc<dyn ToolHost>>,
    /// Further fields of the run.
    pub parameters: &'a Map<String, Value>,
}

/// The server that tools of a scenario are said to be of.
pub const DECLARED: &str = "scenario";

impl Suite {
    /// Runs every scenario with every model as often as the suite says, so many at the same time, and gives each
    /// result to `done` when it is there. The results come in the order of the suite.
    pub async fn run(
        &self,
        engine: &dyn Engine,
        models: &[ModelId],
        at_once: usize,
        mut done: impl FnMut(&RunResult),
    ) -> Vec<RunResult> {
        let mut planned = Vec::new();
        for model in models {
            for scenario in &self.scenarios {
                planned
                    .extend((1..=self.repetitions).map(|repetition| (scenario, model, repetition)));
            }
        }
        let running =
            planned
                .into_iter()
                .enumerate()
                .map(|(at, (scenario, model, repetition))| async move {
                    (at, self.converse(engine, scenario, model, repetition).await)
                });
        let mut running = stream::iter(running).buffer_unordered(at_once.max(1));
        let mut results = Vec::new();
        while let Some((at, result)) = running.next().await {
            done(&result);
            results.push((at, result));
        }
        results.sort_unstable_by_key(|(at, _)| *at);
        results.into_iter().map(|(_, result)| result).collect()
    }

    async fn converse(
        &self,
        engine: &dyn Engine,
        scenario: &Scenario,
        model: &ModelId,
        repetition: u32,
    ) -> RunResult {
        let mut result = RunResult {
            scenario: scenario.name.clone(),
            kind: scenario.kind.clone(),
            model: model.clone(),
            repetition,
            passed: false,
            error: None,
            turns: Vec::with_capacity(scenario.turns.len()),
            not_reached: Vec::new(),
        };
        self.talk(engine, scenario, model, &mut result).await;
        let not_run = scenario.turns.iter().skip(result.turns.len());
        result.not_reached = not_run.flat_map(needed).collect();
        result.passed = result.turns.len() == scenario.turns.len()
            && result.turns.iter().all(|turn| turn.faults.is_empty());
        result
    }

    async fn talk(
        &self,
        engine: &dyn Engine,
        scenario: &Scenario,
        model: &ModelId,
        result: &mut RunResult,
    ) {
        let declared = (!scenario.tools.is_empty())
            .then(|| Arc::new(Declared::new(&scenario.tools)) as Arc<dyn ToolHost>);
        let wish = Wish {
            model,
            recipe: scenario.recipe.as_deref().or(self.recipe.as_deref()),
            servers: scenario.servers.as_deref().or(self.servers.as_deref()),
            tools: declared,
            parameters: &scenario.parameters,
        };
        let agent = match engine.agent(wish).await {
            Ok(agent) => agent,
            Err(why) => {
                result.error = Some(why);
                return;
            }
        };
        let mut conversation: Vec<Arc<Message>> = Vec::new();
        let mut earlier: Vec<ToolCallRecord> = Vec::new();
        for turn in &scenario.turns {
            conversation.push(Arc::new(Message::user(&turn.say)));
            let began = Instant::now();
            let mut run = agent.run(conversation.clone());
            let mut report = None;
            while let Some(event) = run.next().await {
                if let RunEventKind::RunFinished { report: last } = event.kind {
                    report = Some(last);
                }
            }
            let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            if let Some(run) = run.into_run() {
                conversation.extend(run.session_messages());
            }
            let Some(report) = report else {
                result.error = Some("the run waits for an approval that nobody here can give: approve its tools, or take another recipe".to_owned());
                return;
            };
            let cost = engine.cost(model, &report.usage);
            result
                .turns
                .push(judged(turn, &report, &earlier, duration_ms, cost));
            earlier.extend(report.tool_calls);
            if report.outcome == Outcome::Failed {
                break;
            }
        }
    }
}

fn judged(
    turn: &Turn,
    report: &RunReport,
    earlier: &[ToolCallRecord],
    duration_ms: u64,
    cost_usd: Option<f64>,
) -> TurnResult {
    let judgement = judge(turn, &report.tool_calls, earlier);
    let mut faults = Vec::new();
    if report.outcome != Outcome::Completed {
        let why = report
            .error
            .as_ref()
            .map_or_else(String::new, |error| format!(": {}", error.message));
        faults.push(format!("the run did not complete{why}"));
    }
    faults.extend(
        judgement
            .missing
            .iter()
            .map(|call| format!("no such call at its place: {call}")),
    );
    let expects_none = turn.calls.as_ref().is_some_and(Vec::is_empty);
    for call in &judgement.calls {
        let is_wrong = match call.worth {
            Worth::Forbidden => true,
            Worth::Right | Worth::Unjudged => false,
            _ => expects_none,
        };
        if is_wrong {
            let why = call.why.as_deref().unwrap_or("it is not expected");
            faults.push(format!("`{}` was called: {why}", call.tool));
        }
    }
    let artifacts: Vec<String> = report
        .content
        .iter()
        .filter_map(|item| match item {
            AnswerItem::Artifact { artifact_type, .. } => Some(artifact_type.clone()),
            _ => None,
        })
        .collect();
    faults.extend(turn.answer.faults(&report.answer, &artifacts));
    TurnResult {
        said: turn.say.clone(),
        answer: report.answer.clone(),
        outcome: report.outcome,
        error: report.error.as_ref().map(|error| error.message.clone()),
        faults,
        judgement,
        steps: report.steps,
        usage: report.usage,
        cost_usd,
        duration_ms,
    }
}

/// The tools of a scenario. Every call gives what the scenario says.
struct Declared {
    tools: Vec<Arc<ToolDefinition>>,
    results: Vec<Value>,
}

impl Declared {
    fn new(tools: &[DeclaredTool]) -> Self {
        let definition = |tool: &DeclaredTool| {
            let mut definition =
                ToolDefinition::new(&tool.name, &tool.description, tool.input_schema.clone());
            definition.origin = Some(ToolOrigin {
                server: DECLARED.to_owned(),
                tool: tool.name.clone(),
            });
            definition.annotations.read_only = Some(true);
            Arc::new(definition)
        };
        Self {
            tools: tools.iter().map(definition).collect(),
            results: tools.iter().map(|tool| tool.result.clone()).collect(),
        }
    }
}

#[async_trait]
impl ToolHost for Declared {
    async fn tools(&self) -> ToolCatalog {
        ToolCatalog {
            tools: self.tools.clone(),
            problems: Vec::new(),
        }
    }

    async fn call(&self, call: ToolCall) -> Result<ToolOutput, ToolCallError> {
        match self.tools.iter().position(|tool| tool.name == call.name) {
            Some(at) => Ok(match &self.results[at] {
                Value::String(text) => ToolOutput::text(text),
                value => ToolOutput {
                    content: vec![ToolContent::text(value.to_string())],
                    structured: value.is_object().then(|| value.clone()),
                    is_error: false,
                },
            }),
            None => Err(ToolCallError::UnknownTool {
                name: call.name,
                available: self.tools.iter().map(|tool| tool.name.clone()).collect(),
            }),
        }
    }

    fn changes(&self) -> ToolHostChanges {
        Box::pin(stream::pending())
    }
}

impl fmt::Debug for Wish<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wish")
            .field("model", self.model)
            .field("recipe", &self.recipe)
            .field("servers", &self.servers)
            .field("declares_tools", &self.tools.is_some())
            .field("parameters", self.parameters)
            .finish()
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
