use std::{
    collections::VecDeque,
    pin::pin,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{StreamExt, future, stream};
use serde_json::json;
use switchboard_domain::{
    ChatRequest, FinishReason, ModelCapabilities, ModelError, ModelErrorKind, ModelEvent, ModelId,
    ModelStream, Opaque, Part, PartStart, ProviderState, Role, ToolCall, ToolCallError,
    ToolCatalog, ToolDefinition, ToolHostChanges, ToolOutput, ToolProgress,
};

use super::{model_calls::MAX_EVENTS_TOGETHER, *};
use crate::{ApprovalPolicy, Outcome, RunEventKind};

type Answer = Vec<Result<ModelEvent, ModelError>>;

/// A model that answers from a list, and afterwards never.
struct Scripted {
    id: ModelId,
    capabilities: ModelCapabilities,
    answers: Mutex<VecDeque<Answer>>,
    requests: Mutex<Vec<ChatRequest>>,
}

impl Scripted {
    fn new(answers: impl IntoIterator<Item = Answer>) -> Arc<Self> {
        Arc::new(Self {
            id: ModelId::new("test", "scripted"),
            capabilities: ModelCapabilities::default(),
            answers: Mutex::new(answers.into_iter().collect()),
            requests: Mutex::default(),
        })
    }
}

#[async_trait]
impl ChatModel for Scripted {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn capabilities(&self) -> &ModelCapabilities {
        &self.capabilities
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ModelStream, ModelError> {
        self.requests.lock().unwrap().push(request.clone());
        let answer = self.answers.lock().unwrap().pop_front();
        Ok(match answer {
            Some(events) => Box::pin(stream::iter(events)),
            None => Box::pin(stream::pending()),
        })
    }
}

fn text(text: &str) -> Answer {
    vec![
        Ok(ModelEvent::PartStarted {
            index: 0,
            part: PartStart::Text,
        }),
        Ok(ModelEvent::TextDelta {
            index: 0,
            text: text.into(),
        }),
        Ok(ModelEvent::Finished {
            reason: FinishReason::Stop,
            raw: None,
        }),
    ]
}

fn calls(calls: &[(&str, &str, &str)]) -> Answer {
    let mut events = Vec::new();
    for (index, (id, name, input)) in (0u32..).zip(calls) {
        let part = PartStart::ToolUse {
            id: (*id).into(),
            name: (*name).into(),
        };
        events.push(Ok(ModelEvent::PartStarted { index, part }));
        events.push(Ok(ModelEvent::ToolInputDelta {
            index,
            json: (*input).into(),
        }));
        events.push(Ok(ModelEvent::PartFinished { index }));
    }
    events.push(Ok(ModelEvent::Finished {
        reason: FinishReason::ToolUse,
        raw: None,
    }));
    events
}

fn catalog() -> ToolCatalog {
    let tool = ToolDefinition::new("add", "", json!({"type": "object", "required": ["n"]}));
    ToolCatalog {
        tools: vec![Arc::new(tool)],
        problems: Vec::new(),
    }
}

/// A host whose calls wait until as many are under way as the test wants.
struct Together {
    wanted: usize,
    running: AtomicUsize,
    most: AtomicUsize,
    all_there: tokio::sync::Notify,
}

#[async_trait]
impl ToolHost for Together {
    async fn tools(&self) -> ToolCatalog {
        catalog()
    }

    async fn call(&self, call: ToolCall) -> Result<ToolOutput, ToolCallError> {
        let now = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        let arrived = self.all_there.notified();
        if now == self.wanted {
            self.all_there.notify_waiters();
        } else {
            arrived.await;
        }
        self.running.fetch_sub(1, Ordering::SeqCst);
        call.progress.report(ToolProgress {
            progress: 1.0,
            total: None,
            message: None,
        });
        Ok(ToolOutput::text(call.input["n"].to_string()))
    }

    fn changes(&self) -> ToolHostChanges {
        Box::pin(stream::empty())
    }
}

fn together(wanted: usize) -> Arc<Together> {
    Arc::new(Together {
        wanted,
        running: AtomicUsize::new(0),
        most: AtomicUsize::new(0),
        all_there: tokio::sync::Notify::new(),
    })
}

#[tokio::test]
async fn instructions_come_first_unless_the_conversation_has_some() {
    let model = Scripted::new([text("a"), text("b")]);
    let agent = Agent::new(model.clone()).with_instructions("Be brief.");
    agent.ask("go").finish().await;
    let own = vec![
        Arc::new(Message::system("Mine.")),
        Arc::new(Message::user("go")),
    ];
    agent.run(own).finish().await;
    let requests = model.requests.lock().unwrap();
    let first = |n: usize| (requests[n].messages[0].role, requests[n].messages[0].text());
    assert_eq!(first(0), (Role::System, "Be brief.".to_owned()));
    assert_eq!(first(1), (Role::System, "Mine.".to_owned()));
}

#[tokio::test]
async fn dropping_the_stream_drops_the_request() {
    struct Dropped(Arc<AtomicUsize>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    struct Hanging(ModelId, ModelCapabilities, Arc<AtomicUsize>);
    #[async_trait]
    impl ChatModel for Hanging {
        fn id(&self) -> &ModelId {
            &self.0
        }
        fn capabilities(&self) -> &ModelCapabilities {
            &self.1
        }
        async fn stream(&self, _: &ChatRequest) -> Result<ModelStream, ModelError> {
            let guard = Dropped(self.2.clone());
            Ok(Box::pin(stream::once(async move {
                let _guard = guard;
                future::pending().await
            })))
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let model = Hanging(
        ModelId::new("t", "h"),
        ModelCapabilities::default(),
        dropped.clone(),
    );
    let mut run = Agent::new(Arc::new(model)).ask("go");
    while let Some(event) = run.next().await {
        if matches!(event.kind, RunEventKind::ModelCallStarted { .. }) {
            break;
        }
    }
    // Let the request begin, then walk away.
    assert!(future::poll_immediate(run.next()).await.is_none());
    drop(run);
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn provider_blocks_are_emitted_without_their_state() {
    let block = Opaque {
        kind: "web_search_tool_result".into(),
        text: Some("Rust – rust-lang.org".into()),
        provider_state: ProviderState::minted_by(
            &ModelId::new("vendor", "m"),
            json!({"encrypted_content": "c2VjcmV0"}),
        ),
    };
    let mut events = text("Found it.");
    events.insert(
        0,
        Ok(ModelEvent::PartStarted {
            index: 7,
            part: PartStart::Whole {
                part: Box::new(Part::Opaque(block.clone())),
            },
        }),
    );
    // Indices grow: the text comes after the block.
    for event in events.iter_mut().skip(1).flatten() {
        match event {
            ModelEvent::PartStarted { index, .. } | ModelEvent::TextDelta { index, .. } => {
                *index = 8;
            }
            _ => {}
        }
    }
    let model = Scripted::new([events]);
    let mut run = Agent::new(model).ask("go");
    let mut told = Vec::new();
    while let Some(event) = run.next().await {
        told.push(serde_json::to_value(&event).unwrap());
    }
    let of_the_block: Vec<_> = told
        .iter()
        .filter(|event| event["type"] == "provider_block")
        .collect();
    assert_eq!(of_the_block.len(), 1, "{told:?}");
    assert_eq!(of_the_block[0]["kind"], "web_search_tool_result");
    assert_eq!(of_the_block[0]["text"], "Rust – rust-lang.org");
    assert!(!of_the_block[0].to_string().contains("c2VjcmV0"));
    let run = run.into_run().unwrap();
    let last = run.messages().last().unwrap();
    assert_eq!(last.parts[0], Part::Opaque(block));
}

#[tokio::test]
async fn the_model_stream_is_read_at_most_one_group_ahead() {
    struct Counting(ModelId, ModelCapabilities, Arc<AtomicUsize>);
    #[async_trait]
    impl ChatModel for Counting {
        fn id(&self) -> &ModelId {
            &self.0
        }
        fn capabilities(&self) -> &ModelCapabilities {
            &self.1
        }
        async fn stream(&self, _: &ChatRequest) -> Result<ModelStream, ModelError> {
            let read = self.2.clone();
            let words = (0..1000).map(|word| {
                Ok(ModelEvent::TextDelta {
                    index: 0,
                    text: format!("{word} "),
                })
            });
            let mut events = text("");
            events.splice(1..2, words);
            Ok(Box::pin(stream::iter(events).inspect(move |_| {
                read.fetch_add(1, Ordering::SeqCst);
            })))
        }
    }
    let read = Arc::new(AtomicUsize::new(0));
    let model = Counting(
        ModelId::new("t", "c"),
        ModelCapabilities::default(),
        read.clone(),
    );
    let mut run = Agent::new(Arc::new(model)).ask("go");
    let mut taken = 0;
    while let Some(event) = run.next().await {
        if matches!(event.kind, RunEventKind::TextDelta { .. }) {
            taken += 1;
            // Available events are emitted in groups. The driver continues when the reader has
            // taken a group.
            let ahead = read.load(Ordering::SeqCst) - taken;
            assert!(ahead <= MAX_EVENTS_TOGETHER, "{ahead} ahead at {taken}");
        }
    }
    assert_eq!(taken, 1000);
}

/// Polls a run as long as events come, and tells how many came and how often the run woke its
/// reader by itself.
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
    let mut ready = Agent::new(Scripted::new([text("done")])).ask("go");
    // run_started, model_call_started, text_delta, model_call_finished, run_finished
    assert_eq!(drained(&mut ready), (5, 0, Poll::Ready(())));

    let mut hanging = Agent::new(Scripted::new([])).ask("go");
    assert_eq!(drained(&mut hanging), (2, 0, Poll::Pending));
    hanging.cancel_handle().cancel();
    assert_eq!(drained(&mut hanging), (1, 0, Poll::Ready(())));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_has_its_duration() {
    let model = Scripted::new([calls(&[
        ("a", "add", r#"{"n":1}"#),
        ("b", "add", r#"{"n":2}"#),
    ])]);
    let options = RunOptions {
        max_concurrent_tools: 1,
        tool_timeout: None,
        ..RunOptions::default()
    };
    // Of two that are wanted one comes: it waits for ever, and the other behind it.
    let mut run = Agent::new(model)
        .with_tools(together(2))
        .with_options(options)
        .ask("go");
    while let Some(event) = run.next().await {
        if matches!(event.kind, RunEventKind::ToolStarted { .. }) {
            break;
        }
    }
    let nothing = tokio::time::timeout(Duration::from_millis(1500), run.next()).await;
    assert!(nothing.is_err(), "{nothing:?}");
    run.cancel_handle().cancel();
    let mut told = Vec::new();
    while let Some(event) = run.next().await {
        if let RunEventKind::ToolFinished {
            id, duration_ms, ..
        } = event.kind
        {
            told.push((id, duration_ms));
        }
    }
    let expected = [("a".to_owned(), 1500), ("b".to_owned(), 0)];
    assert_eq!(told, expected);
    let report = run.into_run().unwrap().report().unwrap();
    let recorded: Vec<_> = report
        .tool_calls
        .into_iter()
        .map(|call| (call.id, call.duration_ms))
        .collect();
    assert_eq!(recorded, expected);
}

#[path = "stopping_tests.rs"]
mod stopping;

#[tokio::test]
async fn without_an_approver_a_call_is_not_executed() {
    let options = RunOptions {
        approval: ApprovalPolicy::Ask.into(),
        ..RunOptions::default()
    };
    let model = Scripted::new([calls(&[("a", "add", r#"{"n":1}"#)]), text("ok")]);
    let agent = Agent::new(model)
        .with_tools(together(1))
        .with_options(options);
    let run = agent.ask("go").finish().await;
    let call = &run.report().unwrap().tool_calls[0];
    assert!(call.is_error && call.attempts == 0);
    let text = call.result.content[0].as_text();
    assert!(text.contains("no person is available"), "{text}");
}
