use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;

use super::*;

fn event(seq: u64, kind: RunEventKind) -> RunEvent {
    RunEvent {
        run_id: "run".into(),
        seq,
        time: Timestamp::UNIX_EPOCH,
        kind,
    }
}

fn emitted(events: impl IntoIterator<Item = RunEventKind>) -> Vec<String> {
    let mut sequencer = EventSequencer::default();
    let mut output = Vec::new();
    for (seq, kind) in (1..).zip(events) {
        sequencer.handle_event(&event(seq, kind), &mut |event| {
            output.push(match event {
                ClientEvent::RunStarted { .. } => "began".to_owned(),
                ClientEvent::StepStarted { step, .. } => format!("step {step}"),
                ClientEvent::StepFinished { step } => format!("step {step} done"),
                ClientEvent::PartStarted(part) => {
                    format!("part {} {}", part.number, part.starts_paragraph)
                }
                ClientEvent::PartDelta(part, text) => format!("part {}: {text}", part.number),
                ClientEvent::PartFinished(part) => format!("part {} done", part.number),
                ClientEvent::CallStarted(call) => format!("call {}", call.id),
                ClientEvent::CallInputDelta(call, json) => format!("call {}: {json}", call.id),
                ClientEvent::CallInputReady(call, _) => format!("call {} ready", call.id),
                ClientEvent::CallDropped(call) => format!("call {} dropped", call.id),
                ClientEvent::TextSuperseded => "void".to_owned(),
                ClientEvent::Other(event) => event_to_json(event).0,
                other => format!("{other:?}"),
            });
        });
    }
    output
}

fn started(resumed: bool) -> RunEventKind {
    RunEventKind::RunStarted {
        model: ModelId::new("test", "one"),
        resumed,
    }
}

fn asked(step: u32) -> RunEventKind {
    RunEventKind::ModelCallStarted {
        step,
        model: ModelId::new("test", "one"),
        tools: 0,
        tool_choice: switchboard_domain::ToolChoice::Auto,
    }
}

fn text(text: &str) -> RunEventKind {
    RunEventKind::TextDelta { text: text.into() }
}

fn input_started(id: &str) -> RunEventKind {
    RunEventKind::ToolInputStarted {
        id: id.into(),
        name: "desk__look".into(),
    }
}

#[test]
fn what_a_model_had_begun_to_say_when_its_process_ended_is_taken_back() {
    let planned = RunEventKind::ToolPlanned {
        id: "a".into(),
        server: Some("desk".into()),
        tool: "look".into(),
        input: Arc::new(json!({})),
    };
    let emitted = emitted([
        started(false),
        asked(1),
        text("I lo"),
        input_started("a"),
        started(true),
        asked(1),
        text("I look."),
        input_started("a"),
        planned,
    ]);
    assert_eq!(
        emitted,
        [
            "began",
            "step 1",
            "part 1 false",
            "part 1: I lo",
            "part 1 done",
            "call a",
            "call a dropped",
            "void",
            "run_started",
            "step 1 done",
            "step 1",
            "part 2 true",
            "part 2: I look.",
            "part 2 done",
            // The client has already seen the end of the first call with this id, so the second
            // call gets the id `a~1`.
            "call a~1",
            "call a~1 ready",
        ]
    );
}

#[test]
fn a_repeated_attempt_drops_the_call_that_was_begun() {
    let retried = RunEventKind::ModelCallRetried {
        step: 1,
        attempt: 2,
        delay_ms: 500,
        reason: "cut off".into(),
    };
    let emitted = emitted([
        started(false),
        asked(1),
        input_started("a"),
        retried,
        text("It is so."),
    ]);
    assert_eq!(
        emitted,
        [
            "began",
            "step 1",
            "call a",
            "call a dropped",
            "model_call_retried",
            "part 1 false",
            "part 1: It is so.",
        ]
    );
}

#[test]
fn text_after_a_tool_call_is_a_separate_paragraph_but_a_continued_answer_is_not() {
    let again = RunEventKind::AskedAgain {
        attempt: 1,
        reason: "cut off".into(),
    };
    let emitted = emitted([
        started(false),
        asked(1),
        text("so"),
        again,
        asked(2),
        text(" on"),
    ]);
    assert!(emitted.contains(&"part 2 false".to_owned()), "{emitted:?}");
    assert!(!emitted.contains(&"void".to_owned()), "{emitted:?}");
}

#[test]
fn a_formatted_answer_that_is_asked_for_again_replaces_the_one_before() {
    let formatting = RunEventKind::PhaseStarted {
        phase: RunPhase::Formatting,
        mode: None,
        gathering_ended: None,
    };
    let again = RunEventKind::AskedAgain {
        attempt: 1,
        reason: "no form".into(),
    };
    let emitted = emitted([
        started(false),
        formatting,
        asked(1),
        text("x"),
        again,
        asked(2),
        text("y"),
    ]);
    let void = emitted.iter().position(|event| event == "void").unwrap();
    assert_eq!(emitted[void - 1], "part 1 done");
    assert!(
        emitted[void..].contains(&"part 2 true".to_owned()),
        "{emitted:?}"
    );
}
