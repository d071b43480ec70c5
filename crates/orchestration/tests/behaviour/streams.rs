//! The event stream of a run: its speed, its cancellation, and its end when it is dropped.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use futures_util::{Stream as _, StreamExt as _};
use serde_json::json;
use switchboard_domain::{
    Message, ModelErrorKind, ModelEvent, ModelId, Opaque, Part, PartStart, ProviderState, Role,
};
use switchboard_orchestration::{Agent, Outcome, RunEventKind, RunOptions, RunStream};

use crate::{
    limits::{Endless, begun, usage},
    support::{
        Answer, Scripted, Tools, agent_with, ask, asking, calls, echoing, picked, played, tool,
    },
};

#[tokio::test]
async fn instructions_come_first_unless_the_conversation_has_some() {
    let model = Scripted::new([Answer::Says("a"), Answer::Says("b")]);
    let agent = Agent::new(model.clone()).with_instructions("Be brief.");
    ask(&agent, "go").await;
    let own = [Message::system("Mine."), Message::user("go")];
    agent.run(own.map(Arc::new).to_vec()).run_to_end().await;
    for (n, expected) in [(0, "Be brief."), (1, "Mine.")] {
        let first = &model.request(n).messages[0];
        assert_eq!(
            (first.role, first.text().as_str()),
            (Role::System, expected)
        );
    }
}

#[tokio::test]
async fn dropping_the_stream_drops_the_request() {
    let model = Arc::new(Endless::new(begun(PartStart::Text), and));
    let mut run = Agent::new(model.clone()).ask("go");
    while let Some(event) = run.next().await {
        if matches!(event.kind, RunEventKind::TextDelta { .. }) {
            break;
        }
    }
    assert_eq!(Arc::strong_count(&model.said), 2);
    drop(run);
    assert_eq!(Arc::strong_count(&model.said), 1);
}

fn and(_: u32) -> ModelEvent {
    ModelEvent::TextDelta {
        index: 0,
        text: "and ".into(),
    }
}

#[tokio::test]
async fn provider_blocks_are_emitted_without_their_state() {
    let block = Opaque {
        kind: "web_search_tool_result".into(),
        text: Some("Rust – rust-lang.org".into()),
        provider_state: ProviderState::new_for_model(
            &ModelId::new("vendor", "m"),
            json!({"encrypted_content": "c2VjcmV0"}),
        ),
    };
    let part = Box::new(Part::Opaque(block.clone()));
    let mut events = begun(PartStart::Whole { part });
    events.push(ModelEvent::Finished {
        reason: switchboard_domain::FinishReason::Stop,
        raw: None,
    });
    let (events, run) =
        played(Agent::new(Scripted::new([Answer::Streams(events)])).ask("go")).await;
    let emitted: Vec<_> = events
        .iter()
        .map(|event| serde_json::to_value(event).unwrap())
        .filter(|event| event["type"] == "provider_block")
        .collect();
    assert_eq!(emitted.len(), 1, "{events:?}");
    assert_eq!(emitted[0]["kind"], "web_search_tool_result");
    assert_eq!(emitted[0]["text"], "Rust – rust-lang.org");
    assert!(!emitted[0].to_string().contains("c2VjcmV0"));
    assert_eq!(run.messages().last().unwrap().parts[0], Part::Opaque(block));
}

#[tokio::test]
async fn the_model_stream_is_read_at_most_one_group_ahead() {
    let model = Arc::new(Endless::talking(1_000));
    let mut run = Agent::new(model.clone()).ask("go");
    let mut taken = 0;
    while let Some(event) = run.next().await {
        if matches!(event.kind, RunEventKind::TextDelta { .. }) {
            taken += 1;
            // Available events are emitted in groups of at most 16. The driver continues when the
            // reader has taken a group.
            let ahead = model.said.load(Ordering::Relaxed) - taken;
            assert!(ahead <= 16, "{ahead} ahead at {taken}");
        }
    }
    assert_eq!(taken, 1_000);
}

/// Polls a run as long as it returns events. Returns the number of events, the number of times that
/// the run woke its reader, and the last poll result.
fn drained(run: &mut RunStream) -> (usize, usize, Poll<()>) {
    struct Wakes(AtomicUsize);
    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let woken = Arc::new(Wakes(AtomicUsize::new(0)));
    let waker = Waker::from(woken.clone());
    let mut context = Context::from_waker(&waker);
    let mut events = 0;
    let mut run = pin!(run);
    let end = loop {
        match run.as_mut().poll_next(&mut context) {
            Poll::Ready(Some(_)) => events += 1,
            Poll::Ready(None) => break Poll::Ready(()),
            Poll::Pending => break Poll::Pending,
        }
    };
    (events, woken.0.load(Ordering::SeqCst), end)
}

#[test]
fn yielding_to_the_reader_is_not_busy_waiting() {
    let mut ready = Agent::new(Scripted::new([Answer::Says("done")])).ask("go");
    // The events: run_started, model_call_started, two text_delta, model_call_finished,
    // run_finished.
    assert_eq!(drained(&mut ready), (6, 0, Poll::Ready(())));

    let mut hanging = Agent::new(Scripted::new([Answer::Hangs("")])).ask("go");
    assert_eq!(drained(&mut hanging), (2, 0, Poll::Pending));
    hanging.cancel_handle().cancel_run();
    assert_eq!(drained(&mut hanging), (1, 0, Poll::Ready(())));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_has_its_duration() {
    let model = Scripted::new([calls(&[
        ("a", "srv__wait", json!({"n": 1})),
        ("b", "srv__wait", json!({"n": 2})),
    ])]);
    let options = RunOptions {
        max_concurrent_tools: 1,
        ..RunOptions::default()
    };
    let tools = Tools::new().with_async(tool("wait"), |_| std::future::pending());
    let mut run = Agent::new(model)
        .with_tools(Arc::new(tools))
        .with_options(options)
        .ask("go");
    while let Some(event) = run.next().await {
        if matches!(event.kind, RunEventKind::ToolStarted { .. }) {
            break;
        }
    }
    let nothing = tokio::time::timeout(Duration::from_millis(1500), run.next()).await;
    assert!(nothing.is_err(), "{nothing:?}");
    run.cancel_handle().cancel_run();
    let (events, run) = played(run).await;
    let expected = [("a", 1500), ("b", 0)];
    let emitted = picked(&events, |kind| match kind {
        RunEventKind::ToolFinished {
            id, duration_ms, ..
        } => Some((id.as_str(), *duration_ms)),
        _ => None,
    });
    assert_eq!(emitted, expected);
    let calls = run.build_report().unwrap().tool_calls;
    let recorded = calls
        .iter()
        .map(|call| (call.id.as_str(), call.duration_ms));
    assert_eq!(recorded.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn without_an_approver_a_call_is_not_executed() {
    let do_it = calls(&[("a", "srv__do", json!({"n": 1}))]);
    let (_, report) = ask(
        &agent_with(
            &Scripted::new([do_it, Answer::Says("ok")]),
            &echoing(&["do"]),
            asking(),
        ),
        "go",
    )
    .await;
    let call = &report.tool_calls[0];
    assert!(call.is_error && call.attempts == 0);
    let text = call.result.content[0].as_text();
    assert!(text.contains("no user is available"), "{text}");
}

#[tokio::test]
async fn an_endless_answer_without_output_can_be_stopped() {
    let counts: fn(u32) -> ModelEvent = |_| ModelEvent::Usage {
        usage: Box::new(usage(0, 0)),
    };
    let model = || Arc::new(Endless::new(Vec::new(), counts));
    let mut options = RunOptions::default();
    options.limits.max_answer_bytes = None;
    options.limits.max_wall_time = Some(Duration::from_millis(20));
    let agent = Agent::new(model()).with_options(options.clone());
    let expected = Some(Outcome::Limited);
    assert_eq!(agent.ask("go").run_to_end().await.outcome(), expected);

    options.limits.max_wall_time = None;
    let run = Agent::new(model()).with_options(options).ask("go");
    let cancel = run.cancel_handle();
    let stopper = std::thread::spawn(move || cancel.cancel_run());
    assert_eq!(run.run_to_end().await.outcome(), Some(Outcome::Cancelled));
    stopper.join().unwrap();
}

#[tokio::test]
async fn a_cancellation_at_a_text_delta_precedes_an_error_after_it() {
    let mut run = Agent::new(Scripted::new([Answer::Breaks("so far")])).ask("go");
    let cancel = run.cancel_handle();
    while let Some(event) = run.next().await {
        if matches!(event.kind, RunEventKind::TextDelta { .. }) {
            cancel.cancel_run();
        }
    }
    assert_eq!(run.into_run().unwrap().outcome(), Some(Outcome::Cancelled));
    // If the run is not cancelled, the error ends it.
    let broken = Agent::new(Scripted::new([Answer::Breaks("so far")]));
    let error = ask(&broken, "go").await.1.error.unwrap();
    let interrupted = ModelErrorKind::Interrupted.as_str().to_owned();
    assert_eq!(
        error.kind,
        switchboard_orchestration::RunErrorKind::Model(interrupted)
    );
}

/// All tasks share one thread, and another task stops the run.
#[tokio::test]
async fn an_endless_answer_lets_other_tasks_run() {
    let model = Arc::new(Endless::new(begun(PartStart::Text), and));
    let mut options = RunOptions::default();
    options.limits.max_answer_bytes = None;
    let run = Agent::new(model).with_options(options).ask("go");
    let cancel = run.cancel_handle();
    let other = tokio::spawn(async move { cancel.cancel_run() });
    assert_eq!(run.run_to_end().await.outcome(), Some(Outcome::Cancelled));
    other.await.unwrap();
}
