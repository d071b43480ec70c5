//! Properties of a run with any actions of models, tools and people. Each generated script runs
//! three times: without storage, with the whole run stored and restored between actions, and with
//! snapshots stored and restored between actions.

#[path = "laws_script_tests.rs"]
mod script;

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use jiff::SignedDuration;
use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_domain::{
    ApprovalDecision, ApprovalRequest, ApprovalScope, ChatRequest, FinishReason, ModelError,
    ModelErrorKind, Part, RunSnapshot, ToolCallError, ToolChoice, ToolOutput,
};

use super::tests::answer;
use super::*;
use crate::{RunPhase, ToolCallRecord, ToolFailure};
use script::{Script, conversation, finish, options, part, scripts, tools};

/// Maximum number of steps of a script. A run with more steps counts as endless.
const ENDLESS: usize = 3_000;

/// A run of a script, and the data for its checks.
struct Play<'a> {
    script: &'a Script,
    stores: Stores,
    /// The messages that a store with snapshots contains.
    conversation: Vec<Arc<Message>>,
    mark: SnapshotPosition,
    run: Run,
    now: Timestamp,
    events: Events,
    /// The executed calls with their inputs.
    ran: Vec<(String, String, JsonObject)>,
    crashed: bool,
    models: u8,
    asked: usize,
    happened: usize,
    used: HashMap<&'static str, usize>,
}

/// How the run is stored between two actions.
#[derive(Clone, Copy)]
enum Stores {
    Never,
    Whole,
    Snapshots,
}

impl<'a> Play<'a> {
    fn new(script: &'a Script, stores: Stores) -> Self {
        let mut run = Run::new(
            "run",
            ModelId::new("p", "m"),
            conversation(),
            options(&script.knobs),
        );
        run.set_model_info(capabilities(script.knobs.capabilities), None);
        Self {
            script,
            stores,
            conversation: Vec::new(),
            mark: SnapshotPosition::default(),
            run,
            now: Timestamp::UNIX_EPOCH,
            events: Vec::new(),
            ran: Vec::new(),
            crashed: false,
            models: 2,
            asked: 0,
            happened: 0,
            used: HashMap::new(),
        }
    }

    /// Returns the next value of a list. Begins again after the last value.
    fn next(&mut self, of: &'static str, list: &[u8]) -> u8 {
        let used = self.used.entry(of).or_default();
        *used += 1;
        list[(*used - 1) % list.len()]
    }

    fn record(&self, id: &str) -> &ToolCallRecord {
        let mut records = self.run.state.records.iter();
        records.find(|record| record.id == id).unwrap()
    }

    fn heard(&mut self, events: Events) {
        self.events.extend(events);
        self.happened += 1;
        assert!(self.happened < ENDLESS, "it never ends: {:?}", self.events);
        if !matches!(
            self.run.state.phase,
            AgentLoopState::CallingModel | AgentLoopState::Summarising
        ) {
            self.store();
        }
    }

    /// Stores a snapshot incrementally and restores the run from the stored messages.
    fn through_a_snapshot(&mut self) {
        let (snapshot, mark) = self.run.take_snapshot(self.mark).unwrap();
        let from = usize::try_from(snapshot.from).unwrap();
        assert!(from <= self.conversation.len());
        self.conversation.truncate(from);
        self.conversation.extend(snapshot.messages);
        assert_eq!(self.conversation, *self.run.messages_to_store());
        self.run = Run::from_snapshot(RunSnapshot {
            state: snapshot.state,
            from: 0,
            messages: self.conversation.clone(),
        })
        .unwrap();
        assert_eq!(
            self.run.snapshot_position(),
            mark,
            "nothing is put between them here"
        );
        self.mark = mark;
    }

    /// Advances the time and restores the run from its stored form.
    fn store(&mut self) {
        let seconds = self.next("seconds", &self.script.seconds);
        self.now += SignedDuration::from_secs(seconds.into());
        self.run.set_current_time(self.now);
        match self.stores {
            Stores::Never => return,
            Stores::Whole => {
                let stored = serde_json::to_string(&self.run).unwrap();
                self.run = serde_json::from_str(&stored).unwrap();
            }
            Stores::Snapshots => self.through_a_snapshot(),
        }
        self.run.set_current_time(self.now);
        let events = self.run.recheck_planned_calls(&tools(&self.script.knobs));
        assert_eq!(events, [], "the tools are the same");
    }

    fn is_stopped(&mut self) -> bool {
        let Some((at, by_time)) = self.script.stop else {
            return false;
        };
        if self.happened < at || self.run.outcome().is_some() {
            return false;
        }
        let partial = (self.run.outcome().is_none()
            && matches!(self.run.state.phase, AgentLoopState::CallingModel))
        .then(|| answer(vec![Part::text("Half")], FinishReason::Interrupted));
        let events = if by_time {
            self.run.end_at_time_limit(partial, &HashMap::new())
        } else {
            self.run.cancel_run(partial, &HashMap::new())
        };
        self.heard(events);
        true
    }

    fn played(mut self) -> Self {
        self.store();
        loop {
            self.is_stopped();
            match self.run.next_step() {
                RunStep::Done => return self,
                RunStep::CallModel => self.call_model(),
                RunStep::AskApproval(requests) => self.ask(&requests),
                RunStep::CallTools(calls) => self.call_tools(&calls),
            }
        }
    }

    fn call_model(&mut self) {
        let call = self.run.begin_model_call(tools(&self.script.knobs));
        assert_fit_to_send(&call.request, &self.events);
        let n = self.asked;
        self.asked += 1;
        self.heard(call.events);
        if self.is_stopped() {
            return;
        }
        let how = self.next("asking", &self.script.asking);
        let error = |kind| ModelError::new("p", kind, "this model cannot be given a tool");
        if call.purpose == ModelCallPurpose::Summary {
            let events = match how % 3 {
                0 => self
                    .run
                    .apply_history_summary(Ok(answer(Vec::new(), FinishReason::Stop))),
                1 => self
                    .run
                    .apply_history_summary(Err(&error(ModelErrorKind::Overloaded {
                        retry_after: None,
                    }))),
                _ => {
                    let text = vec![Part::text("It was about n.")];
                    self.run
                        .apply_history_summary(Ok(answer(text, FinishReason::Stop)))
                }
            };
            return self.heard(events.unwrap());
        }
        let next = (self.models > 0).then(|| {
            let name = format!("m{}", self.models);
            (ModelId::new("p", name), capabilities(self.models))
        });
        let failure = match how {
            1 => Some((
                error(ModelErrorKind::Overloaded { retry_after: None }),
                false,
            )),
            2 => Some((error(ModelErrorKind::Interrupted), true)),
            3 => Some((error(ModelErrorKind::InvalidRequest { field: None }), false)),
            4 => {
                let feature = "tools".to_owned();
                Some((error(ModelErrorKind::Unsupported { feature }), false))
            }
            _ => None,
        };
        if let Some((error, broke_off)) = failure {
            let before = self.run.model_id().clone();
            let partial =
                broke_off.then(|| answer(vec![Part::text("Half")], FinishReason::Interrupted));
            let events = self.run.apply_model_failure(&error, partial, next).unwrap();
            self.models -= u8::from(*self.run.model_id() != before);
            return self.heard(events);
        }
        // The answers begin again after the last one, so a limit has to end some runs.
        let pieces = &self.script.answers[n % self.script.answers.len()];
        let parts = pieces.iter().copied().map(part).collect();
        let finish = finish(self.next("finish", &self.script.finish));
        let mut events = self
            .run
            .apply_model_response(answer(parts, finish))
            .unwrap();
        if self.run.outcome() == Some(Outcome::Failed)
            && let Some(switched) = self.run.switch_after_refusal(next)
        {
            self.models -= 1;
            events.extend(switched);
        }
        self.heard(events);
    }

    fn ask(&mut self, requests: &[ApprovalRequest]) {
        for request in requests {
            let id = &request.tool_use.id;
            let pending = self.run.pending_approvals();
            if pending.iter().all(|open| open.tool_use.id != *id) {
                continue;
            }
            let edited = |value: Value| ApprovalDecision::Allow {
                input: value.as_object().cloned(),
                scope: ApprovalScope::Once,
            };
            let allow = |scope| ApprovalDecision::Allow { input: None, scope };
            let deny = |scope| ApprovalDecision::Deny {
                reason: Some("not today".into()),
                scope,
            };
            let decision = match self.next("people", &self.script.people) {
                0 => deny(ApprovalScope::Once),
                1 => deny(ApprovalScope::Session),
                2 => ApprovalDecision::NobodyThere,
                3 => edited(json!({"n": "bad"})),
                4 => edited(json!({"n": 7})),
                5 => ApprovalDecision::Expired,
                6 => allow(ApprovalScope::Session),
                7 => allow(ApprovalScope::Always),
                8 if self.happened < 100 => ApprovalDecision::Later,
                _ => allow(ApprovalScope::Once),
            };
            let parks = decision == ApprovalDecision::Later;
            let events = self.run.apply_decision(id, decision).unwrap();
            self.heard(events);
            if parks || self.is_stopped() {
                return;
            }
        }
    }

    fn call_tools(&mut self, calls: &[PlannedCall]) {
        assert!(
            !calls.is_empty(),
            "a step that does nothing would spin for ever"
        );
        let runs_alone = |call: &PlannedCall| {
            call.name == "solo" || (self.script.knobs.guarded && call.name == "check")
        };
        assert!(calls.len() == 1 || !calls.iter().any(runs_alone));
        let mut under_way = Vec::new();
        for call in calls {
            let how = self.next("tools", &self.script.tools);
            if how == 8 && call.name == "look" {
                let cached = ToolCallOutcome {
                    cached: true,
                    attempts: 0,
                    ..ToolCallOutcome::new(Ok(ToolOutput::text("as before")), 0)
                };
                let events = self.run.apply_tool_outcome(&call.id, cached).unwrap();
                self.heard(events);
                continue;
            }
            assert!(call.input["n"].is_i64(), "ran with {:?}", call.input);
            let events = self.run.record_tool_start(&call.id).unwrap();
            self.ran.push((
                call.id.clone(),
                call.name.clone(),
                call.input.clone().into_object(),
            ));
            self.heard(events);
            under_way.push((call, how));
            if self.is_stopped() {
                return;
            }
        }
        if self
            .script
            .crash
            .is_some_and(|at| usize::from(at) <= self.ran.len())
            && !self.crashed
        {
            self.crashed = true;
            let events = self.run.recover_run();
            return self.heard(events);
        }
        for (call, how) in under_way.into_iter().rev() {
            let events = self.run.apply_tool_outcome(&call.id, came_of(how)).unwrap();
            self.heard(events);
            if self.is_stopped() {
                return;
            }
        }
    }
}

fn capabilities(n: u8) -> ModelCapabilities {
    ModelCapabilities {
        structured_output: Some(n % 2 == 1),
        forced_tool_choice: Some(n >= 2),
        ..ModelCapabilities::default()
    }
}

fn came_of(how: u8) -> ToolCallOutcome {
    let result = match how {
        0 => Ok(ToolOutput {
            is_error: true,
            ..ToolOutput::text("the tool says no")
        }),
        1 => Ok(ToolOutput::text("a line of a long result\n".repeat(200))),
        2 => Err(ToolCallError::Timeout {
            server: "srv".into(),
            tool: "t".into(),
            after: Duration::from_secs(1),
        }),
        3 => Err(ToolCallError::Unavailable {
            server: "srv".into(),
            reason: "it is away".into(),
        }),
        _ => Ok(ToolOutput::text("ok")),
    };
    ToolCallOutcome::new(result, 3)
}

/// Asserts that a provider accepts the request: no message is empty, and each call is followed by
/// its result.
fn assert_fit_to_send(request: &ChatRequest, events: &Events) {
    let messages = &request.messages;
    assert!(
        messages.iter().all(|message| !message.parts.is_empty()),
        "{messages:#?} after {events:#?}"
    );
    assert_whole(messages);
    let names: Vec<_> = request.tools.iter().map(|tool| &tool.name).collect();
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
    if let ToolChoice::Only(only) = &request.tool_choice {
        assert!(
            only.iter().all(|name| names.contains(&name)),
            "{only:?} of {names:?}"
        );
    }
}

/// Asserts that every tool use has exactly one result, in the next message and in order, and that
/// every result has its tool use.
pub(crate) fn assert_whole(messages: &[Arc<Message>]) {
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        let results: Vec<_> = message
            .tool_results()
            .map(|r| r.tool_use_id.as_str())
            .collect();
        assert_eq!(open, results);
        open = message.tool_uses().map(|call| call.id.as_str()).collect();
    }
    assert!(open.is_empty(), "{open:?} have no results");
}

/// The state of a call according to its events.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Told {
    Planned,
    Repaired,
    Waiting,
    Edited,
    Approved,
    Denied,
    Started,
    Finished,
}

/// Asserts the order of the events of each call: planned → repaired? → (waiting → edited?)? →
/// approved? | denied → started? → finished.
fn assert_grammar(play: &Play<'_>) {
    let mut calls: HashMap<&str, Told> = HashMap::new();
    let mut order: Vec<&str> = Vec::new();
    for event in &play.events {
        let (id, now, before): (&str, Told, &[Told]) = match event {
            RunEventKind::ToolPlanned { id, .. } => {
                assert!(
                    calls.insert(id, Told::Planned).is_none(),
                    "{id} is planned twice"
                );
                order.push(id);
                continue;
            }
            RunEventKind::ToolInputRepaired { id, .. } => {
                let now = match calls[id.as_str()] {
                    Told::Waiting => Told::Edited,
                    _ => Told::Repaired,
                };
                (id, now, &[Told::Planned, Told::Waiting])
            }
            RunEventKind::ToolAwaitingApproval { id } => {
                (id, Told::Waiting, &[Told::Planned, Told::Repaired])
            }
            RunEventKind::ToolApproved { id, .. } => {
                use Told::{Edited, Planned, Repaired, Waiting};
                (id, Told::Approved, &[Planned, Repaired, Waiting, Edited])
            }
            RunEventKind::ToolDenied { id, .. } => (
                id,
                Told::Denied,
                &[Told::Planned, Told::Repaired, Told::Waiting],
            ),
            RunEventKind::ToolStarted { id } => {
                use Told::{Approved, Planned, Repaired, Started};
                if play.crashed {
                    (id, Started, &[Planned, Repaired, Approved, Started])
                } else {
                    (id, Started, &[Planned, Repaired, Approved])
                }
            }
            RunEventKind::ToolFinished { id, .. } => {
                use Told::{Approved, Denied, Planned, Repaired, Started, Waiting};
                (
                    id,
                    Told::Finished,
                    &[Planned, Repaired, Waiting, Approved, Denied, Started],
                )
            }
            _ => continue,
        };
        let was = calls[id];
        assert!(
            before.contains(&was),
            "{id} was {was:?} and is {now:?}: {:#?}",
            play.events
        );
        calls.insert(id, now);
    }
    assert!(
        calls.values().all(|told| *told == Told::Finished),
        "{calls:?}"
    );
    let records = play.run.state.records.iter();
    let records: Vec<_> = records.map(|record| record.id.as_str()).collect();
    assert_eq!(order, records, "records have the order of the calls");
}

fn assert_phases(play: &Play<'_>) {
    let phases: Vec<_> = play
        .events
        .iter()
        .filter_map(|event| match event {
            RunEventKind::PhaseStarted { phase, .. } => Some(*phase),
            _ => None,
        })
        .collect();
    if play.script.knobs.gathers {
        let formats = phases.get(1..).unwrap_or_default();
        assert!(
            phases
                .first()
                .is_none_or(|first| *first == RunPhase::Gathering),
            "{phases:?}"
        );
        assert!(
            formats.iter().all(|phase| *phase == RunPhase::Formatting),
            "{phases:?}"
        );
    } else {
        assert!(phases.is_empty(), "{phases:?}");
    }
}

/// Asserts that each executed call was allowed and was executed once.
fn assert_nothing_runs_that_must_not(play: &Play<'_>) {
    let mut left: HashMap<&str, u32> = HashMap::new();
    for (id, name, _) in &play.ran {
        let times = left.entry(id).or_default();
        *times += 1;
        let again = play.crashed && matches!(name.as_str(), "look" | "check");
        assert!(
            *times == 1 || (*times == 2 && again),
            "{id} ran {times} times"
        );
        let says = |told: fn(&RunEventKind) -> Option<&String>| {
            play.events.iter().filter_map(told).any(|told| told == id)
        };
        let denied = says(|event| match event {
            RunEventKind::ToolDenied { id, .. } => Some(id),
            _ => None,
        });
        let approved = says(|event| match event {
            RunEventKind::ToolApproved { id, .. } => Some(id),
            _ => None,
        });
        assert!(!denied, "{id} was denied and ran");
        if !matches!(name.as_str(), "look" | "check") {
            match play.script.knobs.approval {
                0 => {}
                1 => panic!("{name} ran though it may change something"),
                _ => assert!(approved, "{id} ran without an approval"),
            }
        }
        let record = play.record(id);
        if again {
            // A call that was interrupted and restored may have been stopped before its second
            // attempt.
            continue;
        }
        assert!(record.attempts > 0);
        let never_ran = record
            .failure
            .is_some_and(|failure| failure.did_not_run() && failure != ToolFailure::Unavailable);
        assert!(!never_ran, "{record:?}");
    }
    if play.script.knobs.gathers && !play.crashed {
        let mut made: Vec<(&String, &JsonObject)> = Vec::new();
        for (id, name, input) in &play.ran {
            let never_left = play.record(id).failure == Some(ToolFailure::Unavailable);
            // The person edited the input.
            if never_left || input["n"] == json!(7) {
                continue;
            }
            assert!(
                !made.contains(&(name, input)),
                "{name} ran twice with {input:?}"
            );
            made.push((name, input));
        }
    }
}

/// Asserts that no later call of a response starts after a stopping guard or a denial.
fn assert_stopped(play: &Play<'_>) {
    let knobs = &play.script.knobs;
    let failure = |id: &str| {
        let records = &play.run.state.records;
        records.iter().find(|call| call.id == id)?.failure
    };
    let stops = |name: &str, id: &str, is_error: bool| {
        (knobs.guarded && name == "check" && is_error)
            || (knobs.stop_after_denial && failure(id) == Some(ToolFailure::Denied))
    };
    // Calls that started before the stopping result continue.
    let mut stopped: HashSet<&str> = HashSet::new();
    let (mut answer, mut names) = (Vec::new(), HashMap::new());
    // A call may be finished before the next call is planned.
    let mut is_stopped = false;
    for event in &play.events {
        match event {
            RunEventKind::ModelCallFinished { .. } => {
                answer.clear();
                is_stopped = false;
            }
            RunEventKind::ToolPlanned { id, tool, .. } => {
                answer.push(id.as_str());
                if is_stopped {
                    stopped.insert(id);
                }
                names.insert(id.as_str(), tool.as_str());
            }
            RunEventKind::ToolFinished { id, is_error, .. }
                if stops(names[id.as_str()], id, *is_error) =>
            {
                let mut behind = answer.iter().skip_while(|other| *other != id);
                behind.next();
                stopped.extend(behind);
                is_stopped = true;
            }
            RunEventKind::ToolStarted { id } => {
                assert!(
                    !stopped.contains(id.as_str()),
                    "{id} began: {:#?}",
                    play.events
                );
            }
            _ => {}
        }
    }
}

fn assert_limits(play: &Play<'_>) {
    let options = play.run.run_options();
    let report = play.run.build_report().expect("it is over");
    // No gathering step may use the last step, which is reserved for formatting.
    let mut is_gathering = false;
    for event in &play.events {
        match event {
            RunEventKind::PhaseStarted { phase, .. } => {
                is_gathering = *phase == RunPhase::Gathering;
            }
            RunEventKind::ModelCallFinished { step, .. } if is_gathering => {
                assert!(*step < options.limits.max_steps, "{:#?}", play.events);
            }
            _ => {}
        }
    }
    // Maximum number of model calls for formatting: four modes, two responses, some pauses, three
    // models.
    let formatting = if play.script.knobs.gathers {
        3 * 6 + 8
    } else {
        0
    };
    assert!(
        report.steps <= options.limits.max_steps + formatting,
        "{} steps",
        report.steps
    );
    let ran = play.run.state.records.iter().filter(|record| {
        let name = record.tool.as_str();
        record.attempts > 0 && !name.starts_with("search") && !name.starts_with("read_")
    });
    if let Some(max) = options.limits.max_tool_calls {
        assert!(ran.clone().count() <= max as usize);
    }
    if let Some(max) = options.limits.max_calls_per_response {
        for message in play.run.messages() {
            let of_message = |record: &&ToolCallRecord| {
                message
                    .tool_results()
                    .any(|result| result.tool_use_id == record.id)
            };
            assert!(ran.clone().filter(of_message).count() <= max as usize);
        }
    }
    match report.outcome {
        Outcome::Completed | Outcome::Cancelled => assert!(report.error.is_none()),
        outcome => {
            let error = report.error.expect("why it has no proper answer");
            assert_eq!(error.kind.to_run_outcome(), outcome);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn the_laws_hold_for_any_script_and_a_stored_run_ends_equally(script in scripts()) {
        let play = Play::new(&script, Stores::Never).played();
        assert_whole(play.run.messages());
        assert_grammar(&play);
        assert_phases(&play);
        assert_nothing_runs_that_must_not(&play);
        assert_stopped(&play);
        assert_limits(&play);
        for stores in [Stores::Whole, Stores::Snapshots] {
            let stored = Play::new(&script, stores).played();
            prop_assert_eq!(&play.events, &stored.events);
            prop_assert_eq!(play.run.messages(), stored.run.messages());
            prop_assert_eq!(play.run.session_messages(), stored.run.session_messages());
            prop_assert_eq!(play.run.build_report(), stored.run.build_report());
        }
        // A session continues with these messages after any outcome.
        assert_whole(&play.run.session_messages());
    }
}
