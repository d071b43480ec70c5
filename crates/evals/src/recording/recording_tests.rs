use std::{
    io::{self, Write},
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use futures_util::StreamExt as _;
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

/// A file in memory.
#[derive(Clone, Default)]
struct MemoryFile(Arc<Mutex<Vec<u8>>>);

impl MemoryFile {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    fn player(&self) -> Player {
        Player::read_recording(self.text().as_bytes()).unwrap()
    }
}

impl Write for MemoryFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn recorder(file: &MemoryFile) -> Recorder {
    Recorder::new(file.clone(), "test", Redactor::default()).unwrap()
}

/// A secret that the redactor knows.
const KEY: &str = "correct-horse-battery";

fn redactor() -> Redactor {
    Redactor::default().with_secrets([KEY])
}

fn redaction() -> Redaction {
    Redaction::new(redactor())
}

type Respond = dyn Fn(&ChatRequest, usize) -> Result<Vec<Result<ModelEvent, ModelError>>, ModelError>
    + Send
    + Sync;

/// A model whose responses come from a function of the request and the number of earlier requests.
struct ScriptedModel {
    id: ModelId,
    capabilities: ModelCapabilities,
    requests: AtomicUsize,
    respond: Box<Respond>,
}

impl ScriptedModel {
    fn responding(
        respond: impl Fn(&ChatRequest, usize) -> Result<Vec<Result<ModelEvent, ModelError>>, ModelError>
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
            requests: AtomicUsize::new(0),
            respond: Box::new(respond),
        })
    }
}

#[async_trait]
impl ChatModel for ScriptedModel {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn capabilities(&self) -> &ModelCapabilities {
        &self.capabilities
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ModelStream, ModelError> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        Ok(Box::pin(stream::iter((self.respond)(request, number)?)))
    }
}

fn started() -> ModelEvent {
    ModelEvent::Started {
        response_id: None,
        model: Some("one-2026".to_owned()),
        tool_choice: ToolChoiceOutcome::default(),
    }
}

fn text_response(pieces: &[&str]) -> Vec<Result<ModelEvent, ModelError>> {
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

fn tool_call_response(id: &str, name: &str, input: &str) -> Vec<Result<ModelEvent, ModelError>> {
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

/// A tool that repeats its input and counts its calls.
fn echo_tool(calls: &Arc<AtomicUsize>) -> Arc<dyn ToolHost> {
    let calls = Arc::clone(calls);
    let schema = json!({"type": "object", "properties": {"word": {"type": "string"}, "password": {"type": "string"}}});
    let definition = ToolDefinition::new("echo", "Repeats the input.", schema);
    let body = move |call: ToolCall| {
        calls.fetch_add(1, Ordering::Relaxed);
        async move { Ok::<_, String>(ToolOutput::text(format!("said {}", call.input.as_value()))) }
    };
    Arc::new(FunctionTools::new().with_function(Function::from_definition(definition, body)))
}

fn agent(model: Arc<dyn ChatModel>, tools: Arc<dyn ToolHost>) -> Agent {
    Agent::new(model).with_tools(tools)
}

async fn events(agent: &Agent, question: &str) -> Vec<RunEvent> {
    agent.ask(question).collect().await
}

/// Returns the answer of a run.
fn answer(events: &[RunEvent]) -> &str {
    match &events.last().unwrap().kind {
        RunEventKind::RunFinished { report } => &report.answer,
        other => panic!("{other:?}"),
    }
}

/// Records a run with two calls.
async fn record_two_calls(recorder: &Recorder, calls: &Arc<AtomicUsize>) -> Vec<RunEvent> {
    let model = recorder.record_model(two_calls());
    let agent = agent(model, recorder.record_tools(echo_tool(calls)));
    events(&agent, "Say two words").await
}

fn two_calls() -> Arc<dyn ChatModel> {
    ScriptedModel::responding(|_, requests| {
        Ok(match requests {
            0 => tool_call_response("call_a", "echo", r#"{"word":"one"}"#),
            1 => tool_call_response("call_b", "echo", r#"{"word":"two"}"#),
            _ => text_response(&["All ", "said."]),
        })
    })
}

#[tokio::test]
async fn a_failed_attempt_before_a_retry_is_not_recorded() {
    let model = ScriptedModel::responding(|_, _| {
        let retry = ModelRetry {
            attempt: 2,
            delay_ms: 60_000,
            reason: "cut off".to_owned(),
        };
        let mut events = tool_call_response("call_a", "echo", "{\"wo");
        events.truncate(3);
        events.push(Ok(ModelEvent::Retrying {
            retry: Box::new(retry),
        }));
        events.extend(text_response(&["All ", "said."]));
        Ok(events)
    });
    let file = MemoryFile::default();
    let recorder = recorder(&file);
    let request = ChatRequest::new([Message::user("Say two words")]);
    let live = recorder
        .record_model(model)
        .complete(&request)
        .await
        .unwrap();
    recorder.finish_recording().unwrap();
    let player = file.player();
    let model = player.replay_model(&player.recorded_models()[0]).unwrap();
    let replayed: Vec<_> = model.stream(&request).await.unwrap().collect().await;
    let retried = |event: &ModelEvent| matches!(event, ModelEvent::Retrying { .. });
    assert!(!replayed.iter().flatten().any(retried), "{replayed:?}");
    assert_eq!(live.message.text(), "All said.");
    assert!(!file.text().contains("call_a"), "{}", file.text());
}

#[tokio::test]
async fn another_question_gets_an_error_with_the_first_difference() {
    let (file, calls) = (MemoryFile::default(), Arc::new(AtomicUsize::new(0)));
    let recorder = recorder(&file);
    record_two_calls(&recorder, &calls).await;
    let player = file.player();
    let ask = |player: &Player| {
        agent(
            player.replay_model(&player.recorded_models()[0]).unwrap(),
            player.replay_tools().unwrap(),
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
    assert_eq!(player.count_unused_responses(), 5, "no response was used");
    let player = file.player().with_request_matching(RequestMatching::Order);
    let replayed = events(&ask(&player), "Say three words").await;
    assert_eq!(answer(&replayed), "All said.");
}

#[tokio::test]
async fn repeated_messages_and_tools_are_written_once() {
    let (file, calls) = (MemoryFile::default(), Arc::new(AtomicUsize::new(0)));
    let recorder = recorder(&file);
    let model = ScriptedModel::responding(|_, requests| {
        Ok(match requests {
            0..12 => tool_call_response(
                &format!("call_{requests}"),
                "echo",
                &json!({"word": "w".repeat(1_000) + &requests.to_string()}).to_string(),
            ),
            _ => text_response(&["Done."]),
        })
    });
    let mut options = RunOptions::default();
    options.limits.max_steps = 20;
    let agent = Agent::new(recorder.record_model(model))
        .with_tools(recorder.record_tools(echo_tool(&calls)))
        .with_options(options);
    let run = events(&agent, "Go").await;
    assert!(
        matches!(&run.last().unwrap().kind, RunEventKind::RunFinished { report } if report.steps == 13)
    );
    let text = file.text();
    let kinds = |kind: &str| {
        text.lines()
            .filter(|line| line.starts_with(&format!(r#"{{"type":"{kind}""#)))
            .count()
    };
    assert_eq!(kinds("message"), 25);
    assert_eq!(kinds("tools"), 1);
    assert_eq!(kinds("catalog"), 1);
    assert_eq!(kinds("model_call"), 13);
    assert_eq!(kinds("tool_call"), 12);
    // The recording contains each text at most eight times for each of the twelve calls, for
    // example in the deltas, the message, the call and its result.
    assert!(text.len() < 12 * 8 * 1_100, "{} bytes", text.len());
}

/// Checks that recorded requests share their messages in memory.
#[test]
fn a_long_conversation_needs_no_more_memory_than_its_file() {
    let long = "x".repeat(100_000);
    let message = json!({"type": "message", "number": 1, "message": Message::user(long.as_str())});
    let tools = json!({"type": "tools", "number": 1, "tools": []});
    let mut text = format!("{HEADER}\n{message}\n{tools}\n");
    // Separate copies of the messages would need 100 GB.
    for _ in 0..500 {
        let answer = json!({
            "type": "model_call", "catalogs": 0, "model": "a/b", "capabilities": {},
            "messages": vec![1; 2_000], "tools": 1, "settings": {"messages": []}, "events": [],
        });
        text.push_str(&answer.to_string());
        text.push('\n');
    }
    assert_eq!(
        Player::read_recording(text.as_bytes())
            .unwrap()
            .count_unused_responses(),
        500
    );
}

#[tokio::test]
async fn model_errors_are_replayed_unchanged() {
    let kinds = [
        ModelErrorKind::Protocol,
        ModelErrorKind::InvalidRequest {
            field: Some("tools".to_owned()),
        },
        ModelErrorKind::Timeout {
            phase: TimeoutPhase::FirstByte,
            after: Duration::from_millis(1_500),
        },
    ];
    for kind in kinds {
        for begins in [false, true] {
            let file = MemoryFile::default();
            let recorder = recorder(&file);
            let made = kind.clone();
            let model = ScriptedModel::responding(move |_, _| {
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
            let first = recorder
                .record_model(model)
                .complete(&request)
                .await
                .unwrap_err();
            let player = file.player();
            let again = player
                .replay_model(&ModelId::new("acme", "one"))
                .unwrap()
                .complete(&request)
                .await
                .unwrap_err();
            assert_eq!(again.kind, first.kind);
            assert_eq!(again.to_string(), first.to_string());
            assert_eq!(again.http_status(), Some(429));
            assert_eq!(again.request_id(), Some("req_1"));
        }
    }
}

struct Failing(Mutex<Vec<ToolCallError>>);

#[async_trait]
impl ToolHost for Failing {
    async fn list_tools(&self) -> ToolCatalog {
        ToolCatalog::default()
    }

    async fn call_tool(&self, _: ToolCall) -> Result<ToolOutput, ToolCallError> {
        Err(self.0.lock().unwrap().pop().unwrap())
    }

    fn watch_changes(&self) -> ToolHostChanges {
        Box::pin(stream::pending())
    }
}

#[tokio::test]
async fn tool_errors_are_replayed_unchanged() {
    let text = |text: &str| text.to_owned();
    let errors = || {
        vec![
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
        ]
    };
    let file = MemoryFile::default();
    let recorder = recorder(&file);
    let host = recorder.record_tools(Arc::new(Failing(Mutex::new(errors()))));
    host.list_tools().await;
    let call = || ToolCall {
        name: text("t"),
        ..ToolCall::default()
    };
    for _ in errors() {
        host.call_tool(call()).await.unwrap_err();
    }
    let player = file.player();
    let host = player.replay_tools().unwrap();
    for expected in errors().into_iter().rev() {
        let found = host.call_tool(call()).await.unwrap_err();
        assert_eq!(found.to_string(), expected.to_string());
        assert_eq!(found.did_not_run(), expected.did_not_run());
    }
    let none_left = host.call_tool(call()).await.unwrap_err().to_string();
    assert!(none_left.contains("no unused result of `t`"), "{none_left}");
}

#[tokio::test]
async fn a_dropped_response_is_replayed_up_to_its_end() {
    let file = MemoryFile::default();
    let recorder = recorder(&file);
    let model = recorder.record_model(ScriptedModel::responding(|_, _| {
        Ok(text_response(&["All of ", "it"]))
    }));
    let request = ChatRequest::new([Message::user("Hello")]);
    let mut events = model.stream(&request).await.unwrap();
    for _ in 0..3 {
        events.next().await.unwrap().unwrap();
    }
    drop(events);
    let model = file
        .player()
        .replay_model(&ModelId::new("acme", "one"))
        .unwrap();
    let again: Vec<_> = model.stream(&request).await.unwrap().collect().await;
    assert_eq!(again.len(), 4);
    assert!(matches!(&again[2], Ok(ModelEvent::TextDelta { text, .. }) if text == "All of "));
    assert_eq!(
        again[3].as_ref().unwrap_err().kind,
        ModelErrorKind::Interrupted
    );
}

/// A recording of version 1. It must stay readable.
const FIXTURE: &str = include_str!("fixtures/version_1.jsonl");

#[tokio::test]
async fn the_fixture_of_version_1_is_replayed() {
    let player = Player::read_recording(FIXTURE.as_bytes()).unwrap();
    let id = ModelId::new("acme", "one");
    assert_eq!(player.recorded_models(), std::slice::from_ref(&id));
    let agent = agent(
        player.replay_model(&id).unwrap(),
        player.replay_tools().unwrap(),
    );
    let events = events(&agent, "Say two words").await;
    assert_eq!(answer(&events), "All said.");
    assert_eq!(player.count_unused_responses(), 0);
    assert_eq!(player.missed_requests(), Vec::<String>::new());
}

#[tokio::test]
async fn a_new_recording_has_the_form_of_the_fixture() {
    let (file, calls) = (MemoryFile::default(), Arc::new(AtomicUsize::new(0)));
    let recorder = recorder(&file);
    record_two_calls(&recorder, &calls).await;
    recorder.finish_recording().unwrap();
    assert_eq!(file.text(), FIXTURE);
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}

fn read(text: &str) -> Result<usize, String> {
    let player = Player::read_recording(text.as_bytes());
    player
        .map(|player| player.count_unused_responses())
        .map_err(|error| error.to_string())
}

#[test]
fn other_files_and_versions_are_rejected() {
    assert_eq!(read(HEADER), Ok(0));
    for other in [
        "",
        "hello",
        "{}",
        CALL,
        r#"{"format":"x","version":1,"program":"t"}"#,
        r#"{"type":"recording","version":1,"program":"switchboard 0.1.0"}"#,
    ] {
        let error = read(other).unwrap_err();
        assert!(error.contains("not a recording"), "{other}: {error}");
        assert!(error.contains("commit f008d49"), "{other}: {error}");
    }
    let newer = HEADER.replace("\"version\":1", "\"version\":2");
    let error = read(&newer).unwrap_err();
    assert!(error.contains("version 2"), "{error}");
}

const HEADER: &str = r#"{"format":"switchboard-recording","version":1,"program":"t"}"#;
const CALL: &str = r#"{"type":"tool_call","number":1,"tool":"t","input":{},"result":"dropped"}"#;

#[test]
fn a_damaged_line_is_an_error_unless_it_is_an_incomplete_last_line() {
    assert_eq!(read(&format!("{HEADER}\n{CALL}\n{}", &CALL[..20])), Ok(1));
    let damaged = read(&format!("{HEADER}\n{}\n{CALL}\n", &CALL[..20])).unwrap_err();
    assert!(
        damaged.contains("line 2") && !damaged.contains(" column "),
        "{damaged}"
    );
    // The recording ends within the bytes of a character.
    let umlaut = CALL.replace("dropped", "é");
    let end = umlaut.find('é').unwrap() + 1;
    let mut bytes = format!("{HEADER}\n{CALL}\n").into_bytes();
    bytes.extend(&umlaut.as_bytes()[..end]);
    assert_eq!(
        Player::read_recording(bytes.as_slice())
            .unwrap()
            .count_unused_responses(),
        1
    );
    bytes.push(b'\n');
    let damaged = Player::read_recording(bytes.as_slice())
        .unwrap_err()
        .to_string();
    assert!(damaged.contains("line 3"), "{damaged}");
    let call = json!({
        "type": "model_call", "catalogs": 0, "model": "a/b", "capabilities": {}, "messages": [7],
        "tools": 1, "settings": {"messages": []}, "events": [],
    });
    let damaged = read(&format!("{HEADER}\n{call}\n")).unwrap_err();
    assert!(
        damaged.contains("line 2") && damaged.contains("message 7 is missing"),
        "{damaged}"
    );
}

/// A full disk.
struct FullDisk;

impl Write for FullDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.starts_with(br#"{"format":"#) {
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
async fn a_full_disk_fails_the_recording_but_not_the_run() {
    let recorder = Recorder::new(FullDisk, "test", Redactor::default()).unwrap();
    let run = record_two_calls(&recorder, &Arc::default()).await;
    assert_eq!(answer(&run), "All said.");
    // The error of a failed recording is returned again by each later call.
    for _ in 0..2 {
        let error = recorder.finish_recording().unwrap_err();
        assert!(
            error.to_string().starts_with("cannot write the recording"),
            "{error}"
        );
    }
}

proptest! {
    #[test]
    fn a_secret_that_is_split_between_deltas_is_redacted(before in "[ -~]{0,12}", after in "[ -~]{0,12}", mut cuts in prop::collection::vec(0_usize..64, 0..6)) {
        let whole = format!("{before}{KEY}{after}");
        cuts.retain(|cut| *cut <= whole.len());
        cuts.sort_unstable();
        let mut from = 0;
        let mut events = Vec::new();
        for cut in cuts.into_iter().chain([whole.len()]) {
            events.push(ModelEvent::TextDelta { index: 0, text: whole[from..cut].to_owned() });
            from = cut;
        }
        redaction().redact_events(&mut events).unwrap();
        let text: String = events.iter().map(|event| match event {
            ModelEvent::TextDelta { text, .. } => text.as_str(),
            _ => "",
        }).collect();
        prop_assert!(!text.contains(KEY));
        prop_assert!(text.contains("[redacted]"));
    }

    #[test]
    fn any_text_is_read_or_rejected(text in "\\PC{0,200}") {
        let _ = Player::read_recording(text.as_bytes());
        let _ = Player::read_recording(format!("{HEADER}\n{text}\n").as_bytes());
    }
}

#[path = "secrets_tests.rs"]
mod secrets;

#[path = "conversations_tests.rs"]
mod conversations;
