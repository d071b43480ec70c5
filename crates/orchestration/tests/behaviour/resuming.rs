//! Stored runs that are resumed in a changed environment: removed or changed tools, another model,
//! a full disk.

use std::sync::Arc;

use serde_json::json;
use switchboard_domain::{ApprovalDecision, WarningKind};
use switchboard_orchestration::{
    Agent, Outcome, Run, RunEvent, RunEventKind, RunOptions, ToolFailure,
    persistence::checkpoint::Checkpoint,
};

use crate::support::{
    Answer, Person, Scripted, Shelf, Tools, agent_with, allow_once, asking, assert_grammar,
    assert_whole, calls, deny, echo, echoing, elsewhere, failures, has, played, reading, results,
    tool,
};

/// Starts a run whose model makes these calls. The approver returns these decisions and then
/// `Later`, so the run waits.
async fn parked(
    tools: Tools,
    made: Answer,
    said: Vec<ApprovalDecision>,
    options: RunOptions,
) -> Arc<Shelf> {
    let shelf = Arc::new(Shelf::default());
    let agent = agent_with(&Scripted::new([made]), &Arc::new(tools), options)
        .with_approver(Person::who_says(
            said.into_iter().chain([ApprovalDecision::Later]),
        ))
        .with_checkpoints(shelf.clone());
    let (events, run) = played(agent.ask("go")).await;
    assert_grammar(&events);
    assert!(run.outcome().is_none(), "{events:#?}");
    shelf
}

/// Resumes the run with this model, these tools and this approver.
async fn goes_on(
    shelf: &Arc<Shelf>,
    model: &Arc<Scripted>,
    tools: &Arc<Tools>,
    person: &Arc<Person>,
) -> (Vec<RunEvent>, Run) {
    let agent = Agent::new(model.clone())
        .with_tools(tools.clone())
        .with_approver(person.clone())
        .with_checkpoints(shelf.clone());
    played(agent.resume_run(shelf.run())).await
}

fn write(id: &'static str) -> (&'static str, &'static str, serde_json::Value) {
    (id, "srv__write", json!({"n": 1}))
}

#[tokio::test]
async fn a_call_of_a_removed_tool_can_be_denied() {
    let tools = Tools::new().with(tool("write"), echo);
    let shelf = parked(tools, calls(&[write("a")]), vec![], asking()).await;
    let model = Scripted::new([Answer::Says("I see.")]);
    let (events, run) = goes_on(
        &shelf,
        &model,
        &Arc::new(Tools::new()),
        &Person::who_says([deny("it is gone")]),
    )
    .await;
    assert_grammar(&events);
    assert_whole(run.messages());
    assert_eq!(run.outcome(), Some(Outcome::Completed));
    let expected = [Some(ToolFailure::Denied)];
    assert_eq!(failures(&run.build_report().unwrap()), expected);
    assert!(results(&model, 0)[0].contains("it is gone"));
}

#[tokio::test]
async fn an_approval_of_an_unavailable_tool_waits_until_it_is_available() {
    let tools = || Tools::new().with(tool("write"), echo);
    let shelf = parked(tools(), calls(&[write("a")]), vec![], asking()).await;
    for answer in [allow_once(), ApprovalDecision::NobodyThere] {
        let (events, run) = goes_on(
            &shelf,
            &Scripted::new([]),
            &Arc::new(Tools::new()),
            &Person::who_says([answer]),
        )
        .await;
        assert!(run.outcome().is_none());
        assert!(matches!(
            &events.last().unwrap().kind,
            RunEventKind::RunParked { waiting } if waiting == &["a"]
        ));
        let told = has(&events, |kind| {
            matches!(kind, RunEventKind::Warning { warning }
                if warning.kind == WarningKind::ToolUnavailable && warning.message.contains("srv__write"))
        });
        assert!(told, "the warning states the reason for the wait");
    }
    let there = Arc::new(tools());
    let model = Scripted::new([Answer::Says("ok")]);
    let (_, run) = goes_on(&shelf, &model, &there, &Person::who_says([allow_once()])).await;
    assert_eq!(run.outcome(), Some(Outcome::Completed));
    assert_eq!(there.called(), ["srv__write"]);
}

#[tokio::test]
async fn a_call_without_approval_is_checked_against_the_rules_again() {
    let made = || calls(&[("a", "srv__look", json!({"n": 1})), write("b")]);
    let both = || {
        Tools::new()
            .with(reading("look"), echo)
            .with(tool("write"), echo)
    };
    let mut changes = tool("look");
    changes.description = "Looks, and tidies up.".into();
    let mut asks_for_more = reading("look");
    asks_for_more.input_schema["properties"]["m"] = json!({"type": "integer"});
    asks_for_more.input_schema["required"] = json!(["n", "m"]);
    for (now, asked, failure) in [
        (reading("look"), vec!["b"], None),
        (elsewhere(reading("look")), vec!["b"], None),
        (changes, vec!["a", "b"], None),
        (asks_for_more, vec!["b"], Some(ToolFailure::InvalidInput)),
    ] {
        let shelf = parked(both(), made(), vec![], asking()).await;
        let tools = Arc::new(both());
        let server = now.origin.as_ref().unwrap().server.clone();
        tools.define(now);
        let person = Person::who_says([allow_once(), allow_once()]);
        let model = Scripted::new([Answer::Says("ok")]);
        let (_, run) = goes_on(&shelf, &model, &tools, &person).await;
        let about: Vec<_> = person
            .asked()
            .into_iter()
            .map(|it| it.tool_use.id)
            .collect();
        assert_eq!(about, asked);
        assert_eq!(failures(&run.build_report().unwrap())[0], failure);
        let report = run.build_report().unwrap();
        assert_eq!(report.tool_calls[0].server, Some(server));
    }
}

#[tokio::test]
async fn a_tool_that_is_read_only_after_the_resumption_needs_a_new_approval() {
    for said in [allow_once(), deny("it is gone")] {
        let shelf = Shelf::keeping(Checkpoint::Settled);
        let model = Scripted::new([
            calls(&[write("a"), ("b", "srv__look", json!({"n": 1}))]),
            Answer::Says("ok"),
        ]);
        let tools = Tools::new()
            .with(tool("write"), echo)
            .with(reading("look"), echo);
        let options = RunOptions {
            stop_after_denial: false,
            ..asking()
        };
        let agent = agent_with(&model, &Arc::new(tools), options)
            .with_approver(Person::who_says([said]))
            .with_checkpoints(shelf.clone());
        played(agent.ask("go")).await;

        let now = Arc::new(Tools::new().with(reading("write"), echo));
        let person = Person::who_says([deny("it is gone")]);
        let model = Scripted::new([calls(&[write("c")]), Answer::Says("ok")]);
        goes_on(&shelf, &model, &now, &person).await;
        assert!(person.asked()[0].redefined);
        assert!(now.called().is_empty());
    }
}

#[tokio::test]
async fn an_equal_definition_of_another_server_is_another_tool() {
    let tools = Tools::new().with(tool("write"), echo);
    let shelf = parked(tools, calls(&[write("a")]), vec![], asking()).await;
    let there = Arc::new(Tools::new().with(elsewhere(tool("write")), echo));
    let person = Person::who_says([allow_once()]);
    let model = Scripted::new([Answer::Says("ok")]);
    let (_, run) = goes_on(&shelf, &model, &there, &person).await;
    let asked = person.asked();
    assert!(asked[0].redefined);
    assert_eq!(asked[0].origin.as_ref().unwrap().server, "lib");
    assert_eq!(
        run.build_report().unwrap().tool_calls[0].server.as_deref(),
        Some("lib")
    );
}

#[tokio::test]
async fn a_guarded_call_with_an_invalid_input_stops_later_calls() {
    let guarded = RunOptions {
        guards: vec![
            serde_json::from_value(json!({"tool": "srv__check", "when": "error"})).unwrap(),
        ],
        ..asking()
    };
    let both = || {
        Tools::new()
            .with(tool("check"), echo)
            .with(tool("write"), echo)
    };
    let made = calls(&[("a", "srv__check", json!({"n": 1})), write("b")]);
    let shelf = parked(both(), made, vec![], guarded).await;
    let tools = Arc::new(both());
    let mut other = tool("check");
    other.input_schema["properties"]["n"] = json!({"type": "boolean"});
    tools.define(other);
    let model = Scripted::new([Answer::Says("ok")]);
    let (_, run) = goes_on(&shelf, &model, &tools, &Person::who_says([])).await;
    let expected = [Some(ToolFailure::InvalidInput), Some(ToolFailure::Skipped)];
    assert_eq!(failures(&run.build_report().unwrap()), expected);
    assert!(tools.called().is_empty());
}

#[tokio::test]
async fn a_call_whose_intent_cannot_be_stored_does_not_start() {
    let shelf = Shelf::failing_at(Checkpoint::Leaving);
    let mut again = tool("again");
    again.annotations.idempotent = Some(true);
    let tools = Arc::new(
        Tools::new()
            .with(reading("look"), echo)
            .with(tool("write"), echo)
            .with(again, echo),
    );
    let model = Scripted::calling(&[
        write("a"),
        ("b", "srv__look", json!({"n": 1})),
        ("c", "srv__again", json!({"n": 1})),
    ]);
    let agent = Agent::new(model.clone())
        .with_tools(tools.clone())
        .with_checkpoints(shelf);
    let (events, run) = played(agent.ask("go")).await;
    assert_grammar(&events);
    assert_whole(run.messages());
    assert_eq!(tools.called(), ["srv__look", "srv__again"]);
    let expected = [Some(ToolFailure::NotStored), None, None];
    assert_eq!(failures(&run.build_report().unwrap()), expected);
    assert!(results(&model, 1)[0].contains("could not be stored"));
    let started = has(
        &events,
        |kind| matches!(kind, RunEventKind::ToolStarted { id } if id == "a"),
    );
    assert!(!started, "it never did");
    let warnings = run.build_report().unwrap().warnings;
    assert!(
        warnings
            .iter()
            .any(|it| it.kind == WarningKind::NotStored && it.message.contains("the disk is full"))
    );
}

#[tokio::test]
async fn calls_that_start_together_are_stored_together() {
    let ids: Vec<&'static str> = (0..24)
        .map(|n| &*Box::leak(n.to_string().into_boxed_str()))
        .collect();
    let mut solo = tool("solo");
    solo.sequential = true;
    for (definition, leaving) in [
        // At most eight calls run at the same time.
        (tool("write"), 3),
        // The calls run one after the other.
        (solo, 24),
        (reading("look"), 0),
    ] {
        let shelf = Arc::new(Shelf::default());
        let name: &'static str = Box::leak(definition.name.clone().into_boxed_str());
        let made: Vec<_> = ids.iter().map(|id| (*id, name, json!({"n": 1}))).collect();
        let model = Scripted::new([calls(&made), Answer::Says("ok")]);
        let tools = Arc::new(Tools::new().with(definition, echo));
        let agent = Agent::new(model)
            .with_tools(tools.clone())
            .with_checkpoints(shelf.clone());
        let (events, _) = played(agent.ask("go")).await;
        assert_grammar(&events);
        assert_eq!(tools.called().len(), 24);
        assert_eq!(shelf.times(Checkpoint::Leaving), leaving, "{name}");
        assert_eq!(shelf.times(Checkpoint::Settled), 1, "{name}");
    }
}

#[tokio::test]
async fn ids_of_the_earlier_conversation_are_not_reused() {
    let tools = echoing(&["do"]);
    let one = || calls(&[("0", "srv__do", json!({"n": 1}))]);
    let agent = Agent::new(Scripted::new([one(), Answer::Says("ok")])).with_tools(tools.clone());
    let (_, run) = played(agent.ask("go")).await;
    let mut messages = run.messages().to_vec();
    messages.push(Arc::new(switchboard_domain::Message::user("Once more.")));

    let model = Scripted::new([one(), one(), Answer::Says("ok")]);
    let (events, run) = played(Agent::new(model).with_tools(tools).run(messages)).await;
    assert_grammar(&events);
    assert_whole(run.messages());
    let mut ids: Vec<_> = run
        .messages()
        .iter()
        .flat_map(|message| message.tool_uses())
        .map(|call| call.id.as_str())
        .collect();
    assert_eq!(ids, ["0", "0_2", "0_3"]);
    ids.dedup();
    assert_eq!(ids.len(), 3);
    // The event for the start of the input has the same id.
    let written = events.iter().find_map(|event| match &event.kind {
        RunEventKind::ToolInputStarted { id, .. } => Some(id.as_str()),
        _ => None,
    });
    assert_eq!(written, Some("0_2"));
}
