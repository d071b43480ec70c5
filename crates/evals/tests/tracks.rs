//! Conversations that are recorded at once, and each of them had again.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    io::{self, Write},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use futures_util::stream;
use switchboard_domain::{
    ChatModel, ChatRequest, FinishReason, Message, ModelCapabilities, ModelError, ModelEvent,
    ModelId, ModelStream, PartStart, ToolCall, ToolCallError, ToolCatalog, ToolChoiceOutcome,
    ToolDefinition, ToolHost, ToolHostChanges, ToolOutput,
};
use switchboard_evals::recording::{Matching, Player, Recorder, Scrubber};

#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Paper {
    fn player(&self) -> Player {
        let bytes = self.0.lock().unwrap().clone();
        Player::read(bytes.as_slice()).unwrap()
    }
}

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Says how often it was asked before, whatever is asked. Its one tool does the same.
struct Counting {
    id: ModelId,
    capabilities: ModelCapabilities,
    asked: AtomicUsize,
    called: AtomicUsize,
}

fn counting() -> Arc<Counting> {
    Arc::new(Counting {
        id: ModelId::new("acme", "one"),
        capabilities: ModelCapabilities::default(),
        asked: AtomicUsize::new(0),
        called: AtomicUsize::new(0),
    })
}

#[async_trait]
impl ChatModel for Counting {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn capabilities(&self) -> &ModelCapabilities {
        &self.capabilities
    }

    async fn stream(&self, _: &ChatRequest) -> Result<ModelStream, ModelError> {
        let text = self.asked.fetch_add(1, Ordering::Relaxed).to_string();
        let events = [
            ModelEvent::Started {
                response_id: None,
                model: None,
                tool_choice: ToolChoiceOutcome::default(),
            },
            ModelEvent::PartStarted {
                index: 0,
                part: PartStart::Text,
            },
            ModelEvent::TextDelta { index: 0, text },
            ModelEvent::PartFinished { index: 0 },
            ModelEvent::Finished {
                reason: FinishReason::Stop,
                raw: None,
            },
        ];
        Ok(Box::pin(stream::iter(events.map(Ok))))
    }
}

#[async_trait]
impl ToolHost for Counting {
    async fn tools(&self) -> ToolCatalog {
        // One tool more after each answer, as from a server that comes up late.
        let count = self.asked.load(Ordering::Relaxed) + 1;
        let schema = || serde_json::json!({"type": "object"});
        let tool = |at: usize| Arc::new(ToolDefinition::new(format!("tool{at}"), "", schema()));
        ToolCatalog {
            tools: (0..count).map(tool).collect(),
            problems: Vec::new(),
        }
    }

    async fn call(&self, _: ToolCall) -> Result<ToolOutput, ToolCallError> {
        let before = self.called.fetch_add(1, Ordering::Relaxed);
        Ok(ToolOutput::text(before.to_string()))
    }

    fn changes(&self) -> ToolHostChanges {
        Box::pin(stream::pending())
    }
}

async fn said(model: &Arc<dyn ChatModel>, question: &str) -> String {
    let request = ChatRequest::new([Message::user(question)]);
    let answer = model.complete(&request).await.unwrap();
    answer.message.parts[0].as_text().unwrap().to_owned()
}

async fn given(host: &Arc<dyn ToolHost>) -> Option<String> {
    let call = ToolCall {
        name: "tool0".to_owned(),
        ..ToolCall::default()
    };
    let output = host.call(call).await.ok()?;
    Some(output.content[0].as_text())
}

#[tokio::test]
async fn the_same_question_gets_its_own_answer_in_each_conversation() {
    let (paper, counting) = (Paper::default(), counting());
    let recorder = Recorder::new(paper.clone(), "test", Scrubber::default()).unwrap();
    for name in ["first", "second"] {
        let track = recorder.track(name);
        let model = track.model(counting.clone());
        let host = track.tools(counting.clone());
        host.tools().await;
        assert_eq!(said(&model, "How many?").await, given(&host).await.unwrap());
    }
    recorder.finish().unwrap();
    for matching in [Matching::Exact, Matching::Order] {
        // The second one is first now.
        let player = paper.player().with_matching(matching);
        for (name, answer) in [("second", "1"), ("first", "0")] {
            let track = player.track(name);
            let model = track.model(&ModelId::new("acme", "one")).unwrap();
            let host = track.tools().unwrap();
            assert_eq!(said(&model, "How many?").await, answer);
            assert_eq!(given(&host).await.as_deref(), Some(answer));
            assert_eq!(given(&host).await, None, "that of the other one is not its");
        }
        assert_eq!(player.left(), 0);
        let missed = player.missed();
        assert_eq!(missed.len(), 2, "{missed:?}");
        assert!(
            missed[0].contains("no (further) result of `tool0`"),
            "{missed:?}"
        );
    }
}

#[tokio::test]
async fn what_is_asked_for_and_missing_is_named() {
    let (paper, counting) = (Paper::default(), counting());
    let recorder = Recorder::new(paper.clone(), "test", Scrubber::default()).unwrap();
    said(&recorder.track("a").model(counting), "How many?").await;
    let player = paper.player();
    let model = player
        .track("b")
        .model(&ModelId::new("acme", "one"))
        .unwrap();
    let request = ChatRequest::new([Message::user("How many?")]);
    let error = model.stream(&request).await.err().unwrap().to_string();
    assert!(
        error
            .contains("no answer of acme/one to the request of `b` that ends with `\"How many?\"`"),
        "{error}"
    );
    assert_eq!(player.missed().len(), 1);
    // Without a track everything is there.
    let model = player.model(&ModelId::new("acme", "one")).unwrap();
    assert_eq!(said(&model, "How many?").await, "0");
}

#[tokio::test]
async fn tools_are_those_that_were_there_when_the_model_was_asked() {
    let (paper, counting) = (Paper::default(), counting());
    let recorder = Recorder::new(paper.clone(), "test", Scrubber::default()).unwrap();
    let (model, host) = (
        recorder.model(counting.clone()),
        recorder.tools(counting.clone()),
    );
    let mut live = Vec::new();
    for question in ["a", "b", "c"] {
        live.push(host.tools().await.tools.len());
        said(&model, question).await;
    }
    assert_eq!(live, [1, 2, 3]);
    let player = paper.player();
    let host = player.tools().unwrap();
    let model = player.model(&ModelId::new("acme", "one")).unwrap();
    let mut again = Vec::new();
    for question in ["a", "b", "c"] {
        again.push(host.tools().await.tools.len());
        said(&model, question).await;
    }
    again.push(host.tools().await.tools.len());
    assert_eq!(again, [1, 2, 3, 3]);
}

/// A tool that answers the later calls first.
struct Backwards(tokio::sync::Barrier);

#[async_trait]
impl ToolHost for Backwards {
    async fn tools(&self) -> ToolCatalog {
        ToolCatalog::default()
    }

    async fn call(&self, call: ToolCall) -> Result<ToolOutput, ToolCallError> {
        let said = call.input.get("n").cloned().unwrap_or_default();
        if said == 1 {
            self.0.wait().await;
            // Only when the other one has ended, which is polled after this.
            tokio::task::yield_now().await;
        } else {
            self.0.wait().await;
        }
        Ok(ToolOutput::text(said.to_string()))
    }

    fn changes(&self) -> ToolHostChanges {
        Box::pin(stream::pending())
    }
}

#[tokio::test]
async fn calls_that_went_on_at_once_get_their_own_results() {
    let paper = Paper::default();
    let recorder = Recorder::new(paper.clone(), "test", Scrubber::default()).unwrap();
    let ask = |host: &Arc<dyn ToolHost>, number: u32, token: &str| {
        let input = serde_json::json!({"n": number, "token": token});
        let call = ToolCall {
            name: "nap".to_owned(),
            input: input.as_object().unwrap().clone().into(),
            ..ToolCall::default()
        };
        let host = Arc::clone(host);
        async move { host.call(call).await.ok().map(|it| it.content[0].as_text()) }
    };
    let host = recorder.tools(Arc::new(Backwards(tokio::sync::Barrier::new(2))));
    let live = tokio::join!(ask(&host, 1, "a"), ask(&host, 2, "b"));
    assert_eq!(live, (Some("1".to_owned()), Some("2".to_owned())));
    let text = String::from_utf8(paper.0.lock().unwrap().clone()).unwrap();
    let ended: Vec<bool> = text
        .lines()
        .filter(|line| line.starts_with(r#"{"type":"call""#))
        .map(|line| line.contains(r#""began":1"#))
        .collect();
    assert_eq!(ended, [false, true], "the second one ended first: {text}");
    for matching in [Matching::Exact, Matching::Order] {
        let player = paper.player().with_matching(matching);
        let host: Arc<dyn ToolHost> = Arc::new(player.clone());
        assert_eq!(tokio::join!(ask(&host, 1, "a"), ask(&host, 2, "b")), live);
        // In another order each has its own as well.
        let player = paper.player().with_matching(matching);
        let host: Arc<dyn ToolHost> = Arc::new(player.clone());
        let (second, first) = (ask(&host, 2, "b").await, ask(&host, 1, "a").await);
        assert_eq!((first, second), live);
    }
    // Others only where nobody looks at what is asked, in the order in which they began.
    for (matching, expected) in [(Matching::Exact, None), (Matching::Order, Some("1"))] {
        let host: Arc<dyn ToolHost> = Arc::new(paper.player().with_matching(matching));
        assert_eq!(ask(&host, 3, "c").await.as_deref(), expected);
    }
}
