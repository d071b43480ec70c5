use std::{
    collections::VecDeque,
    convert::Infallible,
    future::{pending, ready},
    sync::Mutex,
};

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotification, CancelledNotificationParam,
    ProtocolVersion,
};
use serde_json::{Value, json};

use super::*;

/// A transport that returns the given messages and then is silent. It records what is sent.
#[derive(Default)]
struct FakeTransport {
    incoming: VecDeque<Value>,
    sent: Arc<Mutex<Vec<Value>>>,
}

impl Transport<RoleClient> for FakeTransport {
    type Error = Infallible;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        let message = serde_json::to_value(message).unwrap();
        self.sent.lock().unwrap().push(message);
        ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        match self.incoming.pop_front() {
            Some(mut message) => {
                message["jsonrpc"] = "2.0".into();
                Some(serde_json::from_value(message).unwrap())
            }
            None => pending().await,
        }
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

fn transport<const N: usize>(incoming: [Value; N]) -> FakeTransport {
    FakeTransport {
        incoming: incoming.into(),
        ..FakeTransport::default()
    }
}

fn instrument(inner: FakeTransport) -> InstrumentedTransport<FakeTransport> {
    InstrumentedTransport::new(inner, LogLevel::Info)
}

async fn send(
    instrumented: &mut impl Transport<RoleClient>,
    request: impl Into<ClientRequest>,
    id: i64,
) {
    let message = ClientJsonRpcMessage::request(request.into(), RequestId::Number(id));
    assert!(instrumented.send(message).await.is_ok());
}

async fn received(instrumented: &mut impl Transport<RoleClient>) -> Value {
    serde_json::to_value(instrumented.receive().await).unwrap()
}

fn a_call(sink: Option<ProgressSink>, token: i64) -> CallToolRequest {
    let mut call = CallToolRequest::new(CallToolRequestParams::new("work"));
    let mut meta = RequestMetaObject::default();
    meta.set_progress_token(ProgressToken(RequestId::Number(token)));
    call.extensions.insert(meta);
    if let Some(sink) = sink {
        call.extensions.insert(ProgressListener(sink));
    }
    call
}

fn progress(token: impl Into<Value>, done: f64) -> Value {
    let params = json!({"progressToken": token.into(), "progress": done});
    json!({"method": "notifications/progress", "params": params})
}

fn result(id: impl Into<Value>) -> Value {
    json!({"id": id.into(), "result": {"content": []}})
}

fn recorder() -> (ProgressSink, Arc<Mutex<Vec<f64>>>) {
    let recorded = Arc::new(Mutex::new(Vec::new()));
    let listener = recorded.clone();
    let sink = ProgressSink::new(move |now| listener.lock().unwrap().push(now.progress));
    (sink, recorded)
}

#[tokio::test]
async fn increasing_progress_is_reported_to_its_running_call() {
    let ((first, of_first), (second, of_second)) = (recorder(), recorder());
    let mut instrumented = instrument(transport([
        progress(11, 1.0),
        progress("12", 5.0),
        progress(11, 0.5),
        progress(99, 7.0),
        progress(11, 2.0),
        result(1),
        progress(11, 3.0),
        result("2"),
        progress(12, 9.0),
        result(3),
    ]));
    send(
        &mut instrumented,
        ClientRequest::CallToolRequest(a_call(Some(first), 11)),
        1,
    )
    .await;
    send(
        &mut instrumented,
        ClientRequest::CallToolRequest(a_call(Some(second), 12)),
        2,
    )
    .await;
    for id in [json!(1), json!("2"), json!(3)] {
        assert_eq!(received(&mut instrumented).await["id"], id);
    }
    assert_eq!(*of_first.lock().unwrap(), [1.0, 2.0]);
    assert_eq!(*of_second.lock().unwrap(), [5.0]);
}

#[tokio::test]
async fn progress_is_requested_only_with_a_listener() {
    let inner = transport([]);
    let sent = inner.sent.clone();
    let mut instrumented = instrument(inner);
    send(
        &mut instrumented,
        ClientRequest::CallToolRequest(a_call(Some(recorder().0), 11)),
        1,
    )
    .await;
    send(
        &mut instrumented,
        ClientRequest::CallToolRequest(a_call(None, 12)),
        2,
    )
    .await;
    let sent = sent.lock().unwrap();
    assert_eq!(sent[0]["params"]["_meta"], json!({"progressToken": 11}));
    assert_eq!(sent[1]["params"], json!({"name": "work"}));
}

#[tokio::test]
async fn a_cancelled_call_receives_no_progress() {
    let (sink, recorded) = recorder();
    let mut instrumented = instrument(transport([progress(11, 1.0), result(2)]));
    send(
        &mut instrumented,
        ClientRequest::CallToolRequest(a_call(Some(sink), 11)),
        1,
    )
    .await;
    let cancelled = CancelledNotification::new(CancelledNotificationParam::new(
        Some(RequestId::Number(1)),
        None,
    ));
    let message =
        ClientJsonRpcMessage::notification(ClientNotification::CancelledNotification(cancelled));
    assert!(instrumented.send(message).await.is_ok());
    received(&mut instrumented).await;
    assert!(recorded.lock().unwrap().is_empty());
}

fn error(id: &Value) -> Value {
    json!({"id": id, "error": {"code": -32000, "message": "no session"}})
}

#[tokio::test]
async fn an_error_without_an_id_answers_the_only_open_request() {
    for id in [Value::Null, json!("server-error")] {
        let mut instrumented = instrument(transport([error(&id), result(8)]));
        send(
            &mut instrumented,
            ClientRequest::CallToolRequest(a_call(None, 1)),
            7,
        )
        .await;
        let Some(JsonRpcMessage::Error(answer)) = instrumented.receive().await else {
            panic!("an error");
        };
        assert_eq!(answer.id, Some(RequestId::Number(7)));
        assert!(is_unread(&answer.error));
    }
}

#[tokio::test]
async fn an_error_without_an_id_is_not_assigned_if_several_requests_are_open() {
    // Two requests are open. Then one is, and a late error for another one has a number.
    let mut instrumented = instrument(transport([
        error(&Value::Null),
        result(1),
        error(&json!(9)),
    ]));
    send(
        &mut instrumented,
        ClientRequest::CallToolRequest(a_call(None, 1)),
        1,
    )
    .await;
    send(
        &mut instrumented,
        ClientRequest::CallToolRequest(a_call(None, 2)),
        2,
    )
    .await;
    assert_eq!(received(&mut instrumented).await["id"], Value::Null);
    assert_eq!(received(&mut instrumented).await["id"], 1);
    let late = received(&mut instrumented).await;
    assert_eq!(late["id"], 9);
    assert_eq!(late["error"]["data"], Value::Null);
}

fn with_version(mut call: CallToolRequest, version: ProtocolVersion) -> ClientRequest {
    let mut meta = RequestMetaObject::default();
    meta.set_protocol_version(version);
    call.extensions.insert(meta);
    ClientRequest::CallToolRequest(call)
}

#[tokio::test]
async fn calls_to_modern_servers_with_logging_contain_the_log_level() {
    let discovered = |capabilities: Value| {
        json!({"id": 0, "result": {
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            "supportedVersions": ["2026-07-28"], "capabilities": capabilities,
            "serverInfo": {"name": "s", "version": "0"},
        }})
    };
    let (modern, legacy) = (ProtocolVersion::V_2026_07_28, ProtocolVersion::V_2025_11_25);
    for (capabilities, version, expected) in [
        (json!({"logging": {}}), modern.clone(), json!("warning")),
        (json!({}), modern, Value::Null),
        (json!({"logging": {}}), legacy, Value::Null),
    ] {
        let inner = transport([discovered(capabilities)]);
        let sent = inner.sent.clone();
        let mut instrumented = InstrumentedTransport::new(inner, LogLevel::Warning);
        received(&mut instrumented).await;
        let call = CallToolRequest::new(CallToolRequestParams::new("work"));
        send(&mut instrumented, with_version(call, version), 1).await;
        let list = rmcp::model::ListToolsRequest::default();
        send(&mut instrumented, ClientRequest::ListToolsRequest(list), 2).await;
        let sent = sent.lock().unwrap();
        let level = "/params/_meta/io.modelcontextprotocol~1logLevel";
        let levels = |at: usize| sent[at].pointer(level).cloned().unwrap_or_default();
        assert_eq!((levels(0), levels(1)), (expected, Value::Null));
    }
}
