//! Questions of servers during a call, and their attribution to runs.

use std::sync::Arc;

use futures_util::{FutureExt, StreamExt};
use serde_json::{Value, json};
use switchboard_domain::{
    CandidateToolCalls, Elicitation, ElicitationAnswer, ElicitationForm, Elicitor, Principal,
    ToolCall, ToolCallError, ToolOutput, WarningKind,
};
use switchboard_orchestration::{
    Agent, QuestionAction, RunEvent, RunEventKind, RunStream,
    persistence::PersistedRunEnd,
    questions::{NoSuchQuestion, Questions},
    tools::arguments::{ContextInjection, ContextTemplate},
};

use crate::{
    crashes::durable_runs,
    memory_store::{Disk, session_id},
    support::{Answer, Scripted, Tools, assert_grammar, calls, picked, tool},
};

fn form(call: Option<String>) -> Elicitation {
    Elicitation {
        server: "srv".into(),
        message: "Which colour?".into(),
        call,
        candidates: CandidateToolCalls::default(),
        form: ElicitationForm::Fields {
            schema: json!({"type": "object", "properties": {"colour": {"type": "string"}}}),
        },
    }
}

fn blue() -> ElicitationAnswer {
    let content = json!({"colour": "blue"});
    ElicitationAnswer::Accept {
        content: content.as_object().unwrap().clone(),
    }
}

/// A tool whose server asks the user a question. Returns the answer as the tool result.
async fn asks(questions: Questions, call: ToolCall) -> Result<ToolOutput, ToolCallError> {
    let answer = questions.elicit(&form(call.idempotency_key)).await;
    let said = serde_json::to_string(&answer).unwrap();
    Ok(ToolOutput::text(said))
}

fn agent(questions: &Questions, answers: impl IntoIterator<Item = Answer>) -> Agent {
    let host = questions.clone();
    let tools = Tools::new()
        .with_async(tool("ask"), move |call| asks(host.clone(), call))
        .with_async(tool("wait"), |_| std::future::pending());
    Agent::new(Scripted::new(answers))
        .with_tools(Arc::new(tools))
        .with_question_registry(questions.clone())
}

fn ask(ids: &[&'static str]) -> Answer {
    let made: Vec<_> = ids
        .iter()
        .map(|id| (*id, "srv__ask", json!({"n": 1})))
        .collect();
    calls(&made)
}

/// Reads events up to the next question. Returns the question's id.
async fn next_question(run: &mut RunStream, events: &mut Vec<RunEvent>) -> String {
    loop {
        let event = run.next().await.expect("there is a question");
        events.push(event.clone());
        if let RunEventKind::QuestionAsked { id, question } = event.kind {
            assert_eq!(question.message, "Which colour?");
            return id;
        }
    }
}

async fn rest(mut run: RunStream, mut events: Vec<RunEvent>) -> Vec<RunEvent> {
    while let Some(event) = run.next().await {
        events.push(event);
    }
    assert_grammar(&events);
    // Each question ends once, and before its call ends.
    let at = |is_it: &dyn Fn(&RunEventKind) -> bool| {
        let places = events.iter().enumerate();
        let places = places.filter(|(_, event)| is_it(&event.kind));
        places.map(|(place, _)| place).collect::<Vec<_>>()
    };
    for event in &events {
        if let RunEventKind::QuestionAsked { id, question } = &event.kind {
            let over = at(
                &|kind| matches!(kind, RunEventKind::QuestionAnswered { id: of, .. } if of == id),
            );
            let call = question.call.as_ref().unwrap().rsplit('/').next().unwrap();
            let ended = at(
                &|kind| matches!(kind, RunEventKind::ToolFinished { id, .. } if id.as_str() == call),
            );
            assert_eq!((over.len(), ended.len()), (1, 1));
            assert!(over[0] < ended[0]);
        }
    }
    events
}

fn actions(events: &[RunEvent]) -> Vec<QuestionAction> {
    picked(events, |kind| match kind {
        RunEventKind::QuestionAnswered { action, .. } => Some(*action),
        _ => None,
    })
}

fn result(events: &[RunEvent], call: &str) -> Value {
    let text = events.iter().find_map(|event| match &event.kind {
        RunEventKind::ToolFinished { id, content, .. } if id == call => Some(content[0].as_text()),
        _ => None,
    });
    serde_json::from_str(&text.unwrap()).unwrap()
}

#[tokio::test]
async fn a_question_is_emitted_in_its_run_only() {
    let questions = Questions::default();
    let mut first = agent(&questions, [ask(&["a"]), Answer::Says("ok")]).ask("one");
    let mut second = agent(&questions, [ask(&["a"]), Answer::Says("ok")]).ask("two");
    let (mut of_first, mut of_second) = (Vec::new(), Vec::new());
    let one = next_question(&mut first, &mut of_first).await;
    let two = next_question(&mut second, &mut of_second).await;
    let (run_one, run_two) = (of_first[0].run_id.clone(), of_second[0].run_id.clone());
    assert_eq!(questions.open_questions(&run_one)[0].id, one);
    assert_eq!(questions.open_questions(&run_two).len(), 1);

    // The question of the other run is not found in this run.
    let unknown = NoSuchQuestion {
        run: run_one.to_string(),
        id: two.clone(),
    };
    assert_eq!(
        questions.answer_question(&run_one, &two, blue()),
        Err(unknown)
    );
    questions.answer_question(&run_two, &two, blue()).unwrap();
    assert!(
        questions.answer_question(&run_two, &two, blue()).is_err(),
        "once"
    );
    let of_second = rest(second, of_second).await;
    assert_eq!(actions(&of_second), [QuestionAction::Accept]);
    assert_eq!(result(&of_second, "a")["content"]["colour"], "blue");
    let over = of_second
        .iter()
        .find(|event| matches!(event.kind, RunEventKind::QuestionAnswered { .. }));
    let over = serde_json::to_value(over).unwrap();
    assert_eq!(over["action"], "accept");
    assert!(
        !over.to_string().contains("blue"),
        "the answer of the server"
    );

    questions
        .answer_question(&run_one, &one, ElicitationAnswer::Decline)
        .unwrap();
    let of_first = rest(first, of_first).await;
    assert_eq!(actions(&of_first), [QuestionAction::Decline]);
    assert_eq!(result(&of_first, "a"), json!({"action": "decline"}));
    assert!(questions.open_questions(&run_one).is_empty());
}

#[tokio::test]
async fn questions_of_concurrent_calls_are_answered_in_any_order() {
    let questions = Questions::default();
    let mut run = agent(&questions, [ask(&["a", "b"]), Answer::Says("ok")]).ask("go");
    let mut events = Vec::new();
    let first = next_question(&mut run, &mut events).await;
    let second = next_question(&mut run, &mut events).await;
    let id = events[0].run_id.clone();
    let open: Vec<_> = questions
        .open_questions(&id)
        .into_iter()
        .map(|open| open.id)
        .collect();
    assert_eq!(open, [first.clone(), second.clone()]);
    questions.answer_question(&id, &second, blue()).unwrap();
    questions
        .answer_question(&id, &first, ElicitationAnswer::Cancel)
        .unwrap();
    let events = rest(run, events).await;
    let expected = [QuestionAction::Accept, QuestionAction::Cancel];
    assert_eq!(actions(&events), expected);
    assert_eq!(result(&events, "a"), json!({"action": "cancel"}));
}

#[tokio::test]
async fn a_question_without_a_known_call_is_cancelled() {
    let questions = Questions::default();
    for call in [None, Some("some/1/call".to_owned())] {
        let answer = questions.elicit(&form(call)).now_or_never();
        assert_eq!(answer, Some(ElicitationAnswer::Cancel));
    }
}

/// Returns a question whose server does not name the call that it belongs to.
fn without_call_id(keys: &[String], others: bool) -> Elicitation {
    Elicitation {
        candidates: CandidateToolCalls {
            calls: keys.to_vec(),
            others,
        },
        ..form(None)
    }
}

/// Starts a run of this user with calls that never end. Returns the run, its events and the keys of
/// the calls.
async fn waiting(
    questions: &Questions,
    user: &str,
    ids: &[&'static str],
) -> (RunStream, Vec<RunEvent>, Vec<String>) {
    let person = Principal {
        tenant: String::new(),
        user: user.to_owned(),
    };
    let made = ids.iter().zip(1..);
    let made: Vec<_> = made
        .map(|(id, n)| (*id, "srv__wait", json!({"n": n})))
        .collect();
    let agent = agent(questions, [calls(&made)]).with_principal(person, None);
    let (mut run, mut events) = (agent.ask("go"), Vec::new());
    let mut started = 0;
    while started < ids.len() {
        let event = run.next().await.unwrap();
        started += usize::from(matches!(event.kind, RunEventKind::ToolStarted { .. }));
        events.push(event);
    }
    // The calls start only when their events have been read.
    assert!(run.next().now_or_never().is_none());
    let id = &events[0].run_id;
    let keys = ids.iter().map(|call| format!("{id}/1/{call}"));
    let keys = keys.collect();
    (run, events, keys)
}

/// Returns the messages of the warnings that a question was not shown.
fn not_asked(events: &[RunEvent]) -> Vec<&str> {
    let warnings = events.iter().filter_map(|event| match &event.kind {
        RunEventKind::Warning { warning } => Some(warning),
        _ => None,
    });
    let of_kind = warnings.filter(|it| it.kind == WarningKind::QuestionNotAsked);
    of_kind.map(|it| it.message.as_str()).collect()
}

#[tokio::test]
async fn every_run_with_a_possible_call_gets_a_warning() {
    let questions = Questions::default();
    let (of_ada, told_ada, ada) = waiting(&questions, "ada", &["a", "b"]).await;
    let (of_bob, told_bob, bob) = waiting(&questions, "bob", &["a"]).await;
    let (of_cy, told_cy, cy) = waiting(&questions, "cy", &["a"]).await;
    let either = without_call_id(&[ada.clone(), bob.clone()].concat(), false);
    for _ in 0..3 {
        let answer = questions.elicit(&either).now_or_never();
        assert_eq!(answer, Some(ElicitationAnswer::Cancel));
    }
    // The question may also belong to none of the calls. Each call gets one warning.
    let or_none = without_call_id(&[bob, cy].concat(), true);
    let answer = questions.elicit(&or_none).now_or_never();
    assert_eq!(answer, Some(ElicitationAnswer::Cancel));

    for (run, told) in [(of_ada, told_ada), (of_bob, told_bob), (of_cy, told_cy)] {
        run.cancel_handle().cancel_run();
        let events = rest(run, told).await;
        let warnings = not_asked(&events);
        assert_eq!(warnings.len(), 1, "{events:?}");
        assert!(warnings[0].contains("`srv`"), "{}", warnings[0]);
        assert!(!warnings[0].contains("colour"), "it may be for another");
        assert!(actions(&events).is_empty());
    }
}

#[tokio::test]
async fn a_question_without_call_id_is_shown_if_all_possible_calls_are_of_one_run() {
    let questions = Questions::default();
    let (mut run, mut events, keys) = waiting(&questions, "ada", &["b", "c"]).await;
    let possible = without_call_id(&keys, false);
    let mut asking = Box::pin(questions.elicit(&possible));
    assert!((&mut asking).now_or_never().is_none());
    let id = events[0].run_id.clone();
    let open = questions.open_questions(&id);
    assert_eq!(open[0].question.candidates, CandidateToolCalls::default());
    questions.answer_question(&id, &open[0].id, blue()).unwrap();
    assert_eq!(asking.await, blue());
    run.cancel_handle().cancel_run();
    while let Some(event) = run.next().await {
        events.push(event);
    }
    assert_grammar(&events);
    assert_eq!(actions(&events), [QuestionAction::Accept]);
    assert!(not_asked(&events).is_empty());
}

/// Asserts that a question that may belong to these calls is cancelled and not shown.
fn assert_cancelled(questions: &Questions, keys: &[&[String]]) {
    let question = without_call_id(&keys.concat(), false);
    let answer = questions.elicit(&question).now_or_never();
    assert_eq!(answer, Some(ElicitationAnswer::Cancel), "{keys:?}");
}

#[tokio::test]
async fn a_late_question_of_a_timed_out_call_is_not_shown_to_the_next_caller() {
    let questions = Questions::default();
    for next_caller in ["bob", "ada"] {
        let (timed_out, _, ada) = waiting(&questions, "ada", &["a"]).await;
        // The caller drops the call, but the server has not answered it.
        drop(timed_out);
        let (run, events, next) = waiting(&questions, next_caller, &["b"]).await;
        assert_cancelled(&questions, &[&ada, &next]);
        assert!(questions.open_questions(&events[0].run_id).is_empty());
        run.cancel_handle().cancel_run();
        let events = rest(run, events).await;
        assert!(actions(&events).is_empty());
        assert_eq!(not_asked(&events).len(), 1, "{events:?}");
    }
}

#[tokio::test]
async fn a_question_of_unknown_or_ended_calls_is_cancelled() {
    let questions = Questions::default();
    let (run, _, keys) = waiting(&questions, "ada", &["a"]).await;
    assert_cancelled(&questions, &[&["some/1/call".to_owned()], &keys]);
    assert_cancelled(&questions, &[]);
    drop(run);
    assert_cancelled(&questions, &[&keys]);
}

/// A call ends on one thread while its server sends a question on another thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_question_follows_the_question() {
    for _ in 0..200 {
        let questions = Questions::default();
        let (mut run, mut events, keys) = waiting(&questions, "ada", &["a"]).await;
        let asking = tokio::spawn({
            let (questions, key) = (questions.clone(), keys[0].clone());
            async move { questions.elicit(&form(Some(key))).await }
        });
        run.cancel_handle().cancel_run();
        while let Some(event) = run.next().await {
            events.push(event);
        }
        assert_eq!(asking.await.unwrap(), ElicitationAnswer::Cancel);
        let of_questions = picked(&events, |kind| match kind {
            RunEventKind::QuestionAsked { .. } => Some("asked"),
            RunEventKind::QuestionAnswered { .. } => Some("answered"),
            _ => None,
        });
        let orders: [&[&str]; 2] = [&[], &["asked", "answered"]];
        assert!(orders.contains(&&*of_questions), "{of_questions:?}");
    }
}

#[tokio::test]
async fn a_question_ends_with_its_run() {
    let questions = Questions::default();
    let mut run = agent(&questions, [ask(&["a"])]).ask("go");
    let mut events = Vec::new();
    let id = next_question(&mut run, &mut events).await;
    run.cancel_handle().cancel_run();
    let events = rest(run, events).await;
    assert_eq!(actions(&events), [QuestionAction::Cancel]);
    assert!(
        questions
            .answer_question(&events[0].run_id, &id, blue())
            .is_err()
    );

    // A question of a run that is dropped.
    let mut run = agent(&questions, [ask(&["a"])]).ask("go");
    let mut events = Vec::new();
    next_question(&mut run, &mut events).await;
    let id = events[0].run_id.clone();
    assert_eq!(questions.open_questions(&id).len(), 1);
    drop(run);
    assert!(questions.open_questions(&id).is_empty());
}

#[tokio::test]
async fn a_server_that_does_not_wait_for_its_answer_withdraws_the_question() {
    let questions = Questions::default();
    let host = questions.clone();
    let tools = Tools::new().with_async(tool("ask"), move |call: ToolCall| {
        let host = host.clone();
        async move {
            let question = form(call.idempotency_key);
            let asked = host.elicit(&question).now_or_never();
            assert_eq!(asked, None);
            Ok(ToolOutput::text("\"never mind\""))
        }
    });
    let model = Scripted::new([ask(&["a"]), Answer::Says("ok")]);
    let run = Agent::new(model)
        .with_tools(Arc::new(tools))
        .with_question_registry(questions)
        .ask("go");
    let events = rest(run, Vec::new()).await;
    assert_eq!(actions(&events), [QuestionAction::Cancel]);
}

#[tokio::test]
async fn a_question_contains_no_injected_values() {
    let questions = Questions::default();
    let host = questions.clone();
    let tools = Tools::new().with_async(tool("ask"), move |call: ToolCall| {
        let host = host.clone();
        async move {
            let mut question = form(call.idempotency_key);
            question.message = "I was given t0p-s3cret-token. Why?".into();
            question.form = ElicitationForm::Fields {
                schema: json!({"properties": {"x": {"description": "t0p-s3cret-token"}}}),
            };
            let answer = host.elicit(&question);
            drop(answer.await);
            Ok(ToolOutput::text("ok"))
        }
    });
    let token = ContextTemplate::parse(&json!("t0p-s3cret-token")).unwrap();
    let context = ContextInjection::new().with_template("accessToken", token);
    let mut run = Agent::new(Scripted::new([ask(&["a"])]))
        .with_tools(Arc::new(tools))
        .with_context_injection(context)
        .with_question_registry(questions.clone())
        .ask("go");
    while let Some(event) = run.next().await {
        if let RunEventKind::QuestionAsked { question, .. } = &event.kind {
            let told = serde_json::to_string(question).unwrap();
            assert!(!told.contains("t0p-s3cret-token"), "{told}");
            let open = questions.open_questions(&event.run_id);
            assert_eq!(open[0].question, **question);
            return;
        }
    }
    panic!("nothing was asked");
}

#[tokio::test]
async fn a_question_of_a_durable_run_is_stored_before_it_is_emitted() {
    let disk = Disk::with_session([]);
    let questions = Questions::default();
    let agent = agent(&questions, [ask(&["a"]), Answer::Says("ok")]);
    let message = Arc::new(switchboard_domain::Message::user("go"));
    let (durable_runs, session) = (durable_runs(&disk.process(None)), session_id());
    let begun = durable_runs.begin_run(&agent, &session, vec![message], None);
    let mut run = begun.await.unwrap();
    while let Some(kept) = run.next().await {
        assert!(disk.record().last_event >= kept.event.seq);
        if let RunEventKind::QuestionAsked { id, .. } = &kept.event.kind {
            questions.answer_question(run.id(), id, blue()).unwrap();
        }
    }
    assert!(matches!(run.run_end(), Some(PersistedRunEnd::Finished(_))));
    assert_eq!(actions(&disk.events()), [QuestionAction::Accept]);
}
