use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use switchboard_domain::{
    ApprovalDecision, ApprovalRequest, Approver, ChatModel, ChatRequest, FinishReason,
    ModelCapabilities, ModelError, ModelErrorKind, ModelEvent, ModelStream, PartStart, Role,
};
use switchboard_orchestration::{
    ApprovalPolicy, Run,
    persistence::checkpoint::{Checkpoint, CheckpointError, CheckpointStore},
};

use super::*;
use crate::{
    scoring::CallOutcome,
    suite::{DECLARED_SERVER, DeclaredTool},
};

/// A model that calls the first tool with the number in the question and answers with the result.
/// Without a number in the question, it answers `Hello`. It fails for a question about the end of
/// the world.
struct ScriptedModel {
    id: ModelId,
    capabilities: ModelCapabilities,
    is_metered: bool,
}

fn texts(message: &Message) -> String {
    let parts = message.parts.iter();
    parts
        .filter_map(|part| match part {
            switchboard_domain::Part::ToolResult(result) => {
                Some(result.content.iter().map(ToolContent::as_text).collect())
            }
            part => part.as_text().map(str::to_owned),
        })
        .collect()
}

#[async_trait]
impl ChatModel for ScriptedModel {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn capabilities(&self) -> &ModelCapabilities {
        &self.capabilities
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ModelStream, ModelError> {
        let last = request.messages.last().unwrap();
        let said = texts(last);
        if said.contains("end of the world") {
            let kind = ModelErrorKind::Permission;
            return Err(ModelError::new("acme", kind, "not that"));
        }
        let number: String = said.chars().filter(char::is_ascii_digit).collect();
        let asks = last.role == Role::User && !number.is_empty();
        let mut events = Vec::new();
        if let (true, Some(tool)) = (asks, request.tools.first()) {
            let (id, name) = (format!("call_{number}"), tool.name.clone());
            let part = PartStart::ToolUse { id, name };
            let json = format!(r#"{{"id":{number}}}"#);
            events.push(ModelEvent::PartStarted { index: 0, part });
            events.push(ModelEvent::ToolInputDelta { index: 0, json });
        } else {
            // The answer contains the number of messages, which shows that a conversation keeps its
            // earlier messages.
            let text = format!("Hello, {said}, after {}", request.messages.len());
            let part = PartStart::Text;
            events.push(ModelEvent::PartStarted { index: 0, part });
            events.push(ModelEvent::TextDelta { index: 0, text });
        }
        events.push(ModelEvent::PartFinished { index: 0 });
        if self.is_metered {
            let (input_tokens, output_tokens) = (Some(100), Some(10));
            let usage = Box::new(Usage {
                input_tokens,
                output_tokens,
                ..Usage::default()
            });
            events.push(ModelEvent::Usage { usage });
        }
        let reason = FinishReason::Stop.adjust_to_tool_uses(asks);
        events.push(ModelEvent::Finished { reason, raw: None });
        Ok(Box::pin(stream::iter(events.into_iter().map(Ok))))
    }
}

/// An engine whose agents have the requested tools. It counts the agents.
#[derive(Default)]
struct TestEngine {
    agents: AtomicUsize,
    policy: ApprovalPolicy,
    /// Whether each call waits for a later decision.
    parks: bool,
    /// The tools of the server `shop`, without annotations.
    shop: Vec<DeclaredTool>,
    events: AtomicUsize,
    secret: Option<&'static str>,
}

/// An approver that postpones each decision. It is also a store that discards the run.
struct DeferringApprover;

#[async_trait]
impl CheckpointStore for DeferringApprover {
    async fn save_checkpoint(&self, _: &Run, _: Checkpoint) -> Result<(), CheckpointError> {
        Ok(())
    }
}

#[async_trait]
impl Approver for DeferringApprover {
    async fn decide(&self, _: &ApprovalRequest) -> ApprovalDecision {
        ApprovalDecision::Later
    }
}

#[async_trait]
impl EvalEngine for TestEngine {
    async fn create_agent(&self, conversation: Conversation<'_>) -> Result<Agent, String> {
        self.agents.fetch_add(1, Ordering::Relaxed);
        if let Some(unknown) = conversation.recipe.filter(|it| *it != "known") {
            return Err(format!("there is no recipe `{unknown}`"));
        }
        let capabilities = ModelCapabilities::default();
        let id = conversation.model.clone();
        // Only the models `one` and `two` report tokens.
        let is_metered = matches!(&*id.name, "one" | "two");
        let mut agent = Agent::new(Arc::new(ScriptedModel {
            id,
            capabilities,
            is_metered,
        }));
        match conversation.declared_tools() {
            Some(tools) if self.parks => {
                agent = agent.with_tools_requiring_approval(DECLARED_SERVER, tools);
                agent = agent
                    .with_approver(Arc::new(DeferringApprover))
                    .with_checkpoints(Arc::new(DeferringApprover));
            }
            Some(tools) => agent = agent.with_tools(tools),
            None if self.shop.is_empty() => {}
            None => agent = agent.with_tools(Arc::new(shop(&self.shop))),
        }
        let mut options = agent.run_options().clone();
        if !self.parks {
            options.approval = self.policy.into();
        }
        Ok(agent.with_options(options))
    }

    fn response_cost(&self, _: &ModelId, _: &Usage) -> Option<f64> {
        Some(0.5)
    }

    fn report_redactor(&self) -> Redactor {
        Redactor::default().with_secrets(self.secret)
    }

    async fn observe_event(&self, _: &RunEvent) {
        self.events.fetch_add(1, Ordering::Relaxed);
    }
}

fn shop(tools: &[DeclaredTool]) -> DeclaredToolHost {
    let mut host = DeclaredToolHost::new(tools);
    for tool in &mut host.tools {
        let tool = Arc::make_mut(tool);
        tool.annotations.read_only = None;
        tool.origin.as_mut().unwrap().server = "shop".to_owned();
    }
    host
}

fn suite(value: Value) -> Suite {
    Suite::parse_suite(value).unwrap()
}

fn look_up() -> Value {
    json!([{"name": "look_up", "input_schema": {"type": "object", "properties": {"id": {"type": "integer"}}}, "result": {"name": "Ann"}}])
}

async fn run(suite: &Suite, engine: &TestEngine, models: &[&str]) -> Vec<RunResult> {
    let models: Vec<ModelId> = models.iter().map(|it| it.parse().unwrap()).collect();
    let mut told = 0;
    let never = std::future::pending();
    let ran = suite
        .run_scenarios(engine, &models, 3, never, |_| told += 1)
        .await;
    assert_eq!((told, ran.not_run), (ran.runs.len(), 0));
    assert_eq!(told, suite.count_planned_runs(models.len()));
    ran.runs
}

#[tokio::test]
async fn every_scenario_runs_with_every_model_in_order() {
    let suite = suite(json!({"repetitions": 2, "scenarios": [
        {"name": "known", "kind": "k", "tools": look_up(), "turns": [
            {"say": "Who is 42?", "calls": [{"tool": "look_up", "server": "scenario", "input": {"id": 42}}], "answer": {"contains": ["Ann"]}},
            {"say": "Thank you", "calls": [], "answer": {"contains": ["after 5"]}},
        ]},
        {"name": "wrong", "tools": look_up(), "turns": [
            {"say": "Who is 42?", "calls": [{"tool": "look_up", "input": {"id": 43}}], "answer": {"lacks": ["Ann"]}},
        ]},
    ]}));
    let engine = TestEngine::default();
    let results = run(&suite, &engine, &["acme/one", "acme/two"]).await;
    let told = results.iter().map(|it| {
        (
            &*it.model.name,
            it.scenario.as_str(),
            it.repetition,
            it.passed,
        )
    });
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            ("one", "known", 1, true),
            ("one", "known", 2, true),
            ("one", "wrong", 1, false),
            ("one", "wrong", 2, false),
            ("two", "known", 1, true),
            ("two", "known", 2, true),
            ("two", "wrong", 1, false),
            ("two", "wrong", 2, false),
        ]
    );
    assert_eq!(engine.agents.load(Ordering::Relaxed), 8);
    let known = &results[0].turns;
    assert_eq!(known[0].steps, 2);
    assert_eq!(known[0].cost_usd, Some(1.0));
    assert_eq!(known[1].steps, 1);
    assert_eq!(known[0].score.calls[0].verdict, Verdict::Right);
    assert_eq!(known[0].score.calls[0].result, r#"{"name":"Ann"}"#);
    let wrong = &results[2].turns[0];
    assert_eq!(wrong.score.calls[0].verdict, Verdict::WrongInput);
    assert_eq!(
        wrong.faults,
        [
            r#"missing call at this position: look_up {"id":43}"#,
            "the answer contains `Ann`"
        ]
    );
}

#[tokio::test]
async fn a_call_where_none_is_expected_is_a_fault() {
    let suite = suite(
        json!({"scenarios": [{"name": "chat", "tools": look_up(), "turns": [{"say": "I am 42", "calls": []}]}]}),
    );
    let results = run(&suite, &TestEngine::default(), &["acme/one"]).await;
    assert!(!results[0].passed);
    assert_eq!(
        results[0].turns[0].faults,
        ["`look_up` was called: the call is not expected"]
    );
}

#[tokio::test]
async fn turns_after_a_failure_are_not_reached() {
    let calls = json!([{"tool": "look_up", "input": {"id": 7}}]);
    let suite = suite(json!({"scenarios": [
        {"name": "fails", "tools": look_up(), "turns": [{"say": "the end of the world"}, {"say": "Who is 7?", "calls": calls}]},
        {"name": "no recipe", "recipe": "no-such", "tools": look_up(), "turns": [{"say": "Who is 7?", "calls": calls}]},
    ]}));
    let results = run(&suite, &TestEngine::default(), &["acme/one"]).await;
    let [failed, unmade] = &results[..] else {
        panic!("{results:?}")
    };
    assert!(!failed.passed);
    assert_eq!(failed.turns.len(), 1);
    assert_eq!(failed.turns[0].outcome, Outcome::Failed);
    assert!(
        failed.turns[0].faults[0].contains("not that"),
        "{:?}",
        failed.turns[0].faults
    );
    // A run that could not be executed lists its expected calls as not reached, not as missing.
    let error = failed.error.as_deref().unwrap_or_default();
    assert!(error.contains("not that"), "{error}");
    assert_eq!(failed.not_reached, [r#"look_up {"id":7}"#]);
    assert_eq!(
        unmade.error.as_deref(),
        Some("there is no recipe `no-such`")
    );
    assert_eq!(unmade.not_reached.len(), 1);
}

#[tokio::test]
async fn declared_tools_need_no_approval() {
    let suite = suite(
        json!({"scenarios": [{"name": "a", "tools": look_up(), "turns": [{"say": "Who is 1?", "calls": [{"tool": "look_up"}]}]}]}),
    );
    let engine = TestEngine {
        policy: ApprovalPolicy::Ask,
        ..TestEngine::default()
    };
    assert!(run(&suite, &engine, &["acme/one"]).await[0].passed);
}

/// Describes the events of a turn.
fn told(transcript: &crate::report::transcript::Transcript) -> Vec<String> {
    let entries = transcript.entries.iter();
    let told = entries.map(|it| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match it["type"].as_str().unwrap() {
            "model_request" => format!("{} is asked with {}", text(&it["model"]), it["tools"]),
            "text" => format!("says {}", text(&it["text"])),
            "model_response" => format!("ends with {}", text(&it["reason"])),
            "call" => {
                let notes = it["notes"].as_array().cloned().unwrap_or_default();
                let notes: Vec<String> = notes.iter().map(|note| text(&note["kind"])).collect();
                let result = it.pointer("/result/content/0/text");
                let result = result.map_or("nothing".to_owned(), text);
                let (tool, input) = (text(&it["tool"]), text(&it["input"]["text"]));
                format!("calls {tool} {input} {notes:?} {result}")
            }
            _ => it.to_string(),
        }
    });
    told.collect()
}

#[tokio::test]
async fn a_transcript_has_all_events_of_a_turn() {
    let suite = suite(
        json!({"recipe": "known", "scenarios": [{"name": "a", "tools": look_up(), "turns": [{"say": "Who is 42?"}]}]}),
    );
    let engine = TestEngine::default();
    let results = run(&suite, &engine, &["acme/one"]).await;
    let turn = &results[0].turns[0];
    assert_eq!(
        told(&turn.transcript),
        [
            "acme/one is asked with 1",
            "ends with tool_use",
            r#"calls look_up {"id":42} [] {"name":"Ann"}"#,
            "acme/one is asked with 1",
            r#"says Hello, {"name":"Ann"}, after 3"#,
            "ends with stop",
        ]
    );
    let call = &turn.transcript.entries[2];
    assert_eq!(call["scored_call"], 0);
    assert_eq!(call["server"], json!(DECLARED_SERVER));
    assert_eq!(results[0].recipe.as_deref(), Some("known"));
    assert!(engine.events.load(Ordering::Relaxed) > turn.transcript.entries.len());
    assert_eq!((turn.usage.input_tokens, turn.unmetered), (Some(200), 0));
}

#[tokio::test]
async fn a_stopped_evaluation_returns_the_finished_runs() {
    let suite =
        suite(json!({"repetitions": 5, "scenarios": [{"name": "a", "turns": [{"say": "Hi"}]}]}));
    let engine = TestEngine::default();
    let done = AtomicUsize::new(0);
    let stop = std::future::poll_fn(|_| match done.load(Ordering::Relaxed) {
        2 => std::task::Poll::Ready(()),
        _ => std::task::Poll::Pending,
    });
    let count = |_: &RunResult| {
        done.fetch_add(1, Ordering::Relaxed);
    };
    let ran = suite
        .run_scenarios(&engine, &["acme/one".parse().unwrap()], 1, stop, count)
        .await;
    let repetitions: Vec<u32> = ran.runs.iter().map(|it| it.repetition).collect();
    assert_eq!((repetitions, ran.not_run), (vec![1, 2], 3));
    let report = crate::report::Report::new(&suite, "p", "2026-01-01T00:00:00Z", ran);
    assert!(report.is_unfinished());
    assert_eq!(
        report.list_unmet_requirements(),
        ["the evaluation was stopped: 3 of 5 runs were not executed"]
    );
}

#[tokio::test]
async fn a_turn_that_waits_for_an_approval_is_unfinished() {
    let turns = json!([{"say": "Who is 7?", "calls": [{"tool": "look_up"}]}, {"say": "Bye"}]);
    let suite = suite(json!({"scenarios": [{"name": "a", "tools": look_up(), "turns": turns}]}));
    let engine = TestEngine {
        parks: true,
        ..TestEngine::default()
    };
    let result = run(&suite, &engine, &["acme/one"]).await.remove(0);
    assert!(!result.passed && result.turns.is_empty(), "{result:?}");
    assert!(result.error.unwrap().contains("waits for an approval"));
    assert_eq!(result.not_reached, ["look_up {}"]);
    let unfinished_turn = result.unfinished_turn.unwrap();
    assert_eq!(unfinished_turn.message, "Who is 7?");
    let told = told(&unfinished_turn.transcript);
    assert_eq!(
        told[2],
        r#"calls look_up {"id":7} ["tool_awaiting_approval"] nothing"#
    );
    assert!(told[3].contains("run_parked"), "{told:?}");
}

#[tokio::test]
async fn unreported_tokens_have_no_cost() {
    let suite = suite(json!({"scenarios": [{"name": "a", "turns": [{"say": "Hi"}]}]}));
    let results = run(&suite, &TestEngine::default(), &["acme/silent", "acme/one"]).await;
    let turns: Vec<_> = results.iter().map(|it| &it.turns[0]).collect();
    assert_eq!((turns[0].unmetered, turns[0].cost_usd), (1, None));
    assert_eq!((turns[1].unmetered, turns[1].cost_usd), (0, Some(0.5)));
}

#[tokio::test]
async fn secrets_are_redacted_in_results() {
    let secret = "tango-4711-foxtrot";
    let tools = json!([{"name": "look_up", "result": {"note": secret}}]);
    let suite = suite(
        json!({"scenarios": [{"name": "a", "tools": tools, "turns": [
            {"say": format!("{secret} 4711"), "calls": [{"tool": "look_up", "input": {"id": secret}}], "answer": {"contains": [secret]}},
        ]}]}),
    );
    let engine = TestEngine {
        secret: Some(secret),
        ..TestEngine::default()
    };
    let results = run(&suite, &engine, &["acme/one"]).await;
    let written = serde_json::to_string(&results).unwrap();
    assert!(!written.contains(secret), "{written}");
    assert!(
        written.contains(r#"Hello, {\"note\":\"[redacted]\"}"#),
        "{written}"
    );
    // The call is redacted in the report, but the comparison with the expected call used the
    // original input.
    let faults = &results[0].turns[0].faults;
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(
        faults[0].starts_with("missing call at this position"),
        "{faults:?}"
    );
}

#[tokio::test]
async fn expectations_of_unknown_tools_are_faults() {
    let engine = TestEngine {
        shop: serde_json::from_value(look_up()).unwrap(),
        ..TestEngine::default()
    };
    let scenarios = json!([
        {"name": "typos", "turns": [{"say": "Who is 7?",
            "calls": [{"tool": "look_upp"}, {"tool": "look_upp", "optional": true}, {"tool": "look_up", "server": "store", "or": [{"tool": "find"}]}],
            "forbidden": ["delete_*", "shop/*_down", "shop__look_up", "Look_up", "delete_*"],
        }]},
        {"name": "all there", "turns": [{"say": "Who is 7?",
            "calls": [{"tool": "look_up", "server": "shop", "or": [{"tool": "find"}]}, {"tool": "find", "optional": true}],
            "forbidden": ["read_tool_result", "*rch_tools"],
        }]},
        {"name": "forbidden", "turns": [{"say": "Who is 7?", "forbidden": ["sh?p/look_*"]}]},
    ]);
    let suite = suite(json!({"scenarios": scenarios}));
    let results = run(&suite, &engine, &["acme/one"]).await;
    let faults = |at: usize| &results[at].turns[0].faults;
    assert_eq!(
        faults(0)[2..],
        [
            "unknown tool `look_upp`",
            "unknown tool `store/look_up` or `find`",
            "`delete_*` has no effect: no `tool` or `server/tool` matches",
            "`shop/*_down` has no effect: no `tool` or `server/tool` matches",
            "`shop__look_up` has no effect: no `tool` or `server/tool` matches",
            "`Look_up` has no effect: no `tool` or `server/tool` matches",
        ],
        "{:?}",
        faults(0)
    );
    assert!(results[1].passed, "{:?}", faults(1));
    assert_eq!(
        *faults(2),
        ["`look_up` was called: the tool is forbidden in this turn"]
    );
    // No server has tools, so every tool pattern is unknown.
    let results = run(&suite, &TestEngine::default(), &["acme/one"]).await;
    assert!(results[2].passed);
    let none = &results[1].turns[0].faults;
    assert_eq!(none[1..], ["unknown tool `shop/look_up` or `find`"]);
}

#[tokio::test]
async fn a_right_call_that_did_not_run_does_not_pass() {
    let suite = suite(
        json!({"scenarios": [{"name": "a", "turns": [{"say": "Who is 7?", "calls": [{"tool": "look_up", "input": {"id": 7}}]}]}]}),
    );
    let engine = |policy| TestEngine {
        shop: serde_json::from_value(look_up()).unwrap(),
        policy,
        ..TestEngine::default()
    };
    assert!(run(&suite, &engine(ApprovalPolicy::All), &["acme/one"]).await[0].passed);
    for policy in [ApprovalPolicy::None, ApprovalPolicy::Ask] {
        let results = run(&suite, &engine(policy), &["acme/one"]).await;
        let turn = &results[0].turns[0];
        let call = &turn.score.calls[0];
        assert_eq!(call.verdict, Verdict::Right);
        assert_eq!(call.outcome, CallOutcome::NotExecuted);
        assert!(!results[0].passed);
        assert_eq!(turn.faults.len(), 1, "{:?}", turn.faults);
        let said = r#"the right call was not executed: look_up {"id":7} ("#;
        assert!(turn.faults[0].starts_with(said), "{:?}", turn.faults);
        assert!(turn.faults[0].contains("approve"), "{:?}", turn.faults);
    }
}
