use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use switchboard_domain::{
    ChatModel, ChatRequest, FinishReason, ModelCapabilities, ModelError, ModelErrorKind,
    ModelEvent, ModelStream, PartStart, Role,
};
use switchboard_orchestration::ApprovalPolicy;

use super::*;

/// A model that calls the first tool with the number that is asked for, and then says what the tool gave. Asked for
/// nothing with a number it says hello; asked for the end of the world it fails.
struct Obliging {
    id: ModelId,
    capabilities: ModelCapabilities,
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
impl ChatModel for Obliging {
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
            // What was said before is there in the same conversation.
            let text = format!("Hello, {said}, after {}", request.messages.len());
            let part = PartStart::Text;
            events.push(ModelEvent::PartStarted { index: 0, part });
            events.push(ModelEvent::TextDelta { index: 0, text });
        }
        events.push(ModelEvent::PartFinished { index: 0 });
        let reason = FinishReason::Stop.given_tool_uses(asks);
        events.push(ModelEvent::Finished { reason, raw: None });
        Ok(Box::pin(stream::iter(events.into_iter().map(Ok))))
    }
}

/// Gives agents with the tools that are wished for, and counts how many there were.
#[derive(Default)]
struct Workshop {
    agents: AtomicUsize,
    policy: ApprovalPolicy,
}

#[async_trait]
impl Engine for Workshop {
    async fn agent(&self, wish: Wish<'_>) -> Result<Agent, String> {
        self.agents.fetch_add(1, Ordering::Relaxed);
        if let Some(unknown) = wish.recipe.filter(|it| *it != "known") {
            return Err(format!("there is no recipe `{unknown}`"));
        }
        let capabilities = ModelCapabilities::default();
        let id = wish.model.clone();
        let mut agent = Agent::new(Arc::new(Obliging { id, capabilities }));
        if let Some(tools) = wish.tools {
            agent = agent.with_tools(tools);
        }
        let mut options = agent.options().clone();
        options.approval = self.policy.into();
        Ok(agent.with_options(options))
    }

    fn cost(&self, _: &ModelId, _: &Usage) -> Option<f64> {
        Some(0.5)
    }
}

fn suite(value: Value) -> Suite {
    Suite::read(value).unwrap()
}

fn look_up() -> Value {
    json!([{"name": "look_up", "input_schema": {"type": "object", "properties": {"id": {"type": "integer"}}}, "result": {"name": "Ann"}}])
}

async fn run(suite: &Suite, engine: &Workshop, models: &[&str]) -> Vec<RunResult> {
    let models: Vec<ModelId> = models.iter().map(|it| it.parse().unwrap()).collect();
    let mut told = 0;
    let results = suite.run(engine, &models, 3, |_| told += 1).await;
    assert_eq!(told, results.len());
    results
}

#[tokio::test]
async fn every_scenario_is_run_with_every_model_and_told_in_order() {
    let suite = suite(json!({"repetitions": 2, "scenarios": [
        {"name": "known", "kind": "k", "tools": look_up(), "turns": [
            {"say": "Who is 42?", "calls": [{"tool": "look_up", "server": "scenario", "input": {"id": 42}}], "answer": {"contains": ["Ann"]}},
            {"say": "Thank you", "calls": [], "answer": {"contains": ["after 5"]}},
        ]},
        {"name": "wrong", "tools": look_up(), "turns": [
            {"say": "Who is 42?", "calls": [{"tool": "look_up", "input": {"id": 43}}], "answer": {"lacks": ["Ann"]}},
        ]},
    ]}));
    let engine = Workshop::default();
    let results = run(&suite, &engine, &["acme/one", "acme/two"]).await;
    let told = results.iter().map(|it| {
        (
            it.model.name.as_str(),
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
    assert_eq!(
        (known[0].steps, known[0].cost_usd, known[1].steps),
        (2, Some(0.5), 1)
    );
    assert_eq!(known[0].judgement.calls[0].worth, Worth::Right);
    assert_eq!(known[0].judgement.calls[0].result, r#"{"name":"Ann"}"#);
    let wrong = &results[2].turns[0];
    assert_eq!(wrong.judgement.calls[0].worth, Worth::WrongInput);
    assert_eq!(
        wrong.faults,
        [
            r#"no such call at its place: look_up {"id":43}"#,
            "`Ann` is in the answer"
        ]
    );
}

#[tokio::test]
async fn a_call_where_none_is_expected_is_a_fault() {
    let suite = suite(
        json!({"scenarios": [{"name": "chat", "tools": look_up(), "turns": [{"say": "I am 42", "calls": []}]}]}),
    );
    let results = run(&suite, &Workshop::default(), &["acme/one"]).await;
    assert!(!results[0].passed);
    assert_eq!(
        results[0].turns[0].faults,
        ["`look_up` was called: no such call is expected"]
    );
}

#[tokio::test]
async fn what_comes_after_a_failure_is_not_reached() {
    let calls = json!([{"tool": "look_up", "input": {"id": 7}}]);
    let suite = suite(json!({"scenarios": [
        {"name": "fails", "tools": look_up(), "turns": [{"say": "the end of the world"}, {"say": "Who is 7?", "calls": calls}]},
        {"name": "no recipe", "recipe": "no-such", "tools": look_up(), "turns": [{"say": "Who is 7?", "calls": calls}]},
    ]}));
    let results = run(&suite, &Workshop::default(), &["acme/one"]).await;
    let [failed, unmade] = &results[..] else {
        panic!("{results:?}")
    };
    assert_eq!(
        (failed.passed, failed.turns.len(), failed.turns[0].outcome),
        (false, 1, Outcome::Failed)
    );
    assert!(
        failed.turns[0].faults[0].contains("not that"),
        "{:?}",
        failed.turns[0].faults
    );
    assert_eq!(failed.not_reached, [r#"look_up {"id":7}"#]);
    assert_eq!(
        unmade.error.as_deref(),
        Some("there is no recipe `no-such`")
    );
    assert_eq!(unmade.not_reached.len(), 1);
}

#[tokio::test]
async fn tools_of_a_scenario_change_nothing_and_need_no_word() {
    let suite = suite(
        json!({"scenarios": [{"name": "a", "tools": look_up(), "turns": [{"say": "Who is 1?", "calls": [{"tool": "look_up"}]}]}]}),
    );
    let engine = Workshop {
        policy: ApprovalPolicy::Ask,
        ..Workshop::default()
    };
    assert!(run(&suite, &engine, &["acme/one"]).await[0].passed);
}
