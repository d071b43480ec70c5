//! Defects of the source systems, each with its name. The tests show that they do not occur.
//! docs/orchestration.md names the tests of other defects.

use std::sync::Arc;

use serde_json::json;
use switchboard_domain::{
    FinishReason, ModelEvent, ModelId, Part, PartStart, ProviderState, ToolChoiceOutcome,
    ToolOrigin,
};
use switchboard_orchestration::{Agent, RunEventKind};

use crate::support::{Answer, Scripted, Tools, ask, echo, echoing, picked, tool};

/// A response with signed reasoning and a signed tool call.
fn thinks_and_calls(signature: &str) -> Answer {
    let minter = ModelId::new("test", "scripted");
    let state = |data: &str| ProviderState::new_for_model(&minter, json!({ "signature": data }));
    Answer::Streams(vec![
        ModelEvent::Started {
            response_id: None,
            model: None,
            tool_choice: ToolChoiceOutcome::Native,
        },
        ModelEvent::PartStarted {
            index: 0,
            part: PartStart::Reasoning,
        },
        ModelEvent::ReasoningDelta {
            index: 0,
            text: "I should look.".into(),
        },
        ModelEvent::PartState {
            index: 0,
            state: Box::new(state(signature)),
        },
        ModelEvent::PartFinished { index: 0 },
        ModelEvent::PartStarted {
            index: 1,
            part: PartStart::ToolUse {
                id: format!("call_{signature}"),
                name: "srv__do".into(),
            },
        },
        ModelEvent::ToolInputDelta {
            index: 1,
            json: r#"{"n":1}"#.into(),
        },
        ModelEvent::PartState {
            index: 1,
            state: Box::new(state("of the call")),
        },
        ModelEvent::PartFinished { index: 1 },
        ModelEvent::Finished {
            reason: FinishReason::ToolUse,
            raw: None,
        },
    ])
}

#[tokio::test]
async fn thinking_signatures_are_lost_in_recursion() {
    let model = Scripted::new([
        thinks_and_calls("first"),
        thinks_and_calls("second"),
        Answer::Says("ok"),
    ]);
    let agent = Agent::new(model.clone()).with_tools(echoing(&["do"]));
    ask(&agent, "go").await;
    let last = model.request(2);
    let states: Vec<_> = last
        .messages
        .iter()
        .flat_map(|message| &message.parts)
        .filter_map(Part::provider_state)
        .map(|state| state.data["signature"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["first", "of the call", "second", "of the call"]);
    // The reasoning stays in its message, before the tool call that followed it.
    assert!(matches!(
        &last.messages[1].parts[..],
        [Part::Reasoning(thought), Part::ToolUse(_)] if thought.text == "I should look."
    ));
}

#[tokio::test]
async fn one_tool_named_status_fails_its_whole_server() {
    let model = Scripted::calling(&[
        ("a", "srv__status", json!({"n": 1})),
        ("b", "srv__other", json!({"n": 1})),
    ]);
    let tools = echoing(&["status", "other"]);
    let (_, report) = ask(&Agent::new(model).with_tools(tools.clone()), "go").await;
    assert_eq!(tools.called(), ["srv__status", "srv__other"]);
    assert!(report.tool_calls.iter().all(|call| !call.is_error));
}

#[tokio::test]
async fn names_are_split_on_the_wrong_server() {
    // The tool `a__b` of server `c` and the tool `b` of server `c__a` would have the same name.
    let named = |alias: &str, server: &str, own: &str| {
        let mut tool = tool(own);
        tool.name = alias.into();
        tool.origin = Some(ToolOrigin {
            server: server.into(),
            tool: own.into(),
        });
        tool
    };
    let model = Scripted::calling(&[
        ("1", "c__a__b", json!({"n": 1})),
        ("2", "c__a__b_2", json!({"n": 1})),
    ]);
    let tools = Arc::new(
        Tools::new()
            .with(named("c__a__b", "c", "a__b"), echo)
            .with(named("c__a__b_2", "c__a", "b"), echo),
    );
    let (events, report) = ask(&Agent::new(model).with_tools(tools.clone()), "go").await;
    assert_eq!(
        tools.called(),
        ["c__a__b", "c__a__b_2"],
        "the host gets the whole name"
    );
    let planned: Vec<_> = picked(&events, |kind| match kind {
        RunEventKind::ToolPlanned { server, tool, .. } => {
            Some((server.clone().unwrap(), tool.clone()))
        }
        _ => None,
    });
    let expected = [("c", "a__b"), ("c__a", "b")];
    assert_eq!(
        planned,
        expected.map(|(server, tool)| (server.to_owned(), tool.to_owned()))
    );
    assert_eq!(report.tool_calls[1].server.as_deref(), Some("c__a"));
}
