use serde_json::{Value, json};
use switchboard_domain::{
    ApprovalDecision, ApprovalScope, ModelId, Part, Principal, ToolDefinition, ToolInput,
    ToolOutput, ToolProgress, ToolUse,
};

use super::{super::tests::answer, *};
use crate::{RunOptions, ToolCallOutcome};
use crate::{
    policy::approval::{RememberedDecisions, Requester},
    tools::results::FullResult,
};

fn turns(count: usize) -> Vec<Arc<Message>> {
    let turn = |n: usize| match n % 2 {
        0 => Message::user(format!("question {n}")),
        _ => Message::assistant(format!("answer {n}")),
    };
    (0..count).map(turn).map(Arc::new).collect()
}

fn tool() -> Arc<ToolDefinition> {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    Arc::new(ToolDefinition::new("look", "Looks.", schema))
}

fn run_after(before: usize) -> Run {
    let mut messages = turns(before);
    messages.push(Arc::new(Message::user("and now?")));
    Run::new(
        "run",
        ModelId::new("p", "m"),
        messages,
        RunOptions::default(),
    )
}

/// Lets the model call the tool once with each of these ids.
fn calls(run: &mut Run, ids: &[&str]) -> Vec<RunEventKind> {
    drop(run.begin_model_call(vec![tool()]));
    let call = |id: &&str| {
        let input = ToolInput::parse_input(r#"{"n":1}"#);
        Part::ToolUse(ToolUse::new(*id, "look", input))
    };
    let parts = ids.iter().map(call).collect();
    run.apply_model_response(answer(parts, FinishReason::ToolUse))
        .unwrap()
}

fn finishes(run: &mut Run, id: &str, text: &str) -> Vec<RunEventKind> {
    run.record_tool_start(id).unwrap();
    let output = ToolCallOutcome::new(Ok(ToolOutput::text(text)), 1);
    run.apply_tool_outcome(id, output).unwrap()
}

fn whole(run: &Run) -> RunSnapshot {
    run.take_snapshot(SnapshotPosition::default()).unwrap().0
}

#[test]
fn a_state_does_not_grow_with_the_conversation_before_the_run() {
    let length = |before: usize| {
        let mut run = run_after(before);
        calls(&mut run, &["a", "b"]);
        finishes(&mut run, "a", "seen");
        let mark = SnapshotPosition {
            messages: before + 1,
            initial_messages: before + 1,
        };
        let (snapshot, _) = run.take_snapshot(mark).unwrap();
        assert_eq!(
            snapshot.messages.len(),
            1,
            "the answer, and nothing before it"
        );
        let state: Value = serde_json::from_str(&snapshot.state).unwrap();
        // The snapshot contains the number of messages twice, in decimal digits.
        assert_eq!(state["message_count"], before + 2);
        assert_eq!(state["state"]["initial_messages"], before + 1);
        snapshot.state.len() - 2 * before.to_string().len()
    };
    // The estimated size of the request also has more digits.
    assert!(length(1_000) <= length(10) + 2);
}

#[test]
fn the_complete_text_of_a_truncated_result_is_stored_once() {
    let mut run = run_after(0);
    let options = Arc::make_mut(&mut run.state.options);
    options.results.max_tokens = 10;
    options.results.preview_tokens = 1;
    let text = "complete text ".repeat(100);
    let mut stored: Vec<Arc<Message>> = Vec::new();
    let mut mark = SnapshotPosition::default();
    let mut save = |run: &Run, is_new: bool| {
        let (snapshot, next) = run.take_snapshot(mark).unwrap();
        assert!(!snapshot.state.contains("complete text"));
        let written = serde_json::to_string(&snapshot.messages).unwrap();
        assert_eq!(written.contains(&text), is_new, "{written}");
        stored.truncate(usize::try_from(snapshot.from).unwrap());
        stored.extend(snapshot.messages);
        mark = next;
        let whole = RunSnapshot {
            from: 0,
            messages: stored.clone(),
            ..snapshot
        };
        let restored = Run::from_snapshot(whole).unwrap();
        assert_eq!(restored.messages, run.messages);
        let result = restored.state.complete_results.find_result("a");
        assert_eq!(result.map(FullResult::full_text), Some(&*text));
    };
    calls(&mut run, &["a", "b"]);
    finishes(&mut run, "a", &text);
    save(&run, true);
    finishes(&mut run, "b", "seen");
    save(&run, false);
    calls(&mut run, &["c"]);
    save(&run, false);
    assert_restored(&run);
}

#[test]
fn a_snapshot_contains_no_shared_decisions() {
    let (own, mut shared) = (run_after(0), run_after(0));
    let deny = ApprovalDecision::Deny {
        reason: None,
        scope: ApprovalScope::Session,
    };
    let requester = Requester {
        principal: &Principal::default(),
        session: "a-session",
    };
    let remember = |decisions: &mut RememberedDecisions| {
        assert!(decisions.remember_decision(&requester, &tool(), &deny, None));
    };
    own.state.decisions.change_decisions(remember);
    let of_all = SharedDecisions::default();
    of_all.change_decisions(remember);
    shared.set_shared_decisions(of_all);
    assert!(whole(&own).state.contains("a-session"));
    assert!(!whole(&shared).state.contains("a-session"));
    // A run that is serialized as one value contains the decisions.
    let text = serde_json::to_string(&shared).unwrap();
    assert!(text.contains("a-session"));
}

#[test]
fn an_inconsistent_snapshot_is_refused() {
    let run = run_after(2);
    let mut torn = whole(&run);
    torn.messages.pop();
    let error = Run::from_snapshot(torn).unwrap_err();
    let expected = "the state of the run has 3 messages, and 2 are stored";
    assert_eq!(error.to_string(), expected);
    let unknown = RunSnapshot {
        state: r#"{"format":1,"message_count":0,"state":7}"#.into(),
        from: 0,
        messages: Vec::new(),
    };
    assert!(matches!(
        Run::from_snapshot(unknown),
        Err(RestoreError::State(_))
    ));
}

#[test]
fn pending_events_are_emitted_once() {
    let mut run = run_after(0);
    let told = calls(&mut run, &["a", "b"]);
    assert_eq!(told.len(), 3);
    let progress = RunEventKind::ToolProgressed {
        id: "z".into(),
        progress: ToolProgress {
            progress: 0.5,
            total: None,
            message: None,
        },
    };
    run.state.next_event = 8;
    run.state.pending_events = told.clone();
    let taken_up = |stored: &[RunEventKind], last: u64| {
        let mut run = Run::from_snapshot(whole(&run)).unwrap();
        run.resume_event_numbering(last, stored);
        assert!(run.state.pending_events.is_empty());
        (run.caches.replayed_events.clone(), run.next_event_number())
    };
    assert_eq!(taken_up(&[], 7), (told.clone(), 8));
    // Events of other calls may come between these events.
    let some = [progress, told[0].clone()];
    assert_eq!(taken_up(&some, 9), (told[1..].to_vec(), 10));
    let mut all = told.clone();
    all.push(RunEventKind::ToolStarted { id: "a".into() });
    assert_eq!(taken_up(&all, 11), (Vec::new(), 12));
}

/// Returns a tool whose input contains a text.
fn writing() -> Arc<ToolDefinition> {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    Arc::new(ToolDefinition::new("write", "Writes.", schema))
}

fn long() -> String {
    "word ".repeat(10_000)
}

/// Lets the model call the tool with a long text, once with each of these ids.
fn writes(run: &mut Run, ids: &[&str]) {
    drop(run.begin_model_call(vec![writing()]));
    let call = |id: &&str| {
        let input = ToolInput::parse_input(&json!({"text": long(), "id": id}).to_string());
        Part::ToolUse(ToolUse::new(*id, "write", input))
    };
    let parts = ids.iter().map(call).collect();
    run.apply_model_response(answer(parts, FinishReason::ToolUse))
        .unwrap();
}

/// Asserts that a restored run serializes to the same value.
fn assert_restored(run: &Run) {
    let (snapshot, _) = run.take_snapshot(SnapshotPosition::default()).unwrap();
    let mut restored = Run::from_snapshot(snapshot).unwrap();
    // The tools are listed again after a restore.
    restored.state.turn.tools.clone_from(&run.state.turn.tools);
    let value = |run: &Run| serde_json::to_value(run).unwrap();
    assert_eq!(value(&restored), value(run));
}

#[test]
fn inserted_examples_are_stored() {
    let mut run = run_after(1);
    let (_, mark) = run.take_snapshot(SnapshotPosition::default()).unwrap();
    run.add_examples(vec![Message::user("2 + 2?"), Message::assistant("4")]);
    let (snapshot, mark) = run.take_snapshot(mark).unwrap();
    assert_eq!((snapshot.from, &snapshot.messages), (0, &run.messages));
    calls(&mut run, &["a"]);
    let (snapshot, _) = run.take_snapshot(mark).unwrap();
    assert_eq!((snapshot.from, snapshot.messages.len()), (4, 1));
}

#[test]
fn a_state_contains_neither_inputs_nor_results_of_the_conversation() {
    let mut run = run_after(0);
    Arc::make_mut(&mut run.state.options).approval = crate::ApprovalPolicy::Ask.into();
    let ids = ["a", "b", "c"];
    writes(&mut run, &ids);
    assert_restored(&run);
    // The person replaces one input with an empty object.
    let inputs = [Some(JsonObject::new()), None, None];
    for (id, input) in ids.iter().zip(inputs) {
        let scope = ApprovalScope::Once;
        run.apply_decision(id, ApprovalDecision::Allow { input, scope })
            .unwrap();
    }
    for id in ids {
        assert!(!whole(&run).state.contains("word word"));
        finishes(&mut run, id, "seen");
        assert_restored(&run);
    }
    let state = whole(&run).state;
    assert!(
        !state.contains("seen") && !state.contains("Writes."),
        "{state}"
    );
    run.cancel_run(None, &HashMap::new());
    let records = run.build_report().unwrap().tool_calls;
    assert_eq!(*records[0].input, json!({}));
    assert_eq!(*records[1].input, json!({"text": long(), "id": "b"}));
    assert_eq!(records[2].result.content[0].as_text(), "seen");
}

#[test]
fn a_state_without_its_conversation_is_refused() {
    let mut run = run_after(0);
    writes(&mut run, &["a"]);
    let mut torn = whole(&run);
    let last = torn.messages.len() - 1;
    torn.messages[last] = Arc::new(Message::assistant("something else"));
    let error = Run::from_snapshot(torn).unwrap_err();
    assert!(matches!(error, RestoreError::Calls), "{error:?}");
}

/// A stored run of format 1. Every later version must read it.
const FORMAT_1: &str = include_str!("../../tests/data/run_format_1.json");

#[test]
fn a_stored_run_of_format_1_is_read() {
    let run: Run = serde_json::from_str(FORMAT_1).unwrap();
    let stored = serde_json::to_value(&run).unwrap();
    assert_eq!(stored.as_object().unwrap().keys().next().unwrap(), "format");
    let mut fixture: Value = serde_json::from_str(FORMAT_1).unwrap();
    // Later versions do not store these fields.
    for (part, field) in [("turn", "request_tokens"), ("ledger", "recent_calls")] {
        let part = fixture["state"][part].as_object_mut().unwrap();
        assert!(part.shift_remove(field).is_some());
    }
    assert_eq!(stored, fixture);
    let expected = "customer-service__create_support_ticket";
    assert_eq!(run.pending_approvals()[0].tool_use.name, expected);
}

#[test]
fn other_formats_are_refused_before_the_state_is_read() {
    let snapshot = |head: Value| RunSnapshot {
        state: head.to_string().into(),
        from: 0,
        messages: Vec::new(),
    };
    for format in [json!(0), json!(2), json!("2")] {
        let head = json!({"format": format, "state": "another form"});
        let error = Run::from_snapshot(snapshot(head.clone())).unwrap_err();
        assert!(matches!(error, RestoreError::Format(_)), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(&format!("format {format}")), "{text}");
        assert!(text.contains("commit f008d49"), "{text}");
        let error = serde_json::from_value::<Run>(head).unwrap_err();
        assert!(error.to_string().contains("commit f008d49"), "{error}");
    }
    // Snapshots before format 1 do not have the key `format`.
    let error = Run::from_snapshot(snapshot(json!({"version": 1, "id": "r"}))).unwrap_err();
    assert!(error.to_string().contains("format unknown"), "{error}");
}
