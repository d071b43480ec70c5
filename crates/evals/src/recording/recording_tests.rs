use std::{
    io::{self, BufReader, Write},
    sync::atomic::{AtomicUsize, Ordering},
};

use futures_util::FutureExt as _;
use proptest::prelude::*;
use serde_json::json;
use switchboard_domain::{
    FinishReason, Message, ModelEvent, ModelRetry, PartStart, TimeoutPhase, ToolChoiceOutcome,
    ToolDefinition, Usage,
};
use switchboard_orchestration::{
    Agent, RunEvent, RunEventKind, RunOptions,
    tools::functions::{Function, FunctionTools},
};

use super::*;
use crate::recording::Recorder;

/// A file in memory that can be read while it is written.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Paper {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    fn player(&self) -> Player {
        Player::read(BufReader::new(self.text().as_bytes())).unwrap()
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

type Says = dyn Fn(&ChatRequest, usize) -> Result<Vec<Result<ModelEvent, ModelError>>, ModelError>
    + Send
    + Sync;

/// A model that says what the function makes of the request and of how often it was asked before.
struct Scripted {
    id: ModelId,
    capabilities: ModelCapabilities,
    asked: AtomicUsize,
    says: Box<Says>,
}

impl Scripted {
    fn saying(
        says: impl Fn(&ChatRequest, usize) -> Result<Vec<Result<ModelEvent, ModelError>>, ModelError>
        + Send
        + Sync
        + 'static,
    ) -> Arc<dyn ChatModel> {
        Arc::new(Self {
            id: ModelId::new("acme", "one"),
            capabilities: ModelCapabilities {
                tools: Some(true),
                ..ModelCapabilities::default()
            },
            asked: AtomicUsize::new(0),
            says: Box::new(says),
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
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        Ok(Box::pin(stream::iter((self.says)(request, number)?)))
    }
}

fn started() -> ModelEvent {
    ModelEvent::Started {
        response_id: None,
        model: Some("one-2026".to_owned()),
        tool_choice: ToolChoiceOutcome::default(),
    }
}

fn says(pieces: &[&str]) -> Vec<Result<ModelEvent, ModelError>> {
    let mut events = vec![
        started(),
        ModelEvent::PartStarted {
            index: 0,
            part: PartStart::Text,
        },
    ];
    events.extend(pieces.iter().map(|text| ModelEvent::TextDelta {
        index: 0,
        text: (*text).to_owned(),
    }));
    events.push(ModelEvent::PartFinished { index: 0 });
    events.push(ModelEvent::Usage {
        usage: Box::new(Usage {
            output_tokens: Some(3),
            ..Usage::default()
        }),
    });
    events.push(ModelEvent::Finished {
        reason: FinishReason::Stop,
        raw: None,
    });
    events.into_iter().map(Ok).collect()
}

fn calls(id: &str, name: &str, input: &str) -> Vec<Result<ModelEvent, ModelError>> {
    let (one, other) = input.split_at(input.len() / 2);
    let json = |json: &str| ModelEvent::ToolInputDelta {
        index: 0,
        json: json.to_owned(),
    };
    let part = PartStart::ToolUse {
        id: id.to_owned(),
        name: name.to_owned(),
    };
    [
        started(),
        ModelEvent::PartStarted { index: 0, part },
        json(one),
        json(other),
        ModelEvent::PartFinished { index: 0 },
        ModelEvent::Finished {
            reason: FinishReason::ToolUse,
            raw: None,
        },
    ]
    .map(Ok)
    .into()
}

/// Tools of which one counts how often it ran.
fn tools(ran: &Arc<AtomicUsize>) -> Arc<dyn ToolHost> {
    let ran = Arc::clone(ran);
    let schema = json!({"type": "object", "properties": {"word": {"type": "string"}, "password": {"type": "string"}}});
    let definition = ToolDefinition::new("echo", "Says it again.", schema);
    let body = move |call: ToolCall| {
        ran.fetch_add(1, Ordering::Relaxed);
        async move { Ok::<_, String>(ToolOutput::text(format!("said {}", call.input.as_value()))) }
    };
    Arc::new(FunctionTools::new().with_function(Function::raw(definition, body)))
}

fn agent(model: Arc<dyn ChatModel>, tools: Arc<dyn ToolHost>) -> Agent {
    Agent::new(model).with_tools(tools)
}

async fn events(agent: &Agent, question: &str) -> Vec<RunEvent> {
    agent.ask(question).collect().await
}

/// What happened, without when and under which id.
fn told(events: &[RunEvent]) -> Vec<Value> {
    let told = events.iter().map(|event| {
        let mut value = serde_json::to_value(&event.kind).unwrap();
        if let Some(fields) = value.as_object_mut() {
            fields.remove("duration_ms");
            if let Some(report) = fields.get_mut("report").and_then(Value::as_object_mut) {
                report.remove("run_id");
                for call in report
                    .get_mut("tool_calls")
                    .and_then(Value::as_array_mut)
                    .into_iter()
                    .flatten()
                {
                    call.as_object_mut().unwrap().remove("duration_ms");
                }
            }
        }
        value
    });
    told.collect()
}

fn chatty() -> Arc<dyn ChatModel> {
    Scripted::saying(|_, asked| {
        Ok(match asked {
            0 => calls("call_a", "echo", r#"{"word":"one"}"#),
            1 => calls("call_b", "echo", r#"{"word":"two"}"#),
            _ => says(&["All ", "said."]),
        })
    })
}

#[tokio::test]
async fn a_run_is_had_again_without_its_model_and_its_tools() {
    let (paper, ran) = (Paper::default(), Arc::new(AtomicUsize::new(0)));
    let recorder = Recorder::new(paper.clone(), "test", Scrubber::default()).unwrap();
    let live = events(
        &agent(recorder.model(chatty()), recorder.tools(tools(&ran))),
        "Say two words",
    )
    .await;
    recorder.finish().unwrap();
    assert_eq!(ran.load(Ordering::Relaxed), 2);

    let player = paper.player();
    assert_eq!(player.models(), [ModelId::new("acme", "one")]);
    let model = player.model(&player.models()[0]).unwrap();
    assert_eq!(model.capabilities().tools, Some(true));
    let replayed = events(&agent(model, player.tools().unwrap()), "Say two words").await;
    assert_eq!(told(&replayed), told(&live));
    assert!(
        matches!(&live.last().unwrap().kind, RunEventKind::RunFinished { report } if report.answer == "All said.")
    );
    assert_eq!((player.left(), ran.load(Ordering::Relaxed)), (0, 2));
}

#[tokio::test]
async fn an_attempt_that_was_repeated_is_not_recorded() {
    let model = Scripted::saying(|_, _| {
        let retry = ModelRetry {
            attempt: 2,
            delay_ms: 60_000,
            reason: "cut off".to_owned(),
        };
        let mut events = calls("call_a", "echo", "{\"wo");
        events.truncate(3);
        events.push(Ok(ModelEvent::Retrying {
            retry: Box::new(retry),
        }));
        events.extend(says(&["All ", "said."]));
        Ok(events)
    });
    let paper = Paper::default();
    let recorder = Recorder::new(paper.clone(), "test", Scrubber::default()).unwrap();
    let request = ChatRequest::new([Message::user("Say two words")]);
    let live = recorder.model(model).complete(&request).await.unwrap();
    recorder.finish().unwrap();
    let player = paper.player();
    let model = player.model(&player.models()[0]).unwrap();
    let replayed: Vec<_> = model.stream(&request).await.unwrap().collect().await;
    let retried = |event: &ModelEvent| matches!(event, ModelEvent::Retrying { .. });
    assert!(!replayed.iter().flatten().any(retried), "{replayed:?}");
    assert_eq!(live.message.text(), "All said.");
    assert!(!paper.text().contains("call_a"), "{}", paper.text());
}

#[tokio::test]
async fn another_question_is_told_where_it_differs() {
    let (paper, ran) = (Paper::default(), Arc::new(AtomicUsize::new(0)));
    let recorder = Recorder::new(paper.clone(), "test", Scrubber::default()).unwrap();
    events(
        &agent(recorder.model(chatty()), recorder.tools(tools(&ran))),
        "Say two words",
    )
    .await;
    let player = paper.player();
    let ask = |player: &Player| {
        agent(
            player.model(&player.models()[0]).unwrap(),
            player.tools().unwrap(),
        )
    };
    let replayed = events(&ask(&player), "Say three words").await;
    let RunEventKind::RunFinished { report } = &replayed.last().unwrap().kind else {
        panic!("{replayed:?}")
    };
    let message = &report.error.as_ref().unwrap().message;
    let place =
        "messages[0].parts[0].text: recorded `\"Say two words\"`, now `\"Say three words\"`";
    assert!(message.contains(place), "{message}");
    assert_eq!(player.left(), 5, "nothing was given");
    // In their order the answers come all the same.
    let player = paper.player().with_matching(Matching::Order);
    let replayed = events(&ask(&player), "Say three words").await;
    assert!(
        matches!(&replayed.last().unwrap().kind, RunEventKind::RunFinished { report } if report.answer == "All said.")
    );
}

#[tokio::test]
async fn what_was_sent_often_is_written_once() {
    let (paper, ran) = (Paper::default(), Arc::new(AtomicUsize::new(0)));
    let recorder = Recorder::new(paper.clone(), "test", Scrubber::default()).unwrap();
    let model = Scripted::saying(|_, asked| {
        Ok(match asked {
            0..12 => calls(
                &format!("call_{asked}"),
                "echo",
                &json!({"word": "w".repeat(1_000) + &asked.to_string()}).to_string(),
            ),
            _ => says(&["Done."]),
        })
    });
    let mut options = RunOptions::default();
    options.limits.max_steps = 20;
    let agent = Agent::new(recorder.model(model))
        .with_tools(recorder.tools(tools(&ran)))
        .with_options(options);
    let run = events(&agent, "Go").await;
    assert!(
        matches!(&run.last().unwrap().kind, RunEventKind::RunFinished { report } if report.steps == 13)
    );
    let text = paper.text();
    let kinds = |kind: &str| {
        text.lines()
            .filter(|line| line.starts_with(&format!(r#"{{"type":"{kind}""#)))
            .count()
    };
    // The question, and an answer and a result for each call.
    assert_eq!(
        (
            kinds("message"),
            kinds("tools"),
            kinds("catalog"),
            kinds("answer"),
            kinds("call")
        ),
        (25, 1, 1, 13, 12)
    );
    // Each word in the pieces of the answer, in the message that they make, in the call and in its results.
    assert!(text.len() < 12 * 8 * 1_100, "{} bytes", text.len());
}

const KEY: &str = "correct-horse-battery";

/// A message that many requests name is there once.
#[test]
fn a_long_conversation_takes_no_more_memory_than_its_recording() {
    let first = r#"{"type":"recording","version":1,"program":"t"}"#;
    let long = "x".repeat(100_000);
    let message = json!({"type": "message", "number": 1, "message": Message::user(long.as_str())});
    let tools = json!({"type": "tools", "number": 1, "tools": []});
    let mut text = format!("{first}\n{message}\n{tools}\n");
    // As values of their own these were 100 GB.
    for _ in 0..500 {
        let answer = json!({
            "type": "answer", "model": "a/b", "capabilities": {},
            "messages": vec![1; 2_000], "tools": 1, "request": {}, "events": [], "took_ms": 0,
        });
        text.push_str(&answer.to_string());
        text.push('\n');
    }
    assert_eq!(Player::read(text.as_bytes()).unwrap().left(), 500);
}

#[tokio::test]
async fn runs_at_the_same_time_find_their_own_answers() {
    let paper = Paper::default();
    let recorder = Recorder::new(paper.clone(), "test", Scrubber::default()).unwrap();
    let model = Scripted::saying(|request, _| {
        let question = request
            .messages
            .last()
            .and_then(|it| it.parts.first())
            .and_then(|it| it.as_text().map(str::to_owned));
        Ok(says(&["You said ", &question.unwrap_or_default()]))
    });
    let model = recorder.model(model);
    let ask = |model: &Arc<dyn ChatModel>, question: &str| {
        let (model, request) = (
            Arc::clone(model),
            ChatRequest::new([Message::user(question)]),
        );
        async move {
            model.complete(&request).await.unwrap().message.parts[0]
                .as_text()
                .unwrap()
                .to_owned()
        }
    };
    let questions = ["one", "two", "three"];
    for question in questions {
        ask(&model, question).await;
    }
    let player = paper.player();
    let model = player.model(&ModelId::new("acme", "one")).unwrap();
    let (c, b, a) = tokio::join!(ask(&model, "three"), ask(&model, "two"), ask(&model, "one"));
    assert_eq!(
        [a, b, c],
        ["You said one", "You said two", "You said three"]
    );
    let error = model
        .stream(&ChatRequest::new([Message::user("one")]))
        .await
        .err()
        .unwrap();
    assert!(
        error.to_string().contains("all its answers were given"),
        "{error}"
    );
}

#[tokio::test]
async fn every_failure_comes_again_as_it_was() {
    let retry_after = Some(Duration::from_millis(1_500));
    let after = Duration::from_secs(7);
    let kinds = [
        ModelErrorKind::Authentication,
        ModelErrorKind::Permission,
        ModelErrorKind::NotFound,
        ModelErrorKind::InvalidRequest {
            field: Some("tools".to_owned()),
        },
        ModelErrorKind::RateLimited { retry_after },
        ModelErrorKind::QuotaExhausted,
        ModelErrorKind::Overloaded { retry_after: None },
        ModelErrorKind::Timeout {
            phase: TimeoutPhase::Connect,
            after,
        },
        ModelErrorKind::Timeout {
            phase: TimeoutPhase::FirstByte,
            after,
        },
        ModelErrorKind::Timeout {
            phase: TimeoutPhase::Idle,
            after,
        },
        ModelErrorKind::Connection,
        ModelErrorKind::ContextOverflow,
        ModelErrorKind::ContentFilter,
        ModelErrorKind::Interrupted,
        ModelErrorKind::Unsupported {
            feature: "tools".to_owned(),
        },
        ModelErrorKind::Protocol,
        ModelErrorKind::Configuration,
    ];
    for kind in kinds {
        for begins in [false, true] {
            let paper = Paper::default();
            let recorder = Recorder::new(paper.clone(), "test", Scrubber::default()).unwrap();
            let made = kind.clone();
            let model = Scripted::saying(move |_, _| {
                let error = ModelError::new("acme", made.clone(), "it says why")
                    .with_status(429)
                    .with_request_id(Some("req_1".to_owned()));
                if begins {
                    Ok(vec![Ok(started()), Err(error)])
                } else {
                    Err(error)
                }
            });
            let request = ChatRequest::new([Message::user("Hello")]);
            let first = recorder.model(model).complete(&request).await.unwrap_err();
            let player = paper.player();
            let again = player
                .model(&ModelId::new("acme", "one"))
                .unwrap()
                .complete(&request)
                .await
                .unwrap_err();
            assert_eq!(
                (&again.kind, again.to_string()),
                (&first.kind, first.to_string())
            );
            assert_eq!(
                (again.status(), again.request_id()),
                (Some(429), Some("req_1"))
            );
        }
    }
}

struct Failing(Mutex<Vec<ToolCallError>>);

#[async_trait]
impl ToolHost for Failing {
    async fn tools(&self) -> ToolCatalog {
        ToolCatalog::default()
    }

    async fn call(&self, _: ToolCall) -> Result<ToolOutput, ToolCallError> {
        Err(self.0.lock().unwrap().pop().unwrap())
    }

    fn changes(&self) -> ToolHostChanges {
        Box::pin(stream::pending())
    }
}

#[tokio::test]
async fn every_failure_of_a_tool_comes_again_as_it_was() {
    let text = |text: &str| text.to_owned();
    let errors = || {
        vec![
            ToolCallError::UnknownTool {
                name: text("x"),
                available: vec![text("y")],
            },
            ToolCallError::Unavailable {
                server: text("s"),
                reason: text("away"),
            },
            ToolCallError::Timeout {
                server: text("s"),
                tool: text("t"),
                after: Duration::from_millis(1_250),
            },
            ToolCallError::Refused {
                server: text("s"),
                tool: text("t"),
                code: -32_602,
                message: text("no"),
            },
            ToolCallError::Broken {
                server: text("s"),
                tool: text("t"),
                reason: text("cut"),
            },
            ToolCallError::InvalidAnswer {
                server: text("s"),
                tool: text("t"),
                reason: text("is not valid JSON"),
            },
        ]
    };
    let paper = Paper::default();
    let recorder = Recorder::new(paper.clone(), "test", Scrubber::default()).unwrap();
    let host = recorder.tools(Arc::new(Failing(Mutex::new(errors()))));
    host.tools().await;
    let call = || ToolCall {
        name: text("t"),
        ..ToolCall::default()
    };
    for _ in errors() {
        host.call(call()).await.unwrap_err();
    }
    let player = paper.player();
    let host = player.tools().unwrap();
    for expected in errors().into_iter().rev() {
        let found = host.call(call()).await.unwrap_err();
        assert_eq!(
            (found.to_string(), found.did_not_run()),
            (expected.to_string(), expected.did_not_run())
        );
    }
    let none_left = host.call(call()).await.unwrap_err().to_string();
    assert!(
        none_left.contains("no (further) result of `t`"),
        "{none_left}"
    );
}

#[tokio::test]
async fn who_goes_away_leaves_what_was_heard() {
    let paper = Paper::default();
    let recorder = Recorder::new(paper.clone(), "test", Scrubber::default()).unwrap();
    let model = recorder.model(Scripted::saying(|_, _| Ok(says(&["All of ", "it"]))));
    let request = ChatRequest::new([Message::user("Hello")]);
    let mut heard = model.stream(&request).await.unwrap();
    for _ in 0..3 {
        heard.next().await.unwrap().unwrap();
    }
    drop(heard);
    let model = paper.player().model(&ModelId::new("acme", "one")).unwrap();
    let again: Vec<_> = model.stream(&request).await.unwrap().collect().await;
    assert_eq!(again.len(), 4);
    assert!(matches!(&again[2], Ok(ModelEvent::TextDelta { text, .. }) if text == "All of "));
    assert_eq!(
        again[3].as_ref().unwrap_err().kind,
        ModelErrorKind::Interrupted
    );
}

#[tokio::test(start_paused = true)]
async fn answers_come_at_their_own_pace_if_that_is_wanted() {
    let answer = json!({"type": "answer", "model": "acme/one", "capabilities": {}, "messages": [1], "tools": 2, "request": {},
        "events": [[10, started()], [4_000, ModelEvent::Finished { reason: FinishReason::Stop, raw: None }]], "took_ms": 4_500});
    let lines = [
        json!({"type": "recording", "version": 1, "program": "test"}),
        json!({"type": "message", "number": 1, "message": Message::user("Hello")}),
        json!({"type": "tools", "number": 2, "tools": []}),
        answer.clone(),
        answer,
    ];
    let text = lines.map(|line| line.to_string()).join("\n");
    let player = Player::read(text.as_bytes())
        .unwrap()
        .with_matching(Matching::Order);
    let request = ChatRequest::new([Message::user("Hello")]);
    for (pace, times) in [(Pace::Recorded, [10, 4_000]), (Pace::AtOnce, [0, 0])] {
        let model = player
            .clone()
            .with_pace(pace)
            .model(&ModelId::new("acme", "one"))
            .unwrap();
        let began = Instant::now();
        let mut heard = model.stream(&request).await.unwrap();
        for wanted in times {
            heard.next().await.unwrap().unwrap();
            // The clock of the tests goes on in steps of a millisecond.
            let passed = began.elapsed().as_millis();
            assert!(
                (wanted..=wanted + 1).contains(&passed),
                "{passed} instead of {wanted}"
            );
        }
        let end = heard.next().now_or_never();
        assert_eq!(end.is_none(), pace == Pace::Recorded);
    }
}

#[test]
fn what_is_no_recording_is_refused_and_what_was_cut_is_read() {
    let read = |text: &str| {
        Player::read(text.as_bytes())
            .map(|player| player.left())
            .map_err(|it| it.to_string())
    };
    let first = r#"{"type":"recording","version":1,"program":"t"}"#;
    assert_eq!(read(&format!("{first}\n")), Ok(0));
    for other in [
        "",
        "hello",
        "{}",
        r#"{"type":"message","number":1,"message":{}}"#,
    ] {
        assert!(
            read(other).unwrap_err().contains("this is no recording"),
            "{other}"
        );
    }
    assert!(
        read(r#"{"type":"recording","version":2,"program":"t"}"#)
            .unwrap_err()
            .contains("version 2")
    );
    let call = r#"{"type":"call","name":"t","input":{},"took_ms":1,"outcome":"left"}"#;
    assert_eq!(read(&format!("{first}\n{call}\n{}", &call[..20])), Ok(1));
    let damaged = read(&format!("{first}\n{}\n{call}\n", &call[..20])).unwrap_err();
    assert!(
        damaged.contains("line 2") && !damaged.contains(" column "),
        "{damaged}"
    );
    // Within a character.
    let told = call.replace("left", "é");
    let cut = told.find('é').unwrap() + 1;
    let mut bytes = format!("{first}\n{call}\n").into_bytes();
    bytes.extend(&told.as_bytes()[..cut]);
    assert_eq!(Player::read(bytes.as_slice()).unwrap().left(), 1);
    bytes.push(b'\n');
    let damaged = Player::read(bytes.as_slice()).unwrap_err().to_string();
    assert!(damaged.contains("line 3"), "{damaged}");
    let message = format!(
        "{first}\n{}\n",
        r#"{"type":"message","number":1,"message":{}}"#
    );
    let damaged = read(&message).unwrap_err();
    assert!(
        damaged.contains("line 2") && damaged.contains("`message`"),
        "{damaged}"
    );
    let lost = r#"{"type":"answer","model":"a/b","capabilities":{},"messages":[7],"tools":1,"request":{},"events":[],"took_ms":0}"#;
    let lost = read(&format!("{first}\n{lost}\n")).unwrap_err();
    assert!(
        lost.contains("line 2") && lost.contains("no message 7"),
        "{lost}"
    );
}

struct Full;

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.starts_with(br#"{"type":"recording""#) {
            Ok(bytes.len())
        } else {
            Err(io::ErrorKind::StorageFull.into())
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_full_disk_fails_the_recording_and_not_the_run() {
    let recorder = Recorder::new(Full, "test", Scrubber::default()).unwrap();
    let run = events(
        &agent(
            recorder.model(chatty()),
            recorder.tools(tools(&Arc::default())),
        ),
        "Go",
    )
    .await;
    assert!(
        matches!(&run.last().unwrap().kind, RunEventKind::RunFinished { report } if report.answer == "All said.")
    );
    let error = recorder.finish().unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("the recording cannot be written"),
        "{error}"
    );
}

proptest! {
    #[test]
    fn a_secret_is_found_however_it_is_cut(before in "[ -~]{0,12}", after in "[ -~]{0,12}", mut cuts in prop::collection::vec(0_usize..64, 0..6)) {
        let whole = format!("{before}{KEY}{after}");
        cuts.retain(|cut| *cut <= whole.len());
        cuts.sort_unstable();
        let mut from = 0;
        let mut heard = Vec::new();
        for cut in cuts.into_iter().chain([whole.len()]) {
            heard.push((0, ModelEvent::TextDelta { index: 0, text: whole[from..cut].to_owned() }));
            from = cut;
        }
        Scrubber::new([KEY]).events(&mut heard);
        let text: String = heard.iter().map(|(_, event)| match event {
            ModelEvent::TextDelta { text, .. } => text.as_str(),
            _ => "",
        }).collect();
        prop_assert!(!text.contains(KEY));
        prop_assert!(text.contains(REDACTED_MARK));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        let _ = Player::read(text.as_bytes());
        let first = r#"{"type":"recording","version":1,"program":"t"}"#;
        let _ = Player::read(format!("{first}\n{text}\n").as_bytes());
    }
}

const REDACTED_MARK: &str = "[redacted]";

#[path = "secrets_tests.rs"]
mod secrets;

#[path = "conversations_tests.rs"]
mod conversations;
