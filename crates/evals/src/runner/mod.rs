//! Runs the scenarios of a suite.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use serde_json::{Map, Value};
use switchboard_domain::{
    JsonObject, Message, ModelId, ToolCall, ToolCallError, ToolCatalog, ToolContent,
    ToolDefinition, ToolHost, ToolHostChanges, ToolOrigin, ToolOutput, Usage, redact::Redactor,
};
use switchboard_orchestration::{
    Agent, AnswerItem, Outcome, RunError, RunErrorKind, RunEvent, RunEventKind, RunReport,
    ToolCallRecord, tools::arguments::Validators,
};

use crate::{
    recording::Redaction,
    report::{BrokenOff, Ran, RunResult, Scribe, TurnResult, transcript::Transcript},
    scoring::{
        CallEnd, Cut, Judgement, Worth, bfcl, end_of, first_response::FirstAnswer, judge, needed,
    },
    suite::{
        DECLARED, DeclaredTool, ExpectedCall, Forbidden, Scenario, Scoring, Suite, Turn,
        is_own_name, may_have_fitted,
    },
};
use usage_meter::Meter;

mod usage_meter;

/// Makes what runs need; the program that is evaluated implements it.
#[async_trait]
pub trait Engine: Send + Sync {
    /// An agent for one conversation. Fails with what a person reads.
    async fn agent(&self, wish: Wish<'_>) -> Result<Agent, String>;

    /// What one answer of this model with these tokens cost in US dollars, if that is known.
    fn cost(&self, model: &ModelId, usage: &Usage) -> Option<f64>;

    /// Returns the redactor of results. The default one removes likely secrets.
    fn redactor(&self) -> Redactor {
        Redactor::default()
    }

    /// Returns whether secrets were removed from the input of this call when it was recorded.
    fn is_input_redacted(&self, wish: &Wish<'_>, call: &ToolCallRecord) -> bool {
        let _ = (wish, call);
        false
    }

    /// Is told everything that happens in a run, as it happens.
    async fn heard(&self, event: &RunEvent) {
        let _ = event;
    }
}

/// What a conversation is run with.
#[derive(Clone)]
pub struct Wish<'a> {
    /// What is run.
    pub scenario: &'a Scenario,
    /// For which time, from 1.
    pub repetition: u32,
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

impl Suite {
    /// How many runs it comes to with so many models.
    pub fn planned(&self, models: usize) -> usize {
        let times = usize::try_from(self.repetitions).unwrap_or(usize::MAX);
        let of_one = self.scenarios.len().saturating_mul(times);
        of_one.saturating_mul(models)
    }

    /// Runs every scenario with every model as often as the suite says, so many at the same time, and gives each
    /// result to `done` when it is there.
    ///
    /// When `stop` is ready, runs that are under way are dropped, which cancels them, and what is done comes back.
    /// [`std::future::pending`] never is. Dropping the future of this stops everything too.
    pub async fn run(
        &self,
        engine: &dyn Engine,
        models: &[ModelId],
        at_once: usize,
        stop: impl Future<Output = ()>,
        mut done: impl FnMut(&RunResult),
    ) -> Ran {
        let mut planned = Vec::new();
        for model in models {
            for scenario in &self.scenarios {
                planned
                    .extend((1..=self.repetitions).map(|repetition| (scenario, model, repetition)));
            }
        }
        let total = planned.len();
        let scrubber = &Redaction::new(engine.redactor());
        // By its number, and boxed: the compiler does not see that a closure over borrowed parts gives something that can go
        // to another thread.
        let one = |at: usize| {
            let (scenario, model, repetition) = planned[at];
            let of = Planned {
                suite: self,
                engine,
                scrubber,
                scenario,
                model,
                repetition,
            };
            async move { (at, of.converse().await) }.boxed()
        };
        let running = stream::iter((0..total).map(one)).buffer_unordered(at_once.max(1));
        let mut results = Vec::new();
        {
            let stop = pin!(stop);
            let mut running = pin!(running.take_until(stop));
            while let Some((at, result)) = running.next().await {
                done(&result);
                results.push((at, result));
            }
        }
        results.sort_unstable_by_key(|(at, _)| *at);
        Ran {
            not_run: (total - results.len()) as u64,
            runs: results.into_iter().map(|(_, result)| result).collect(),
        }
    }
}

/// One conversation that is to be had.
#[derive(Clone, Copy)]
struct Planned<'a> {
    suite: &'a Suite,
    engine: &'a dyn Engine,
    scrubber: &'a Redaction,
    scenario: &'a Scenario,
    model: &'a ModelId,
    repetition: u32,
}

impl Planned<'_> {
    fn recipe(&self) -> Option<&str> {
        let own = self.scenario.recipe.as_deref();
        own.or(self.suite.recipe.as_deref())
    }

    async fn converse(self) -> RunResult {
        let scenario = self.scenario;
        let mut result = RunResult {
            scenario: scenario.name.clone(),
            kind: scenario.kind.clone(),
            model: self.model.clone(),
            recipe: self.recipe().map(str::to_owned),
            repetition: self.repetition,
            passed: false,
            error: None,
            turns: Vec::with_capacity(scenario.turns.len()),
            broken_off: None,
            not_reached: Vec::new(),
        };
        self.talk(&mut result).await;
        let not_run = scenario.turns.iter().skip(result.turns.len());
        let not_reached = not_run.flat_map(needed);
        result.not_reached = not_reached.map(|it| self.scrubber.text(&it)).collect();
        result.passed = result.turns.len() == scenario.turns.len()
            && result.turns.iter().all(|turn| turn.faults.is_empty());
        result
    }

    async fn talk(&self, result: &mut RunResult) {
        let scenario = self.scenario;
        let declared = (!scenario.tools.is_empty())
            .then(|| Arc::new(Declared::new(&scenario.tools)) as Arc<dyn ToolHost>);
        let wish = Wish {
            scenario,
            repetition: self.repetition,
            model: self.model,
            recipe: self.recipe(),
            servers: scenario
                .servers
                .as_deref()
                .or(self.suite.servers.as_deref()),
            tools: declared,
            parameters: &scenario.parameters,
        };
        let agent = match self.engine.agent(wish.clone()).await {
            Ok(agent) => agent,
            Err(why) => {
                result.error = Some(self.scrubber.text(&why));
                return;
            }
        };
        let before = scenario.before.iter();
        let mut conversation: Vec<Arc<Message>> =
            before.map(|said| Arc::new(said.to_message())).collect();
        let mut earlier: Vec<ToolCallRecord> = Vec::new();
        let mut there = There::default();
        for turn in &scenario.turns {
            conversation.push(Arc::new(Message::user(&turn.say)));
            let began = Instant::now();
            let mut scribe = Scribe::new(self.scrubber);
            let mut meter = Meter::new(self.model);
            let mut first = FirstAnswer::default();
            let mut run = agent.run(conversation.clone());
            let mut report = None;
            while let Some(event) = run.next().await {
                self.engine.heard(&event).await;
                scribe.take(&event.kind, millis(began.elapsed()));
                first.see(&event.kind);
                meter.take(&event.kind, |model, usage| self.engine.cost(model, usage));
                if let RunEventKind::RunFinished { report: last } = event.kind {
                    report = Some(last);
                }
            }
            let duration_ms = millis(began.elapsed());
            if let Some(run) = run.into_run() {
                conversation.extend(run.session_messages());
            }
            let Some(mut report) = report else {
                result.error = Some("the run waits for an approval that nobody here can give: approve its tools, or take another recipe".to_owned());
                result.broken_off = Some(BrokenOff {
                    said: self.scrubber.text(&turn.say),
                    transcript: scribe.finish(&[]),
                });
                return;
            };
            let measured = Measured {
                duration_ms,
                unmetered: meter.unmetered(),
                cost_usd: meter.cost_usd(),
                transcript: scribe.finish(&report.tool_calls),
            };
            // Before anything is cut: half a secret is found by nobody.
            for call in &mut report.tool_calls {
                let scrubbed = call.result.content.iter().map(|content| match content {
                    ToolContent::Text { text } => ToolContent::text(self.scrubber.text(text)),
                    other => other.clone(),
                });
                call.result.content = scrubbed.collect();
            }
            there.take(&agent, &report).await;
            let mut cuts: HashMap<String, Cut> = HashMap::new();
            for call in &mut report.tool_calls {
                if !self.engine.is_input_redacted(&wish, call) {
                    continue;
                }
                let taken = there.taken(&agent, call);
                let cut = taken.as_ref().map_or(Cut::Refused, |_| Cut::Fitting);
                cuts.insert(call.id.clone(), cut);
                // The loop could mend nothing here beside what was struck out, and did so when it was recorded.
                if let Some(taken) = taken {
                    call.input = Value::Object(taken).into();
                }
            }
            let cut = |call: &ToolCallRecord| cuts.get(&call.id).copied().unwrap_or(Cut::Nothing);
            let judged = judged(turn, &report, &earlier, &there, first, measured, &cut);
            result.turns.push(clean(judged, self.scrubber));
            earlier.extend(report.tool_calls);
            if report.outcome == Outcome::Failed {
                let error = report.error.as_ref().and_then(not_the_models);
                result.error = error.map(|error| self.scrubber.text(error));
                break;
            }
        }
    }
}

/// Why a run failed that says nothing of the model: it could not be asked, or a server was not there.
fn not_the_models(error: &RunError) -> Option<&str> {
    let is_elsewhere = matches!(
        error.kind,
        RunErrorKind::Model(_) | RunErrorKind::ServerUnavailable | RunErrorKind::Internal
    );
    is_elsewhere.then_some(error.message.as_str())
}

/// What was measured of a turn, whatever was expected.
struct Measured {
    duration_ms: u64,
    unmetered: u32,
    cost_usd: Option<f64>,
    transcript: Transcript,
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Takes secrets out of what stands in a result beside its transcript.
fn clean(mut turn: TurnResult, scrubber: &Redaction) -> TurnResult {
    let all = |texts: &mut Vec<String>| {
        for text in texts {
            *text = scrubber.text(text);
        }
    };
    turn.said = scrubber.text(&turn.said);
    turn.answer = scrubber.text(&turn.answer);
    turn.error = turn.error.map(|error| scrubber.text(&error));
    all(&mut turn.faults);
    all(&mut turn.judgement.missing);
    all(&mut turn.judgement.not_executed);
    for call in &mut turn.judgement.calls {
        call.input = scrubber.value(&call.input);
        call.why = call.why.take().map(|why| scrubber.text(&why));
        call.result = scrubber.text(&call.result);
    }
    turn
}

fn judged(
    turn: &Turn,
    report: &RunReport,
    earlier: &[ToolCallRecord],
    there: &There,
    first: FirstAnswer,
    measured: Measured,
    cut: &dyn Fn(&ToolCallRecord) -> Cut,
) -> TurnResult {
    let Measured {
        duration_ms,
        unmetered,
        cost_usd,
        transcript,
    } = measured;
    let (judgement, mut faults) = match turn.scoring {
        Scoring::Switchboard => {
            let judgement = judge(turn, &report.tool_calls, earlier, cut);
            let mut faults = faults(turn, report, &judgement);
            if matches!(report.outcome, Outcome::Completed | Outcome::Limited) {
                faults.extend(there.lacks(turn));
            }
            (judgement, faults)
        }
        Scoring::Bfcl => {
            let judgement = bfcl::judge(turn, &first.of(&report.tool_calls), cut);
            let faults = bfcl::faults(turn, report, &judgement);
            (judgement, faults)
        }
    };
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
        unmetered,
        cost_usd,
        duration_ms,
        transcript,
    }
}

/// What is wrong with the calls of a turn and how it ended.
fn faults(turn: &Turn, report: &RunReport, judgement: &Judgement) -> Vec<String> {
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
    let not_executed = judgement.not_executed.iter();
    faults.extend(not_executed.map(|call| format!("the right call was not executed: {call}")));
    let expects_none = turn.calls.as_ref().is_some_and(Vec::is_empty);
    for call in &judgement.calls {
        let is_wrong = match call.worth {
            Worth::Forbidden => true,
            Worth::Right | Worth::Unknown | Worth::Unjudged => false,
            _ => expects_none,
        };
        if is_wrong {
            let why = call.why.as_deref().unwrap_or("it is not expected");
            faults.push(format!("`{}` was called: {why}", call.tool));
        }
    }
    faults
}

/// The tools that there were in a conversation, by server and own name, whichever of them a recipe offers.
#[derive(Default)]
struct There {
    /// With what they take, as far as that is known.
    tools: BTreeMap<(Option<String>, String), Option<Arc<ToolDefinition>>>,
    validators: Validators,
}

impl There {
    /// Takes in those that are there now, and those that were called: they may be gone.
    async fn take(&mut self, agent: &Agent, report: &RunReport) {
        if let Some(host) = agent.tools() {
            let tools = host.tools().await.tools;
            self.tools.extend(tools.iter().map(|tool| {
                let name = match &tool.origin {
                    Some(origin) => (Some(origin.server.clone()), origin.tool.clone()),
                    None => (None, tool.name.clone()),
                };
                (name, Some(Arc::clone(tool)))
            }));
        }
        let called = report.tool_calls.iter();
        let called = called.filter(|call| end_of(call) != CallEnd::Hallucinated);
        for call in called {
            let name = (call.server.clone(), call.tool.clone());
            self.tools.entry(name).or_default();
        }
    }

    /// The input that its tool may have got before secrets were struck out of it: mended like any other where nothing
    /// was. `None` if the tool refused it, whatever they were.
    fn taken(&self, agent: &Agent, call: &ToolCallRecord) -> Option<JsonObject> {
        let definition = self.tools.get(&(call.server.clone(), call.tool.clone()));
        let definition = definition?.as_ref()?;
        // As the model saw it.
        let visible = agent.context().visible(definition);
        self.validators
            .examine_recorded(&visible, &call.input, &may_have_fitted)
    }

    /// What a turn speaks of and no tool is called, one sentence each: a call that is needed can never be made then,
    /// and a pattern forbids nothing.
    fn lacks(&self, turn: &Turn) -> Vec<String> {
        let mut lacks = Vec::new();
        let needed = turn.calls.iter().flatten().filter(|call| !call.optional);
        for call in needed {
            let mut ways = std::iter::once(call).chain(&call.or);
            if !ways.any(|way| self.has(way)) {
                let names = std::iter::once(call).chain(&call.or);
                let names: Vec<String> = names.map(ExpectedCall::name).collect();
                lacks.push(format!("there is no tool `{}`", names.join("` or `")));
            }
        }
        // Without any tool there is nothing to forbid.
        let patterns = turn.forbidden.iter().filter(|_| !self.tools.is_empty());
        for text in patterns {
            let pattern = Forbidden::of(text);
            let mut all = self.tools.keys();
            let is_there = all.any(|(server, tool)| pattern.names(server.as_deref(), tool));
            if !is_there && !is_own_name(&pattern) {
                lacks.push(format!(
                    "`{text}` forbids nothing: there is no such `tool` or `server/tool`"
                ));
            }
        }
        let mut told = HashSet::new();
        lacks.retain(|it| told.insert(it.clone()));
        lacks
    }

    fn has(&self, call: &ExpectedCall) -> bool {
        let is_it = |(server, tool): &(Option<String>, String)| {
            *tool == call.tool && (call.server.is_none() || call.server == *server)
        };
        self.tools.keys().any(is_it)
            || (call.server.is_none() && is_own_name(&Forbidden::of(&call.tool)))
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
            .field("scenario", &self.scenario.name)
            .field("repetition", &self.repetition)
            .field("model", self.model)
            .field("recipe", &self.recipe)
            .field("servers", &self.servers)
            .field("declares_tools", &self.tools.is_some())
            .field("parameters", self.parameters)
            .finish()
    }
}

#[cfg(test)]
#[path = "runner_tests.rs"]
mod tests;
