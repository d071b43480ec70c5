//! Runs the scenarios of a suite with each model and scores the results.

mod available_tools;
mod declared_tools;
mod usage_meter;

use std::{
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use serde_json::{Map, Value};
use switchboard_domain::{Message, ModelId, ToolContent, ToolHost, Usage, redact::Redactor};
use switchboard_orchestration::{
    Agent, AnswerItem, Outcome, RunError, RunErrorKind, RunEvent, RunEventKind, RunReport,
    ToolCallRecord,
};

use crate::{
    recording::Redaction,
    report::{RunResult, SuiteRuns, TranscriptBuilder, TurnResult, UnfinishedTurn},
    scoring::{
        TurnScore, Verdict, bfcl, describe_required_calls, first_response::FirstResponseCalls,
        made_up_values::KnownValues, score_turn,
    },
    suite::{Scenario, ScoringRules, Suite, Turn},
};
use available_tools::AvailableTools;
use declared_tools::DeclaredToolHost;
use usage_meter::UsageMeter;

/// Operations that the caller of [`Suite::run_scenarios`] implements. They create the agents and
/// compute the cost of model responses.
#[async_trait]
pub trait EvalEngine: Send + Sync {
    /// Returns the agent for one conversation, or an error message that the report shows.
    async fn create_agent(&self, conversation: Conversation<'_>) -> Result<Agent, String>;

    /// Returns the cost of a model response in US dollars, or `None` if a price or token count is
    /// unknown.
    fn response_cost(&self, model: &ModelId, usage: &Usage) -> Option<f64>;

    /// Returns the redactor that removes secrets from the messages, answers, tool inputs and tool
    /// results in the report. The default redactor removes only data that looks like a secret.
    fn report_redactor(&self) -> Redactor {
        Redactor::default()
    }

    /// Returns whether secrets were removed from the input of this tool call when it was recorded.
    /// This is only possible in a replay. The verdict on such a call may be [`Verdict::Unknown`].
    /// The default is `false`.
    fn is_input_redacted(&self, conversation: &Conversation<'_>, call: &ToolCallRecord) -> bool {
        let _ = (conversation, call);
        false
    }

    /// Receives each event of a run, for example to display progress. By default, the event is
    /// ignored.
    async fn observe_event(&self, event: &RunEvent) {
        let _ = event;
    }
}

/// A conversation to run: one repetition of a scenario with one model, and the settings of its
/// agent.
#[derive(Debug, Clone)]
pub struct Conversation<'a> {
    /// The scenario of the conversation, with its user messages and expected calls.
    pub scenario: &'a Scenario,
    /// Number of this repetition of the scenario, starting at 1.
    pub repetition: u32,
    /// The model that is evaluated in this conversation.
    pub model: &'a ModelId,
    /// Name of the recipe that configures the agent. `None` means an agent without a recipe.
    pub recipe: Option<&'a str>,
    /// Names of the MCP servers whose tools the model may call. `None` means all servers.
    pub servers: Option<&'a [String]>,
    /// Run parameters of the scenario, such as `max_steps` and `temperature`.
    pub parameters: &'a Map<String, Value>,
}

impl Conversation<'_> {
    /// Returns a tool host with the tools that the scenario declares, or `None` if it declares no
    /// tools. The agent must use this host instead of the tools of MCP servers.
    pub fn declared_tools(&self) -> Option<Arc<dyn ToolHost>> {
        let tools = &self.scenario.tools;
        (!tools.is_empty()).then(|| Arc::new(DeclaredToolHost::new(tools)) as Arc<dyn ToolHost>)
    }
}

impl Suite {
    /// Returns the number of runs of the suite: scenarios times repetitions times `models`, the
    /// number of evaluated models.
    pub fn count_planned_runs(&self, models: usize) -> usize {
        let repetitions = usize::try_from(self.repetitions).unwrap_or(usize::MAX);
        let of_one = self.scenarios.len().saturating_mul(repetitions);
        of_one.saturating_mul(models)
    }

    /// Runs every scenario of the suite with every model, [`Suite::repetitions`] times each. At
    /// most `at_once` runs are active at the same time. Calls `done` with the result of each
    /// finished run. When the future `stop` completes, cancels the active runs and returns the
    /// results of the finished runs.
    pub async fn run_scenarios(
        &self,
        engine: &dyn EvalEngine,
        models: &[ModelId],
        at_once: usize,
        stop: impl Future<Output = ()>,
        mut done: impl FnMut(&RunResult),
    ) -> SuiteRuns {
        let mut planned = Vec::new();
        for model in models {
            for scenario in &self.scenarios {
                let repetitions = 1..=self.repetitions;
                planned.extend(repetitions.map(|repetition| (scenario, model, repetition)));
            }
        }
        let total = planned.len();
        let redaction = &Redaction::new(engine.report_redactor());
        // The closure takes a position in `planned` instead of references, and boxes its future.
        // Otherwise the compiler cannot prove that the stream is `Send`. The positions also sort
        // the results, because the runs finish in any order.
        let run = |position: usize| {
            let (scenario, model, repetition) = planned[position];
            let run = PlannedRun {
                suite: self,
                engine,
                redaction,
                scenario,
                model,
                repetition,
            };
            async move { (position, run.run_conversation().await) }.boxed()
        };
        let running = stream::iter((0..total).map(run)).buffer_unordered(at_once.max(1));
        let mut results = Vec::new();
        {
            let stop = pin!(stop);
            let mut running = pin!(running.take_until(stop));
            while let Some((position, result)) = running.next().await {
                done(&result);
                results.push((position, result));
            }
        }
        results.sort_unstable_by_key(|(position, _)| *position);
        SuiteRuns {
            not_run: (total - results.len()) as u64,
            runs: results.into_iter().map(|(_, result)| result).collect(),
        }
    }
}

#[derive(Clone, Copy)]
struct PlannedRun<'a> {
    suite: &'a Suite,
    engine: &'a dyn EvalEngine,
    redaction: &'a Redaction,
    scenario: &'a Scenario,
    model: &'a ModelId,
    repetition: u32,
}

impl PlannedRun<'_> {
    fn recipe_name(&self) -> Option<&str> {
        let own = self.scenario.recipe.as_deref();
        own.or(self.suite.recipe.as_deref())
    }

    async fn run_conversation(self) -> RunResult {
        let scenario = self.scenario;
        let mut result = RunResult {
            scenario: scenario.name.clone(),
            kind: scenario.kind.clone(),
            model: self.model.clone(),
            recipe: self.recipe_name().map(str::to_owned),
            repetition: self.repetition,
            passed: false,
            error: None,
            turns: Vec::with_capacity(scenario.turns.len()),
            unfinished_turn: None,
            not_reached: Vec::new(),
        };
        self.run_turns(&mut result).await;
        let not_run = scenario.turns.iter().skip(result.turns.len());
        let not_reached = not_run.flat_map(describe_required_calls);
        result.not_reached = not_reached
            .map(|it| self.redaction.redact_text(&it))
            .collect();
        result.passed = result.turns.len() == scenario.turns.len()
            && result.turns.iter().all(|turn| turn.faults.is_empty());
        result
    }

    fn build_conversation(&self) -> Conversation<'_> {
        let scenario = self.scenario;
        let servers = scenario.servers.as_deref();
        Conversation {
            scenario,
            repetition: self.repetition,
            model: self.model,
            recipe: self.recipe_name(),
            servers: servers.or(self.suite.servers.as_deref()),
            parameters: &scenario.parameters,
        }
    }

    async fn run_turns(&self, result: &mut RunResult) {
        let conversation = self.build_conversation();
        let agent = match self.engine.create_agent(conversation.clone()).await {
            Ok(agent) => agent,
            Err(error) => {
                result.error = Some(self.redaction.redact_text(&error));
                return;
            }
        };
        let before = self.scenario.before.iter();
        let before = before.map(|message| Arc::new(message.to_message()));
        let mut messages: Vec<Arc<Message>> = before.collect();
        let mut earlier: Vec<ToolCallRecord> = Vec::new();
        let mut tools = AvailableTools::default();
        for turn in &self.scenario.turns {
            messages.push(Arc::new(Message::user(&turn.say)));
            let start = Instant::now();
            let mut transcript = TranscriptBuilder::new(self.redaction);
            let mut meter = UsageMeter::new(self.model);
            let mut first_response = FirstResponseCalls::default();
            let mut run = agent.run(messages.clone());
            let mut report = None;
            while let Some(event) = run.next().await {
                self.engine.observe_event(&event).await;
                transcript.add_run_event(&event.kind, to_milliseconds(start.elapsed()));
                first_response.add_run_event(&event.kind);
                meter.add_run_event(&event.kind, |model, usage| {
                    self.engine.response_cost(model, usage)
                });
                if let RunEventKind::RunFinished { report: last } = event.kind {
                    report = Some(last);
                }
            }
            let duration_ms = to_milliseconds(start.elapsed());
            let known = run.into_run().map(|run| {
                messages.extend(run.session_messages());
                KnownValues::from_run(&run)
            });
            let Some(mut report) = report else {
                result.error = Some(
                    "the run waits for an approval, which an evaluation cannot give: allow its \
                     tools with `--approve`, or use another recipe"
                        .to_owned(),
                );
                result.unfinished_turn = Some(UnfinishedTurn {
                    message: self.redaction.redact_text(&turn.say),
                    transcript: transcript.finish_transcript(&[]),
                });
                return;
            };
            let transcript = transcript.finish_transcript(&report.tool_calls);
            self.redact_results(&mut report);
            tools.add_current_tools(&agent, &report).await;
            let is_redacted =
                |call: &ToolCallRecord| self.engine.is_input_redacted(&conversation, call);
            let (score, mut faults) = match turn.scoring {
                ScoringRules::Switchboard => {
                    let score = score_turn(turn, &report.tool_calls, &earlier, &is_redacted);
                    let mut faults = describe_faults(turn, &report, &score);
                    if matches!(report.outcome, Outcome::Completed | Outcome::Limited) {
                        faults.extend(tools.describe_missing_tools(turn));
                    }
                    (score, faults)
                }
                ScoringRules::Bfcl => {
                    let calls = first_response.into_call_records(&report.tool_calls);
                    let score = bfcl::score_turn(turn, &calls, &is_redacted);
                    let faults = bfcl::describe_faults(turn, &report, &score);
                    (score, faults)
                }
            };
            let artifacts = artifact_types(&report);
            faults.extend(turn.answer.failed_checks(&report.answer, &artifacts));
            let mut turn_result = TurnResult {
                message: turn.say.clone(),
                answer: report.answer.clone(),
                outcome: report.outcome,
                error: report.error.as_ref().map(|error| error.message.clone()),
                faults,
                made_up_values: None,
                score,
                steps: report.steps,
                usage: report.usage,
                unmetered: meter.unmetered,
                cost_usd: meter.cost_usd,
                duration_ms,
                transcript,
            };
            redact_turn(&mut turn_result, self.redaction);
            // The redacted answer contains no secrets that the report would then list.
            turn_result.made_up_values =
                known.map(|known| known.find_made_up_values(&turn_result.answer));
            result.turns.push(turn_result);
            earlier.extend(report.tool_calls);
            if report.outcome == Outcome::Failed {
                let error = report.error.as_ref().and_then(external_error_message);
                result.error = error.map(|error| self.redaction.redact_text(error));
                break;
            }
        }
    }

    /// Redacts the tool results of a run before they are shortened, because a redactor does not
    /// recognize a cut secret.
    fn redact_results(&self, report: &mut RunReport) {
        for call in &mut report.tool_calls {
            let content = call.result.content.iter().map(|content| match content {
                ToolContent::Text { text } => ToolContent::text(self.redaction.redact_text(text)),
                other => other.clone(),
            });
            call.result.content = content.collect();
        }
    }
}

fn artifact_types(report: &RunReport) -> Vec<String> {
    let types = report.content.iter().filter_map(|item| match item {
        AnswerItem::Artifact { artifact_type, .. } => Some(artifact_type.clone()),
        _ => None,
    });
    types.collect()
}

/// Returns the message of an error that the model did not cause, such as a network failure. Returns
/// `None` for other errors.
fn external_error_message(error: &RunError) -> Option<&str> {
    let is_external = matches!(
        error.kind,
        RunErrorKind::Model(_) | RunErrorKind::ServerUnavailable | RunErrorKind::Internal
    );
    is_external.then_some(error.message.as_str())
}

fn to_milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Redacts all texts of a turn's result except the transcript, which is already redacted.
fn redact_turn(turn: &mut TurnResult, redaction: &Redaction) {
    let score = &mut turn.score;
    let texts = [&mut turn.message, &mut turn.answer];
    let texts = texts.into_iter().chain(&mut turn.error);
    let texts = texts.chain(&mut turn.faults).chain(&mut score.missing);
    let texts = texts.chain(&mut score.not_executed);
    for text in texts {
        *text = redaction.redact_text(text);
    }
    for call in &mut score.calls {
        call.input = redaction.redact_value(&call.input);
        let reason = call.reason.as_deref();
        call.reason = reason.map(|reason| redaction.redact_text(reason));
        call.result = redaction.redact_text(&call.result);
    }
}

/// Returns one sentence for each fault of the turn: the run did not complete, a required call is
/// missing or was not executed, or a call is not allowed.
fn describe_faults(turn: &Turn, report: &RunReport, score: &TurnScore) -> Vec<String> {
    let mut faults = Vec::new();
    if report.outcome != Outcome::Completed {
        let error = report.error.as_ref();
        let message = error.map_or_else(String::new, |error| format!(": {}", error.message));
        faults.push(format!("the run did not complete{message}"));
    }
    let missing = score.missing.iter();
    faults.extend(missing.map(|call| format!("missing call at this position: {call}")));
    let not_executed = score.not_executed.iter();
    faults.extend(not_executed.map(|call| format!("the right call was not executed: {call}")));
    let expects_none = turn.calls.as_ref().is_some_and(Vec::is_empty);
    for call in &score.calls {
        let is_wrong = match call.verdict {
            Verdict::Forbidden => true,
            Verdict::Right | Verdict::Unknown | Verdict::Unjudged => false,
            _ => expects_none,
        };
        if is_wrong {
            let reason = call.reason.as_deref().unwrap_or("the call is not expected");
            faults.push(format!("`{}` was called: {reason}", call.tool));
        }
    }
    faults
}

#[cfg(test)]
#[path = "runner/runner_tests.rs"]
mod tests;
