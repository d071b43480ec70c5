use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_util::FutureExt;
use proptest::prelude::*;
use rmcp::{
    model::{
        CallToolRequest, CancelledNotification, CancelledNotificationParam, ClientRequest,
        GetExtensions, JsonRpcMessage, ProtocolVersion, ServerRequest,
    },
    transport::Transport,
};
use serde_json::{Value, json};
use tokio::io::{
    AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex, split,
};

use switchboard_domain::ToolDefinition;

use super::*;
use crate::transport::{instrumented_transport::Wire, stdio_transport::Lines};

/// Counts what is written at once, and breaks after so many times.
struct Pipe {
    inner: WriteHalf<DuplexStream>,
    writes: Arc<Mutex<Vec<usize>>>,
    most: usize,
}

impl AsyncWrite for Pipe {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.writes.lock().unwrap().len() == self.most {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let written = ready!(Pin::new(&mut self.inner).poll_write(context, bytes))?;
        self.writes.lock().unwrap().push(written);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

/// A connection of which the handshake is done.
struct Stage {
    wire: Wire<Lines<ReadHalf<DuplexStream>, Pipe>>,
    direct: Arc<Direct>,
    server: DuplexStream,
    writes: Arc<Mutex<Vec<usize>>>,
}

impl Stage {
    /// Pipes that take so many bytes, and so many writes.
    fn new(bytes: usize, most: usize) -> Self {
        let (ours, server) = duplex(bytes);
        let (read, inner) = split(ours);
        let writes = Arc::default();
        let pipe = Pipe {
            inner,
            writes: Arc::clone(&writes),
            most,
        };
        let lines = Lines::new(read, pipe, 10_000);
        let direct = lines.direct();
        direct.introduce(&newer(), None);
        Self {
            wire: Wire::new(lines).with_direct(direct.clone()),
            direct,
            server,
            writes,
        }
    }

    fn call(&self, text: &str) -> Sent {
        self.call_with(text, &ProgressSink::default())
    }

    fn call_with(&self, text: &str, progress: &ProgressSink) -> Sent {
        let input = json!({"text": text}).as_object().cloned().unwrap();
        let said = Said::First {
            tool: "work",
            input: &input,
        };
        self.direct.call(said, &Arc::default(), progress).unwrap()
    }

    async fn says(&mut self, messages: &[Value]) {
        for message in messages {
            let mut message = message.clone();
            message["jsonrpc"] = "2.0".into();
            let line = format!("{message}\n");
            self.server.write_all(line.as_bytes()).await.unwrap();
        }
    }

    /// Reads as long as there is something for us alone.
    fn reads(&mut self) {
        let passed_on = self.wire.receive().now_or_never();
        assert!(passed_on.is_none(), "{passed_on:?}");
    }

    /// The next message that rmcp gets.
    async fn passed_on(&mut self) -> Value {
        serde_json::to_value(self.wire.receive().await).unwrap()
    }
}

fn newer() -> RequestMetaObject {
    let mut meta = RequestMetaObject::default();
    meta.set_protocol_version(ProtocolVersion::V_2026_07_28);
    meta
}

fn result(id: impl Into<Value>, text: &str) -> Value {
    json!({"id": id.into(), "result": {"content": [{"type": "text", "text": text}]}})
}

/// What came of a call by now.
fn text(sent: Sent) -> Option<String> {
    let answer = sent.answer.now_or_never()?.unwrap().unwrap();
    let answer = serde_json::to_value(answer).unwrap();
    Some(answer["content"][0]["text"].as_str().unwrap().to_owned())
}

fn id(sent: &Sent) -> i64 {
    number(&sent.id).unwrap()
}

#[tokio::test]
async fn calls_that_are_made_together_go_out_together_and_each_gets_its_own_answer() {
    let mut stage = Stage::new(4096, usize::MAX);
    let calls = [stage.call("a"), stage.call("b"), stage.call("c")];
    assert_eq!(stage.writes.lock().unwrap().len(), 0);
    stage.reads();
    assert_eq!(stage.writes.lock().unwrap().len(), 1);
    let ids = calls.each_ref().map(id);
    // A server may answer in any order, and make text of a number.
    stage.says(&[result(ids[2], "of c")]).await;
    stage.says(&[result(ids[0].to_string(), "of a")]).await;
    stage.reads();
    let [a, b, c] = calls;
    assert_eq!(text(a).as_deref(), Some("of a"));
    assert_eq!(text(c).as_deref(), Some("of c"));
    assert_eq!(stage.direct.open_requests().calls(), [b.id]);
}

#[tokio::test]
async fn the_reader_is_woken_for_a_call() {
    let mut stage = Stage::new(4096, usize::MAX);
    let direct = stage.direct.clone();
    let reading = tokio::spawn(async move { stage.wire.receive().await });
    // The other end answers what it hears.
    let mut server = stage.server;
    let answering = async {
        let mut line = [0; 1000];
        let read = server.read(&mut line).await.unwrap();
        let call: Value = serde_json::from_slice(&line[..read]).unwrap();
        let mut answer = result(call["id"].clone(), "done");
        answer["jsonrpc"] = "2.0".into();
        server
            .write_all(format!("{answer}\n").as_bytes())
            .await
            .unwrap();
        server
    };
    let calling = async {
        // It waits for the server by now.
        tokio::task::yield_now().await;
        let params = CallToolRequestParams::new("work");
        let sent = direct.call(
            Said::Again(&params),
            &Arc::default(),
            &ProgressSink::default(),
        );
        sent.unwrap().answer.await.unwrap().unwrap()
    };
    let (_server, answer) = futures_util::join!(answering, calling);
    assert!(matches!(answer, ServerResult::CallToolResult(_)));
    assert!(!reading.is_finished());
    reading.abort();
}

#[tokio::test]
async fn what_a_pipe_does_not_take_at_once_goes_out_in_order_with_what_rmcp_sends() {
    let mut stage = Stage::new(50, usize::MAX);
    let first = stage.call("a");
    let ping = ClientRequest::PingRequest(rmcp::model::PingRequest::default());
    let ping = ClientJsonRpcMessage::request(ping, RequestId::Number(1));
    let sending = stage.wire.send(ping);
    let second = stage.call(&"b".repeat(200));
    let (mut wire, mut server) = (stage.wire, stage.server);
    let mut told = String::new();
    let telling = async {
        let mut piece = [0; 64];
        while told.lines().count() < 3 || !told.ends_with('\n') {
            let read = server.read(&mut piece).await.unwrap();
            told += std::str::from_utf8(&piece[..read]).unwrap();
        }
    };
    tokio::select! {
        ((), sent) = async { futures_util::join!(telling, sending) } => sent.unwrap(),
        passed_on = wire.receive() => panic!("{passed_on:?}"),
    }
    let told = told.lines().map(|line| serde_json::from_str(line).unwrap());
    let ids: Vec<Value> = told.map(|told: Value| told["id"].clone()).collect();
    assert_eq!(ids, [json!(id(&first)), json!(1), json!(id(&second))]);
}

#[tokio::test]
async fn a_refusal_is_an_answer_also_without_an_id_where_there_is_one_call() {
    let mut stage = Stage::new(4096, usize::MAX);
    let refusal = |id: &Value| json!({"id": id, "error": {"code": -32000, "message": "no"}});
    for without_id in [false, true] {
        let sent = stage.call("a");
        let answer_to = if without_id {
            Value::Null
        } else {
            json!(id(&sent))
        };
        stage.says(&[refusal(&answer_to)]).await;
        stage.reads();
        let answer = sent.answer.now_or_never().unwrap().unwrap();
        let Err(ServiceError::McpError(error)) = answer else {
            panic!("{answer:?}");
        };
        assert_eq!(error.message, "no");
        assert_eq!(
            crate::transport::instrumented_transport::is_unread(&error),
            without_id
        );
    }
}

#[tokio::test]
async fn a_pipe_that_fails_tells_those_whose_call_did_not_go_out() {
    let mut stage = Stage::new(4096, 1);
    let before = stage.call("a");
    stage.reads();
    for _ in 0..2 {
        let after = stage.call("b");
        stage.reads();
        let answer = after.answer.now_or_never().unwrap().unwrap();
        assert!(
            matches!(answer, Err(ServiceError::TransportSend(_))),
            "{answer:?}"
        );
    }
    assert_eq!(
        stage.direct.open_requests().sole().as_ref(),
        Some(&before.id)
    );
    // What the server had read it may still answer.
    stage.says(&[result(id(&before), "of a")]).await;
    stage.reads();
    assert_eq!(text(before).as_deref(), Some("of a"));
}

#[tokio::test]
async fn calls_end_with_the_connection_and_there_are_none_before_and_after() {
    let params = CallToolRequestParams::new("work");
    let silent = ProgressSink::default();
    let not_yet = Direct::default();
    assert!(
        not_yet
            .call(Said::Again(&params), &Arc::default(), &silent)
            .is_none()
    );
    let stage = Stage::new(4096, usize::MAX);
    let sent = stage.call("a");
    drop(stage.wire);
    assert!(sent.answer.now_or_never().unwrap().is_err());
    assert!(
        stage
            .direct
            .call(Said::Again(&params), &Arc::default(), &silent)
            .is_none()
    );
}

#[tokio::test]
async fn progress_goes_to_its_own_call_and_only_forward() {
    let mut stage = Stage::new(4096, usize::MAX);
    let told = Arc::new(Mutex::new(Vec::new()));
    let listener = told.clone();
    let sink = ProgressSink::new(move |now| listener.lock().unwrap().push(now.progress));
    let (sent, other) = (stage.call_with("a", &sink), stage.call("b"));
    let progress = |token: i64, done: f64| {
        let params = json!({"progressToken": token, "progress": done});
        json!({"method": "notifications/progress", "params": params})
    };
    let (token, of_other) = (id(&sent), id(&other));
    let said = [
        progress(token, 1.0),
        progress(of_other, 5.0),
        progress(token, 0.5),
        progress(token, 2.0),
        result(token, "of a"),
        progress(token, 3.0),
    ];
    stage.says(&said).await;
    stage.reads();
    assert_eq!(*told.lock().unwrap(), [1.0, 2.0]);
}

#[tokio::test]
async fn nobody_gets_the_answer_to_a_call_that_was_given_up() {
    let mut stage = Stage::new(4096, usize::MAX);
    let sent = stage.call("a");
    let cancelled = CancelledNotificationParam::new(Some(sent.id.clone()), None);
    let cancelled = CancelledNotification::new(cancelled);
    let cancelled = ClientJsonRpcMessage::notification(cancelled.into());
    stage.wire.send(cancelled).await.unwrap();
    assert!(stage.direct.open_requests().calls().is_empty());
    let number = id(&sent);
    assert!(sent.answer.now_or_never().unwrap().is_err());
    stage.says(&[result(number, "late")]).await;
    // rmcp does not know it either.
    assert_eq!(stage.passed_on().await["id"], number);
    // The call went out before its end.
    drop(stage.wire);
    let mut told = String::new();
    stage.server.read_to_string(&mut told).await.unwrap();
    let methods = told.lines().map(|line| {
        let told: Value = serde_json::from_str(line).unwrap();
        told["method"].clone()
    });
    let methods: Vec<Value> = methods.collect();
    assert_eq!(methods, ["tools/call", "notifications/cancelled"]);
}

#[tokio::test]
async fn what_is_asked_within_a_call_of_the_newer_era_is_not_refused_by_rmcp() {
    let question =
        |method: &str, params: &Value| json!({"id": 7, "method": method, "params": params});
    let questions = [
        question(
            "elicitation/create",
            &json!({"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}),
        ),
        question(
            "sampling/createMessage",
            &json!({"messages": [], "maxTokens": 5}),
        ),
        question("roots/list", &json!({"_meta": {"a": 1}})),
        question("ping", &json!({})),
    ];
    for (within, is_newer_era) in [(true, true), (false, true), (true, false)] {
        let mut stage = Stage::new(4096, usize::MAX);
        if !is_newer_era {
            stage.direct.introduce(&RequestMetaObject::default(), None);
        }
        let _call = within.then(|| stage.call("a"));
        stage.says(&questions).await;
        for asked in &questions {
            let Some(JsonRpcMessage::Request(request)) = stage.wire.receive().await else {
                panic!("a question");
            };
            let is_custom = matches!(request.request, ServerRequest::CustomRequest(_));
            let restricted = asked["method"] != "ping";
            assert_eq!(is_custom, within && is_newer_era && restricted, "{asked}");
            let read = serde_json::to_value(&request.request).unwrap();
            assert_eq!(read["method"], asked["method"]);
            if restricted {
                for (field, value) in asked["params"].as_object().unwrap() {
                    assert_eq!(&read["params"][field], value, "{asked}");
                }
            }
        }
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        // As it would be read again.
        (-1e9..1e9_f64).prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(".{0,4}", inner, 0..4)
                .prop_map(|fields| fields.into_iter().collect()),
        ]
    })
}

prop_compose! {
    fn any_params()(
        name in ".{0,12}",
        arguments in prop::option::of(prop::collection::hash_map(".{0,4}", any_json(), 0..4)),
        response in prop::option::of((".{0,4}", any_json())),
        state in prop::option::of(".{0,8}"),
    ) -> CallToolRequestParams {
        let mut params = CallToolRequestParams::new(name);
        params.arguments = arguments.map(|arguments| arguments.into_iter().collect());
        params.input_responses = response.map(|(question, said)| {
            let answer = json!({question: {"action": "accept", "content": {"said": said}}});
            serde_json::from_value(answer).unwrap()
        });
        params.request_state = state;
        params
    }
}

proptest! {
    #[test]
    fn a_call_is_what_rmcp_would_send(
        params in any_params(),
        is_newer_era in any::<bool>(),
        logs in any::<bool>(),
        key in prop::option::of(".{0,8}"),
        listens in any::<bool>(),
    ) {
        let level = logs.then_some(LoggingLevel::Warning);
        let about_us = if is_newer_era { newer() } else { RequestMetaObject::default() };
        let direct = Direct::default();
        direct.introduce(&about_us, level);
        let sink = if listens { ProgressSink::new(|_| {}) } else { ProgressSink::default() };
        let tool = ToolDefinition::new("work", "", json!({}));
        let caller = Caller::of(&Arc::new(tool), key.clone());
        let is_first = params.input_responses.is_none() && params.request_state.is_none();
        let said = match &params.arguments {
            Some(input) if is_first => Said::First { tool: &params.name, input },
            _ => Said::Again(&params),
        };
        prop_assert_eq!(&said.to_params(), &params);
        let sent = direct.call(said, &caller, &sink).unwrap();

        let mut meta = about_us;
        if let Some(level) = level {
            meta.set_log_level(level);
        }
        if let Some(key) = key {
            meta.insert(IDEMPOTENCY_KEY.to_owned(), key.into());
        }
        if listens {
            meta.set_progress_token(ProgressToken(sent.id.clone()));
        }
        let mut request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        if !meta.is_empty() {
            request.extensions_mut().insert(meta);
        }
        let theirs = ClientJsonRpcMessage::request(request, sent.id);
        let theirs = serde_json::to_value(theirs).unwrap();
        let line = std::mem::take(&mut direct.unsent().lines);
        prop_assert_eq!(line.iter().position(|byte| *byte == b'\n'), Some(line.len() - 1));
        let ours: Value = serde_json::from_slice(&line).unwrap();
        prop_assert_eq!(ours, theirs);
    }
}
