//! Approvals of tool calls.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use serde_json::json;
use switchboard_domain::{ApprovalDecision, ApprovalRequest, ApprovalScope, Approver};
use switchboard_orchestration::{
    Agent, RunEventKind, RunOptions, SharedDecisions, ToolFailure,
    observe::audit::{ApprovalStage, AuditKind, AuditOptions, AuditTrail, DecisionSource},
};
use tracing::{Subscriber, span};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt as _},
};

use crate::support::{
    Answer, Person, Scripted, Shelf, TestClock, Tools, agent_with, allow, ask, asking, calls, deny,
    echo, expiring_options, failures, has, played, reading, results, tool,
};

fn write(id: &'static str) -> Answer {
    calls(&[(id, "srv__write", json!({"n": 1}))])
}

fn tools() -> Arc<Tools> {
    Arc::new(
        Tools::new()
            .with(tool("write"), echo)
            .with(reading("look"), echo),
    )
}

#[tokio::test]
async fn after_a_denial_later_calls_are_not_executed() {
    let model = Scripted::calling(&[
        ("a", "srv__look", json!({"n": 1})),
        ("b", "srv__write", json!({"n": 2})),
        ("c", "srv__look", json!({"n": 3})),
        ("d", "srv__write", json!({"n": 4})),
    ]);
    let person = Person::who_says([deny("not on a Sunday")]);
    let tools = tools();
    let agent = agent_with(&model, &tools, asking()).with_approver(person.clone());
    let (_, report) = ask(&agent, "go").await;
    assert_eq!(tools.called(), ["srv__look"]);
    let failures = failures(&report);
    assert_eq!(
        failures,
        [
            None,
            Some(ToolFailure::Denied),
            Some(ToolFailure::Skipped),
            Some(ToolFailure::Skipped)
        ]
    );
    assert_eq!(person.asked().len(), 1, "a refused call needs no request");
    assert!(results(&model, 1)[1].contains("not on a Sunday"));
}

#[tokio::test]
async fn an_edited_input_is_executed_and_shown() {
    let model = Scripted::new([write("a"), Answer::Says("ok")]);
    let person = Person::who_says([ApprovalDecision::Allow {
        input: json!({"n": 99}).as_object().cloned(),
        scope: ApprovalScope::Once,
    }]);
    let tools = tools();
    let agent = agent_with(&model, &tools, asking()).with_approver(person);
    let (events, report) = ask(&agent, "go").await;
    assert_eq!(tools.called.lock().unwrap()[0].1, json!({"n": 99}));
    assert_eq!(report.tool_calls[0].input, json!({"n": 99}).into());
    assert!(has(&events, |kind| matches!(
        kind,
        RunEventKind::ToolApproved {
            edited: true,
            remembered: false,
            ..
        }
    )));
}

#[tokio::test]
async fn each_scope_of_a_decision_has_its_validity() {
    for (scope, questions) in [
        (ApprovalScope::Once, 4),
        (ApprovalScope::Session, 2),
        (ApprovalScope::Always, 1),
    ] {
        let decisions = SharedDecisions::default();
        let person = Person::who_says(vec![allow(scope); questions]);
        for session in ["one", "two"] {
            let model = Scripted::new([write("a"), write("b"), Answer::Says("ok")]);
            let agent = agent_with(&model, &tools(), asking())
                .with_approver(person.clone())
                .with_shared_decisions(decisions.clone())
                .with_principal(
                    switchboard_domain::Principal::default(),
                    Some(session.into()),
                );
            let (_, report) = ask(&agent, "go").await;
            assert!(report.tool_calls.iter().all(|call| !call.is_error));
        }
        assert_eq!(person.asked().len(), questions, "{scope:?}");
        // Permanent decisions can be stored and restored.
        let stored = serde_json::to_string(&decisions.copy_decisions()).unwrap();
        let decisions = SharedDecisions::new(serde_json::from_str(&stored).unwrap());
        let person = Person::who_says([allow(ApprovalScope::Once)]);
        let agent = agent_with(
            &Scripted::new([write("a"), Answer::Says("ok")]),
            &tools(),
            asking(),
        )
        .with_approver(person.clone())
        .with_shared_decisions(decisions);
        ask(&agent, "go").await;
        assert_eq!(person.asked().is_empty(), scope == ApprovalScope::Always);
    }
}

#[tokio::test]
async fn the_audit_distinguishes_new_and_remembered_denials() {
    let decisions = SharedDecisions::default();
    let person = Person::who_says([ApprovalDecision::Deny {
        reason: None,
        scope: ApprovalScope::Always,
    }]);
    // The second call of the first run waits for approval when the person denies the first call.
    let both = calls(&[
        ("a", "srv__write", json!({"n": 1})),
        ("b", "srv__write", json!({"n": 2})),
    ]);
    let options = RunOptions {
        stop_after_denial: false,
        ..asking()
    };
    let remembered = DecisionSource::Remembered;
    for (answer, expected) in [
        (both, vec![DecisionSource::Approver, remembered]),
        (write("a"), vec![remembered]),
    ] {
        let model = Scripted::new([answer, Answer::Says("ok")]);
        let agent = agent_with(&model, &tools(), options.clone())
            .with_approver(person.clone())
            .with_shared_decisions(decisions.clone());
        let (events, _) = ask(&agent, "go").await;
        let mut trail = AuditTrail::new(AuditOptions::default());
        let records = events.iter().flat_map(|event| trail.create_records(event));
        let denials: Vec<_> = records
            .filter_map(|record| match record.kind {
                AuditKind::Approval(entry) if entry.decision == ApprovalStage::Denied => {
                    Some(entry.by)
                }
                _ => None,
            })
            .collect();
        assert_eq!(denials, expected);
    }
}

/// An approver that never returns a decision.
struct Absent;

#[async_trait]
impl Approver for Absent {
    async fn decide(&self, _: &ApprovalRequest) -> ApprovalDecision {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_expires_and_the_run_continues() {
    let options = expiring_options();
    let tools = tools();
    let model = Scripted::new([write("a"), Answer::Says("Then not.")]);
    let agent = agent_with(&model, &tools, options).with_approver(Arc::new(Absent));
    let (_, report) = ask(&agent, "go").await;
    assert_eq!(report.tool_calls[0].failure, Some(ToolFailure::NotApproved));
    assert!(results(&model, 1)[0].contains("expired"));
    assert!(tools.called().is_empty());
}

/// An approver that changes the clock and waits before it returns the next decision.
struct Jumping {
    wall: TestClock,
    jump: i64,
    passes: Duration,
    answers: Mutex<VecDeque<ApprovalDecision>>,
}

#[async_trait]
impl Approver for Jumping {
    async fn decide(&self, _: &ApprovalRequest) -> ApprovalDecision {
        self.wall.advance(self.jump);
        // sleep: tokio's clock is paused
        tokio::time::sleep(self.passes).await;
        self.answers.lock().unwrap().pop_front().unwrap()
    }
}

const DAY: i64 = 24 * 60 * 60;

/// Returns an agent whose approval requests expire after a minute. It stores its runs.
fn expiring(
    model: &Arc<Scripted>,
    tools: &Arc<Tools>,
    approver: &Arc<Jumping>,
    shelf: &Arc<Shelf>,
) -> Agent {
    agent_with(model, tools, expiring_options())
        .with_approver(approver.clone())
        .with_checkpoints(shelf.clone())
        .with_clock(approver.wall.clock())
}

#[tokio::test(start_paused = true)]
async fn a_jump_of_the_clock_neither_expires_nor_prolongs_a_request() {
    for (jump, seconds, runs) in [
        (DAY, 50, true),
        (-DAY, 50, true),
        (0, 50, true),
        (DAY, 70, false),
        (-DAY, 70, false),
    ] {
        for parks in [false, true] {
            let (tools, shelf) = (tools(), Arc::new(Shelf::default()));
            let passes = Duration::from_secs(if parks { 0 } else { seconds });
            let later = parks.then_some(ApprovalDecision::Later);
            let answers = later.into_iter().chain([allow(ApprovalScope::Once)]);
            let approver = Arc::new(Jumping {
                wall: TestClock::default(),
                jump,
                passes,
                answers: Mutex::new(answers.collect()),
            });
            let model = Scripted::new([write("a"), Answer::Says("ok")]);
            let agent = expiring(&model, &tools, &approver, &shelf);
            let (_, mut run) = played(agent.ask("go")).await;
            if parks {
                assert!(run.build_report().is_none());
                tokio::time::advance(Duration::from_secs(seconds)).await;
                run = played(agent.resume_run(shelf.run())).await.1;
            }
            let failure = run.build_report().unwrap().tool_calls[0].failure;
            let expected = (!runs).then_some(ToolFailure::NotApproved);
            assert_eq!(failure, expected, "{jump} {seconds} {parks}");
            assert_eq!(tools.called().len(), usize::from(runs));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn in_another_process_a_request_expires_by_its_time_stamp() {
    for (seconds, runs) in [(50, true), (70, false), (-DAY, true)] {
        let (tools, shelf) = (tools(), Arc::new(Shelf::default()));
        let approver = Arc::new(Jumping {
            wall: TestClock::default(),
            jump: 0,
            passes: Duration::ZERO,
            answers: Mutex::new([ApprovalDecision::Later, allow(ApprovalScope::Once)].into()),
        });
        let first = Scripted::new([write("a")]);
        played(expiring(&first, &tools, &approver, &shelf).ask("go")).await;
        approver.wall.advance(seconds);
        let second = Scripted::new([Answer::Says("ok")]);
        let agent = expiring(&second, &tools, &approver, &shelf);
        played(agent.resume_run(shelf.run())).await;
        assert_eq!(tools.called().len(), usize::from(runs), "{seconds}");
    }
}

#[tokio::test]
async fn without_a_store_a_postponed_decision_denies_the_call() {
    let model = Scripted::new([write("a"), Answer::Says("ok")]);
    let agent = agent_with(&model, &tools(), asking())
        .with_approver(Person::always(ApprovalDecision::Later));
    let (_, report) = ask(&agent, "go").await;
    assert_eq!(failures(&report), [Some(ToolFailure::NotApproved)]);
    assert!(results(&model, 1)[0].contains("no user is available"));
}

/// The values that were recorded on spans after their start.
#[derive(Clone, Default)]
struct RecordedValues(Arc<Mutex<Vec<String>>>);

impl<S: Subscriber> Layer<S> for RecordedValues {
    fn on_record(&self, _: &span::Id, values: &span::Record<'_>, _: Context<'_, S>) {
        self.0.lock().unwrap().push(format!("{values:?}"));
    }
}

#[tokio::test]
async fn the_span_of_a_parked_run_has_no_error() {
    let recorded = RecordedValues::default();
    let subscriber = tracing_subscriber::registry().with(recorded.clone());
    let _guard = tracing::subscriber::set_default(subscriber);
    let agent = agent_with(&Scripted::new([write("a")]), &tools(), asking())
        .with_approver(Person::always(ApprovalDecision::Later))
        .with_checkpoints(Arc::new(Shelf::default()));
    let (events, _) = played(agent.ask("go")).await;
    assert!(has(&events, |kind| matches!(
        kind,
        RunEventKind::RunParked { .. }
    )));
    let recorded = recorded.0.lock().unwrap().join("\n");
    assert!(recorded.contains("finish_reasons"), "{recorded}");
    assert!(!recorded.contains("error.type"), "{recorded}");
}
