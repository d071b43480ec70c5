//! Approvals of tool calls.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use switchboard_domain::{
    ApprovalDecision, ApprovalRequest, ApprovalScope, Approver, ToolAnnotations,
};
use switchboard_orchestration::{
    Agent, ApprovalPolicy, Clock, Run, RunEventKind, RunOptions, SharedDecisions, ToolFailure,
    persistence::checkpoint::{Checkpoint, CheckpointError, Checkpoints},
    policy::approval::{Approvals, Rules},
};

use crate::support::{Answer, Scripted, Tools, ask, calls, echo, played, reading, results, tool};

/// An approver with a list of decisions.
struct Person {
    answers: Mutex<VecDeque<ApprovalDecision>>,
    asked: Mutex<Vec<ApprovalRequest>>,
}

impl Person {
    fn who_says(answers: impl IntoIterator<Item = ApprovalDecision>) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.into_iter().collect()),
            asked: Mutex::default(),
        })
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

#[async_trait]
impl Approver for Person {
    async fn decide(&self, request: &ApprovalRequest) -> ApprovalDecision {
        self.asked.lock().unwrap().push(request.clone());
        let answer = self.answers.lock().unwrap().pop_front();
        answer.expect("the person is asked once more than the test expects")
    }
}

fn yes(scope: ApprovalScope) -> ApprovalDecision {
    ApprovalDecision::Allow { input: None, scope }
}

fn no(reason: &str) -> ApprovalDecision {
    ApprovalDecision::Deny {
        reason: Some(reason.to_owned()),
        scope: ApprovalScope::Once,
    }
}

fn asking() -> RunOptions {
    RunOptions {
        approval: ApprovalPolicy::Ask.into(),
        ..RunOptions::default()
    }
}

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
async fn the_model_reads_the_reason_of_a_denial() {
    let model = Scripted::new([write("a"), Answer::Says("I see.")]);
    let person = Person::who_says([no("not on a Sunday")]);
    let tools = tools();
    let agent = Agent::new(model.clone())
        .with_tools(tools.clone())
        .with_approver(person)
        .with_options(asking());
    let (_, report) = ask(&agent, "go").await;
    assert!(results(&model, 1)[0].contains("not on a Sunday"));
    assert!(tools.called().is_empty());
    assert_eq!(report.tool_calls[0].failure, Some(ToolFailure::Denied));
}

#[tokio::test]
async fn after_a_denial_later_calls_are_not_executed() {
    let model = Scripted::new([
        calls(&[
            ("a", "srv__look", json!({"n": 1})),
            ("b", "srv__write", json!({"n": 2})),
            ("c", "srv__look", json!({"n": 3})),
            ("d", "srv__write", json!({"n": 4})),
        ]),
        Answer::Says("ok"),
    ]);
    let person = Person::who_says([no("no")]);
    let tools = tools();
    let agent = Agent::new(model)
        .with_tools(tools.clone())
        .with_approver(person.clone())
        .with_options(asking());
    let (_, report) = ask(&agent, "go").await;
    assert_eq!(tools.called(), ["srv__look"]);
    let failures: Vec<_> = report.tool_calls.iter().map(|call| call.failure).collect();
    assert_eq!(
        failures,
        [
            None,
            Some(ToolFailure::Denied),
            Some(ToolFailure::Skipped),
            Some(ToolFailure::Skipped)
        ]
    );
    assert_eq!(person.asked(), 1, "a refused call needs no request");
}

#[tokio::test]
async fn an_edited_input_is_executed_and_shown() {
    let model = Scripted::new([write("a"), Answer::Says("ok")]);
    let person = Person::who_says([ApprovalDecision::Allow {
        input: json!({"n": 99}).as_object().cloned(),
        scope: ApprovalScope::Once,
    }]);
    let tools = tools();
    let agent = Agent::new(model)
        .with_tools(tools.clone())
        .with_approver(person)
        .with_options(asking());
    let (events, report) = ask(&agent, "go").await;
    assert_eq!(tools.called.lock().unwrap()[0].1, json!({"n": 99}));
    assert_eq!(report.tool_calls[0].input, json!({"n": 99}).into());
    assert!(events.iter().any(|event| {
        matches!(
            &event.kind,
            RunEventKind::ToolApproved {
                edited: true,
                remembered: false,
                ..
            }
        )
    }));
}

#[tokio::test]
async fn each_scope_of_a_decision_has_its_validity() {
    for (scope, questions) in [
        (ApprovalScope::Once, 4),
        (ApprovalScope::Session, 2),
        (ApprovalScope::Always, 1),
    ] {
        let decisions = SharedDecisions::default();
        let person = Person::who_says(vec![yes(scope); questions]);
        for session in ["one", "two"] {
            let model = Scripted::new([write("a"), write("b"), Answer::Says("ok")]);
            let agent = Agent::new(model)
                .with_tools(tools())
                .with_approver(person.clone())
                .with_decisions(decisions.clone())
                .with_principal(
                    switchboard_domain::Principal::default(),
                    Some(session.into()),
                )
                .with_options(asking());
            let (_, report) = ask(&agent, "go").await;
            assert!(report.tool_calls.iter().all(|call| !call.is_error));
        }
        assert_eq!(person.asked(), questions, "{scope:?}");
        // What holds for ever survives being stored.
        let stored = serde_json::to_string(&decisions.snapshot()).unwrap();
        let decisions = SharedDecisions::new(serde_json::from_str(&stored).unwrap());
        let person = Person::who_says([yes(ApprovalScope::Once)]);
        let agent = Agent::new(Scripted::new([write("a"), Answer::Says("ok")]))
            .with_tools(tools())
            .with_approver(person.clone())
            .with_decisions(decisions)
            .with_options(asking());
        ask(&agent, "go").await;
        assert_eq!(person.asked() == 0, scope == ApprovalScope::Always);
    }
}

#[tokio::test]
async fn a_redefined_tool_needs_approval_again() {
    let decisions = SharedDecisions::default();
    let person = Person::who_says([yes(ApprovalScope::Always), no("what is this?")]);
    let run = |tools: Arc<Tools>| {
        let agent = Agent::new(Scripted::new([write("a"), Answer::Says("ok")]))
            .with_tools(tools)
            .with_approver(person.clone())
            .with_decisions(decisions.clone())
            .with_options(asking());
        async move { ask(&agent, "go").await.1 }
    };
    assert!(!run(tools()).await.tool_calls[0].is_error);
    let mut changed = tool("write");
    changed.description = "Also sends a copy to somebody else.".into();
    let report = run(Arc::new(Tools::new().with(changed, echo))).await;
    assert_eq!(report.tool_calls[0].failure, Some(ToolFailure::Denied));
    assert!(person.asked.lock().unwrap()[1].redefined);
}

#[tokio::test]
async fn rules_match_servers_names_and_annotations() {
    let mut destroying = tool("destroy");
    destroying.annotations = ToolAnnotations {
        destructive: Some(true),
        ..ToolAnnotations::default()
    };
    // Without annotations a tool may be destructive, as in the protocol.
    let mut adding = tool("write");
    adding.annotations.destructive = Some(false);
    let tools = Arc::new(
        Tools::new()
            .with(adding, echo)
            .with(tool("send_mail"), echo)
            .with(destroying, echo),
    );
    let rules = json!([
        {"tool": "srv__send_*", "verdict": "deny", "reason": "no mail from here"},
        {"destructive": true, "verdict": "ask"},
        {"server": "srv", "verdict": "allow"},
    ]);
    let rules: Rules = serde_json::from_value(rules).unwrap();
    let options = RunOptions {
        approval: Approvals {
            policy: ApprovalPolicy::None,
            rules,
            ..Approvals::default()
        },
        // Each call has its own request.
        stop_after_denial: false,
        ..RunOptions::default()
    };
    let model = Scripted::new([
        calls(&[
            ("a", "srv__write", json!({"n": 1})),
            ("b", "srv__send_mail", json!({"n": 2})),
            ("c", "srv__destroy", json!({"n": 3})),
        ]),
        Answer::Says("ok"),
    ]);
    let person = Person::who_says([yes(ApprovalScope::Once)]);
    let agent = Agent::new(model.clone())
        .with_tools(tools.clone())
        .with_approver(person.clone())
        .with_options(options);
    ask(&agent, "go").await;
    assert_eq!(tools.called(), ["srv__write", "srv__destroy"]);
    assert_eq!(person.asked.lock().unwrap()[0].tool_use.id, "c");
    assert!(results(&model, 1)[1].contains("no mail from here"));
}

/// An approver that never decides.
struct Absent;

#[async_trait]
impl Approver for Absent {
    async fn decide(&self, _: &ApprovalRequest) -> ApprovalDecision {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_expires_and_the_run_continues() {
    let options = RunOptions {
        approval: Approvals {
            policy: ApprovalPolicy::Ask,
            expire_after: Some(Duration::from_mins(1)),
            ..Approvals::default()
        },
        ..RunOptions::default()
    };
    let tools = tools();
    let model = Scripted::new([write("a"), Answer::Says("Then not.")]);
    let agent = Agent::new(model.clone())
        .with_tools(tools.clone())
        .with_approver(Arc::new(Absent))
        .with_options(options);
    let (_, report) = ask(&agent, "go").await;
    assert_eq!(report.tool_calls[0].failure, Some(ToolFailure::NotApproved));
    assert!(results(&model, 1)[0].contains("expired"));
    assert!(tools.called().is_empty());
}

/// A clock that a test sets.
#[derive(Clone, Default)]
struct Wall(Arc<AtomicI64>);

impl Wall {
    fn jump(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }

    fn clock(&self) -> Clock {
        let seconds = Arc::clone(&self.0);
        Arc::new(move || {
            let seconds = SignedDuration::from_secs(seconds.load(Ordering::SeqCst));
            Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1_000) + seconds
        })
    }
}

/// Sets the clock while it is asked, and lets time pass, before it answers from a list.
struct Jumping {
    wall: Wall,
    jump: i64,
    passes: Duration,
    answers: Mutex<VecDeque<ApprovalDecision>>,
}

#[async_trait]
impl Approver for Jumping {
    async fn decide(&self, _: &ApprovalRequest) -> ApprovalDecision {
        self.wall.jump(self.jump);
        // sleep: tokio's clock is paused
        tokio::time::sleep(self.passes).await;
        self.answers.lock().unwrap().pop_front().unwrap()
    }
}

const DAY: i64 = 24 * 60 * 60;

/// An agent whose requests expire after a minute, and which stores its runs.
fn expiring(
    model: Arc<Scripted>,
    tools: &Arc<Tools>,
    approver: &Arc<Jumping>,
    shelf: &Arc<Shelf>,
) -> Agent {
    Agent::new(model)
        .with_tools(tools.clone())
        .with_approver(approver.clone())
        .with_checkpoints(shelf.clone())
        .with_clock(approver.wall.clock())
        .with_options(RunOptions {
            approval: Approvals {
                policy: ApprovalPolicy::Ask,
                expire_after: Some(Duration::from_mins(1)),
                ..Approvals::default()
            },
            ..RunOptions::default()
        })
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
            let answers = later.into_iter().chain([yes(ApprovalScope::Once)]);
            let approver = Arc::new(Jumping {
                wall: Wall::default(),
                jump,
                passes,
                answers: Mutex::new(answers.collect()),
            });
            let model = Scripted::new([write("a"), Answer::Says("ok")]);
            let agent = expiring(model, &tools, &approver, &shelf);
            let (_, mut run) = played(agent.ask("go")).await;
            if parks {
                assert!(run.report().is_none());
                tokio::time::advance(Duration::from_secs(seconds)).await;
                run = played(agent.resume(shelf.run())).await.1;
            }
            let failure = run.report().unwrap().tool_calls[0].failure;
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
            wall: Wall::default(),
            jump: 0,
            passes: Duration::ZERO,
            answers: Mutex::new([ApprovalDecision::Later, yes(ApprovalScope::Once)].into()),
        });
        let first = Scripted::new([write("a")]);
        played(expiring(first, &tools, &approver, &shelf).ask("go")).await;
        approver.wall.jump(seconds);
        let second = Scripted::new([Answer::Says("ok")]);
        let agent = expiring(second, &tools, &approver, &shelf);
        played(agent.resume(shelf.run())).await;
        assert_eq!(tools.called().len(), usize::from(runs), "{seconds}");
    }
}

/// Stores the last checkpoint as text.
#[derive(Default)]
struct Shelf {
    stored: Mutex<Option<String>>,
}

impl Shelf {
    fn run(&self) -> Run {
        let stored = self.stored.lock().unwrap();
        serde_json::from_str(stored.as_ref().unwrap()).unwrap()
    }
}

#[async_trait]
impl Checkpoints for Shelf {
    async fn reached(&self, run: &Run, _: Checkpoint) -> Result<(), CheckpointError> {
        *self.stored.lock().unwrap() = Some(serde_json::to_string(run).unwrap());
        Ok(())
    }
}
