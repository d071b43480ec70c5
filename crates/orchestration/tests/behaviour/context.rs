//! Values of the host with placeholders for the session and the principal.

use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_domain::{ApprovalDecision, Principal, ToolDefinition};
use switchboard_orchestration::{
    Agent, Run, ToolFailure,
    tools::arguments::{ContextInjection, ContextTemplate},
    tools::results::{CacheOptions, ResultCache},
};

use crate::support::{
    Answer, Person, Scripted, Shelf, Tools, agent_with, allow_once, ask, asking, calls, echo,
    played, reading, results, streamed, tool,
};

fn principal(user: &str) -> Principal {
    Principal {
        tenant: "acme".to_owned(),
        user: user.to_owned(),
    }
}

/// Returns a tool that requests the conversation.
fn with_conversation(mut tool: ToolDefinition, required: &Value) -> ToolDefinition {
    tool.input_schema = json!({
        "type": "object",
        "properties": {"n": {"type": "integer"}, "databaseContext": {"type": "object"}},
        "required": required,
        "additionalProperties": false,
    });
    tool
}

fn context() -> ContextInjection {
    let template = json!({
        "conversationId": "${session.id}",
        "owner": "${principal.tenant}/${principal.user}",
    });
    let template = ContextTemplate::parse(&template).unwrap();
    ContextInjection::new().with_template("databaseContext", template)
}

fn received(tools: &Tools) -> Vec<Value> {
    let called = tools.called.lock().unwrap();
    let inputs = called.iter().map(|(_, input)| input);
    inputs
        .map(|input| input["databaseContext"].clone())
        .collect()
}

#[tokio::test]
async fn sessions_that_share_an_agent_and_its_cache_get_separate_values() {
    let definition = with_conversation(reading("state"), &json!(["n", "databaseContext"]));
    let tools = Arc::new(Tools::new().with(definition, echo));
    let asked = calls(&[("a", "srv__state", json!({"n": 1}))]);
    let answers = (0..8).flat_map(|_| [asked.clone(), Answer::Says("ok")]);
    let agent = Agent::new(Scripted::new(answers))
        .with_tools(tools.clone())
        .with_context_injection(context())
        .with_result_cache(Arc::new(ResultCache::new(CacheOptions::default())));
    let mut expected = Vec::new();
    for again in [false, true] {
        for (user, session) in [("ann", "a1"), ("bob", "b1"), ("ann", "a2"), ("bob", "b2")] {
            let agent = agent
                .clone()
                .with_principal(principal(user), Some(session.to_owned()));
            let (_, report) = ask(&agent, "go").await;
            // Only the same session gets the cached result.
            assert_eq!(report.tool_calls[0].cached, again, "{user} {session}");
            if !again {
                let owner = format!("acme/{user}");
                expected.push(json!({"conversationId": session, "owner": owner}));
            }
        }
    }
    assert_eq!(received(&tools), expected);
}

#[tokio::test]
async fn a_resumed_run_gets_the_values_of_its_session() {
    let definition = with_conversation(tool("write"), &json!(["n", "databaseContext"]));
    let tools = Arc::new(Tools::new().with(definition, echo));
    let agent = |answers: Vec<Answer>, user: &str, session: &str, says| {
        agent_with(&Scripted::new(answers), &tools, asking())
            .with_context_injection(context())
            .with_approver(Person::always(says))
            .with_checkpoints(Arc::new(Shelf::default()))
            .with_principal(principal(user), Some(session.to_owned()))
    };
    let asked = calls(&[("a", "srv__write", json!({"n": 1}))]);
    let first = agent(vec![asked], "ann", "a1", ApprovalDecision::Later);
    let (_, run) = played(first.ask("go")).await;
    let stored = serde_json::to_string(&run).unwrap();
    assert!(tools.called().is_empty());
    let run: Run = serde_json::from_str(&stored).unwrap();
    let other = agent(vec![Answer::Says("ok")], "bob", "b1", allow_once());
    let (events, _) = played(other.resume_run(run)).await;
    assert_eq!(streamed(&events), "ok");
    let expected = [json!({"conversationId": "a1", "owner": "acme/ann"})];
    assert_eq!(received(&tools), expected);
}

#[tokio::test]
async fn a_call_without_a_required_value_is_not_executed() {
    let required = with_conversation(tool("write"), &json!(["n", "databaseContext"]));
    let optional = with_conversation(tool("state"), &json!(["n"]));
    let tools = Arc::new(Tools::new().with(required, echo).with(optional, echo));
    let forged = json!({"n": 1, "databaseContext": {"conversationId": "another"}});
    let model = Scripted::new([
        calls(&[("a", "srv__write", json!({"n": 1}))]),
        calls(&[("b", "srv__state", forged)]),
        calls(&[("c", "srv__state", json!({"n": 2}))]),
        Answer::Says("ok"),
    ]);
    let agent = Agent::new(model.clone())
        .with_tools(tools.clone())
        .with_context_injection(ContextInjection::new().with_hidden_argument("databaseContext"));
    let (_, report) = ask(&agent, "go").await;
    for tool in &model.request(0).tools {
        let shown = tool.input_schema.to_string();
        assert!(!shown.contains("databaseContext"), "{shown}");
    }
    let failure = report.tool_calls[0].failure;
    assert_eq!(failure, Some(ToolFailure::Unavailable));
    assert_eq!(report.tool_calls[0].attempts, 0);
    let told = &results(&model, 1)[0];
    assert!(told.contains("set `context.databaseContext`"), "{told}");
    for (name, input) in tools.called.lock().unwrap().iter() {
        assert_eq!(name, "srv__state");
        assert!(input.get("databaseContext").is_none(), "{input}");
    }
    assert!(!report.tool_calls[2].is_error);
    assert_eq!(report.tool_calls[2].attempts, 1);
}
