//! What servers ask of the person in the middle of a call, told in the run that the call belongs to.

use std::sync::Arc;

use futures_util::{FutureExt, StreamExt};
use serde_json::{Value, json};
use switchboard_domain::{
    Elicitation, ElicitationAnswer, ElicitationForm, Elicitor, ToolCall, ToolCallError, ToolOutput,
};
use switchboard_orchestration::{
    Agent, QuestionAction, RunEvent, RunEventKind, RunStream,
    arguments::ContextInjection,
    journal::KeptEnd,
    questions::{NoSuchQuestion, Questions},
};

use crate::{
    crashes::journal,
    disk::{Disk, session_id},
    support::{Answer, Scripted, Tools, assert_grammar, calls, tool},
};

fn form(call: Option<String>) -> Elicitation {
    Elicitation {
        server: "srv".into(),
        message: "Which colour?".into(),
        call,
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

/// A tool whose server asks the person first, as an MCP host does, and says what they said.
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
        .with_questions(questions.clone())
}

fn ask(ids: &[&'static str]) -> Answer {
    let made: Vec<_> = ids
        .iter()
        .map(|id| (*id, "srv__ask", json!({"n": 1})))
        .collect();
    calls(&made)
}

/// Everything up to and with the next question, whose id it gives.
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
    // Each question is over once, and before its call is.
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
    let actions = events.iter().filter_map(|event| match &event.kind {
        RunEventKind::QuestionAnswered { action, .. } => Some(*action),
        _ => None,
    });
    actions.collect()
}

fn result(events: &[RunEvent], call: &str) -> Value {
    let text = events.iter().find_map(|event| match &event.kind {
        RunEventKind::ToolFinished { id, content, .. } if id == call => Some(content[0].as_text()),
        _ => None,
    });
    serde_json::from_str(&text.unwrap()).unwrap()
}

#[tokio::test]
async fn a_question_is_told_in_its_run_and_in_no_other() {
    let questions = Questions::default();
    let mut first = agent(&questions, [ask(&["a"]), Answer::Says("ok")]).ask("one");
    let mut second = agent(&questions, [ask(&["a"]), Answer::Says("ok")]).ask("two");
    let (mut of_first, mut of_second) = (Vec::new(), Vec::new());
    let one = next_question(&mut first, &mut of_first).await;
    let two = next_question(&mut second, &mut of_second).await;
    let (run_one, run_two) = (of_first[0].run_id.clone(), of_second[0].run_id.clone());
    assert_eq!(questions.open(&run_one)[0].id, one);
    assert_eq!(questions.open(&run_two).len(), 1);

    // The other run's question is none of this one's.
    let unknown = NoSuchQuestion {
        run: run_one.to_string(),
        id: two.clone(),
    };
    assert_eq!(questions.answer(&run_one, &two, blue()), Err(unknown));
    questions.answer(&run_two, &two, blue()).unwrap();
    assert!(questions.answer(&run_two, &two, blue()).is_err(), "once");
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
        "it is the server's to say what it was told"
    );

    questions
        .answer(&run_one, &one, ElicitationAnswer::Decline)
        .unwrap();
    let of_first = rest(first, of_first).await;
    assert_eq!(actions(&of_first), [QuestionAction::Decline]);
    assert_eq!(result(&of_first, "a"), json!({"action": "decline"}));
    assert!(questions.open(&run_one).is_empty());
}

#[tokio::test]
async fn questions_of_calls_that_run_at_once_are_answered_in_any_order() {
    let questions = Questions::default();
    let mut run = agent(&questions, [ask(&["a", "b"]), Answer::Says("ok")]).ask("go");
    let mut events = Vec::new();
    let first = next_question(&mut run, &mut events).await;
    let second = next_question(&mut run, &mut events).await;
    let id = events[0].run_id.clone();
    let open: Vec<_> = questions
        .open(&id)
        .into_iter()
        .map(|open| open.id)
        .collect();
    assert_eq!(open, [first.clone(), second.clone()]);
    questions.answer(&id, &second, blue()).unwrap();
    questions
        .answer(&id, &first, ElicitationAnswer::Cancel)
        .unwrap();
    let events = rest(run, events).await;
    assert_eq!(
        actions(&events),
        [QuestionAction::Accept, QuestionAction::Cancel]
    );
    assert_eq!(result(&events, "a"), json!({"action": "cancel"}));
}

#[tokio::test]
async fn whose_question_is_not_known_is_asked_of_nobody() {
    let questions = Questions::default();
    for call in [None, Some("some/1/call".to_owned())] {
        let answer = questions.elicit(&form(call)).now_or_never();
        assert_eq!(answer, Some(ElicitationAnswer::Cancel));
    }
}

#[tokio::test]
async fn a_question_ends_with_its_run() {
    let questions = Questions::default();
    let mut run = agent(&questions, [ask(&["a"])]).ask("go");
    let mut events = Vec::new();
    let id = next_question(&mut run, &mut events).await;
    run.cancel_handle().cancel();
    let events = rest(run, events).await;
    assert_eq!(actions(&events), [QuestionAction::Cancel]);
    assert!(questions.answer(&events[0].run_id, &id, blue()).is_err());

    // Nobody drives it any more.
    let mut run = agent(&questions, [ask(&["a"])]).ask("go");
    let mut events = Vec::new();
    next_question(&mut run, &mut events).await;
    let id = events[0].run_id.clone();
    assert_eq!(questions.open(&id).len(), 1);
    drop(run);
    assert!(questions.open(&id).is_empty());
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
        .with_questions(questions)
        .ask("go");
    let events = rest(run, Vec::new()).await;
    assert_eq!(actions(&events), [QuestionAction::Cancel]);
}

#[tokio::test]
async fn what_is_injected_is_not_told_in_a_question() {
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
    let context = ContextInjection::new().with("accessToken", json!("t0p-s3cret-token"));
    let mut run = Agent::new(Scripted::new([ask(&["a"])]))
        .with_tools(Arc::new(tools))
        .with_context(context)
        .with_questions(questions.clone())
        .ask("go");
    while let Some(event) = run.next().await {
        if let RunEventKind::QuestionAsked { question, .. } = &event.kind {
            let told = serde_json::to_string(question).unwrap();
            assert!(!told.contains("t0p-s3cret-token"), "{told}");
            let open = questions.open(&event.run_id);
            assert_eq!(open[0].question, **question);
            return;
        }
    }
    panic!("nothing was asked");
}

#[tokio::test]
async fn a_question_of_a_kept_run_is_stored_before_it_is_shown() {
    let disk = Disk::with_session([]);
    let questions = Questions::default();
    let agent = agent(&questions, [ask(&["a"]), Answer::Says("ok")]);
    let message = Arc::new(switchboard_domain::Message::user("go"));
    let (journal, session) = (journal(&disk.process(None)), session_id());
    let begun = journal.begin(&agent, &session, vec![message]);
    let mut run = begun.await.unwrap();
    while let Some(kept) = run.next().await {
        assert!(disk.record().last_event >= kept.event.seq);
        if let RunEventKind::QuestionAsked { id, .. } = &kept.event.kind {
            questions.answer(run.id(), id, blue()).unwrap();
        }
    }
    assert!(matches!(run.end(), Some(KeptEnd::Finished(_))));
    assert_eq!(actions(&disk.events()), [QuestionAction::Accept]);
}
