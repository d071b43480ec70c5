use std::{
    collections::VecDeque,
    convert::Infallible,
    future::{pending, ready},
    sync::Mutex,
};

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotification, CancelledNotificationParam,
    DiscoverRequest, DiscoverRequestParams, ProtocolVersion,
};
use serde_json::{Value, json};

use super::*;
use crate::transport::direct::Said;

/// Gives what it is given, then is silent or ends; and keeps what is sent.
#[derive(Default)]
struct Lines {
    ends: bool,
    incoming: VecDeque<Value>,
    sent: Arc<Mutex<Vec<Value>>>,
}

impl Transport<RoleClient> for Lines {
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
            None if self.ends => None,
            None => pending().await,
        }
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

fn lines<const N: usize>(incoming: [Value; N]) -> Lines {
    Lines {
        incoming: incoming.into(),
        ..Lines::default()
    }
}

async fn send(wire: &mut impl Transport<RoleClient>, request: impl Into<ClientRequest>, id: i64) {
    let message = ClientJsonRpcMessage::request(request.into(), RequestId::Number(id));
    assert!(wire.send(message).await.is_ok());
}

async fn received(wire: &mut impl Transport<RoleClient>) -> Value {
    serde_json::to_value(wire.receive().await).unwrap()
}

fn a_call(sink: Option<ProgressSink>, token: i64) -> CallToolRequest {
    let mut call = CallToolRequest::new(CallToolRequestParams::new("work"));
    let mut meta = RequestMetaObject::default();
    meta.set_progress_token(ProgressToken(RequestId::Number(token)));
    call.extensions.insert(meta);
    if let Some(sink) = sink {
        call.extensions.insert(Listener(sink));
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

fn told() -> (ProgressSink, Arc<Mutex<Vec<f64>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let listener = told.clone();
    let sink = ProgressSink::new(move |now| listener.lock().unwrap().push(now.progress));
    (sink, told)
}

#[tokio::test]
async fn progress_goes_to_its_own_call_only_while_it_runs_and_only_forward() {
    let ((first, of_first), (second, of_second)) = (told(), told());
    let mut wire = Wire::new(lines([
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
        &mut wire,
        ClientRequest::CallToolRequest(a_call(Some(first), 11)),
        1,
    )
    .await;
    send(
        &mut wire,
        ClientRequest::CallToolRequest(a_call(Some(second), 12)),
        2,
    )
    .await;
    for id in [json!(1), json!("2"), json!(3)] {
        assert_eq!(received(&mut wire).await["id"], id);
    }
    assert_eq!(*of_first.lock().unwrap(), [1.0, 2.0]);
    assert_eq!(*of_second.lock().unwrap(), [5.0]);
}

#[tokio::test]
async fn progress_is_asked_for_only_where_somebody_listens() {
    let lines = lines([]);
    let sent = lines.sent.clone();
    let mut wire = Wire::new(lines);
    send(
        &mut wire,
        ClientRequest::CallToolRequest(a_call(Some(told().0), 11)),
        1,
    )
    .await;
    send(
        &mut wire,
        ClientRequest::CallToolRequest(a_call(None, 12)),
        2,
    )
    .await;
    let sent = sent.lock().unwrap();
    assert_eq!(sent[0]["params"]["_meta"], json!({"progressToken": 11}));
    assert_eq!(sent[1]["params"], json!({"name": "work"}));
}

#[tokio::test]
async fn a_cancelled_call_hears_no_more() {
    let (sink, heard) = told();
    let mut wire = Wire::new(lines([progress(11, 1.0), result(2)]));
    send(
        &mut wire,
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
    assert!(wire.send(message).await.is_ok());
    received(&mut wire).await;
    assert!(heard.lock().unwrap().is_empty());
}

fn error(id: &Value) -> Value {
    json!({"id": id, "error": {"code": -32000, "message": "no session"}})
}

#[tokio::test]
async fn an_error_without_an_id_answers_the_only_open_request() {
    for id in [Value::Null, json!("server-error")] {
        let mut wire = Wire::new(lines([error(&id), result(8)]));
        send(
            &mut wire,
            ClientRequest::CallToolRequest(a_call(None, 1)),
            7,
        )
        .await;
        let Some(JsonRpcMessage::Error(answer)) = wire.receive().await else {
            panic!("an error");
        };
        assert_eq!(answer.id, Some(RequestId::Number(7)));
        assert!(is_unread(&answer.error));
    }
}

#[tokio::test]
async fn an_error_that_may_be_anybodys_is_given_to_nobody() {
    // Two are open; then one is, and a late error for one that was given up has a number.
    let mut wire = Wire::new(lines([error(&Value::Null), result(1), error(&json!(9))]));
    send(
        &mut wire,
        ClientRequest::CallToolRequest(a_call(None, 1)),
        1,
    )
    .await;
    send(
        &mut wire,
        ClientRequest::CallToolRequest(a_call(None, 2)),
        2,
    )
    .await;
    assert_eq!(received(&mut wire).await["id"], Value::Null);
    assert_eq!(received(&mut wire).await["id"], 1);
    let late = received(&mut wire).await;
    assert_eq!(late["id"], 9);
    assert_eq!(late["error"]["data"], Value::Null);
}

const PATIENCE: Duration = Duration::from_secs(5);

async fn probe(lines: Lines) -> (ProbedWire<Lines>, LateDiscovery) {
    let late = LateDiscovery::default();
    let mut wire = Wire::new(lines).probed(PATIENCE, late.clone());
    let discover = DiscoverRequest::new(DiscoverRequestParams {});
    send(&mut wire, ClientRequest::DiscoverRequest(discover), 0).await;
    (wire, late)
}

fn discovery() -> Value {
    let result = json!({
        "supportedVersions": ["2026-07-28"], "capabilities": {},
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
    });
    json!({"id": 0, "result": result})
}

#[tokio::test]
async fn an_answer_to_discovery_is_passed_on() {
    let (mut wire, late) = probe(lines([discovery(), result(1)])).await;
    assert_eq!(
        received(&mut wire).await["result"]["supportedVersions"][0],
        "2026-07-28"
    );
    assert_eq!(received(&mut wire).await["id"], 1);
    assert!(!late.happened());
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_passed_on_at_once_and_ends_the_probe() {
    let refusal = json!({"error": {"code": -32601, "message": "Method not found"}});
    let (mut wire, _) = probe(lines([refusal, result(1)])).await;
    let begun = Instant::now();
    let answer = received(&mut wire).await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(0), &json!(-32601))
    );
    // What comes now answers the next request.
    assert_eq!(received(&mut wire).await["id"], 1);
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn silence_becomes_a_refusal_in_time_and_a_late_answer_is_noticed() {
    let (mut wire, late) = probe(lines([])).await;
    let begun = Instant::now();
    let answer = received(&mut wire).await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(0), &json!(-32601))
    );
    assert_eq!(begun.elapsed(), PATIENCE);
    wire.wire.inner.incoming = [discovery(), result(1)].into();
    assert_eq!(received(&mut wire).await["id"], 1);
    assert!(late.happened());
}

#[tokio::test]
async fn an_odd_answer_becomes_a_refusal() {
    let (mut wire, late) = probe(lines([result(0), result(1)])).await;
    assert_eq!(received(&mut wire).await["error"]["code"], -32601);
    assert_eq!(received(&mut wire).await["id"], 1);
    assert!(!late.happened());
}

fn with_version(mut call: CallToolRequest, version: ProtocolVersion) -> ClientRequest {
    let mut meta = RequestMetaObject::default();
    meta.set_protocol_version(version);
    call.extensions.insert(meta);
    ClientRequest::CallToolRequest(call)
}

#[tokio::test]
async fn servers_of_the_newer_era_that_log_are_told_what_to_log_of_each_call() {
    let discovered = |capabilities: Value| {
        json!({"id": 0, "result": {
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            "supportedVersions": ["2026-07-28"], "capabilities": capabilities,
            "serverInfo": {"name": "s", "version": "0"},
        }})
    };
    let (newer, older) = (ProtocolVersion::V_2026_07_28, ProtocolVersion::V_2025_11_25);
    for (capabilities, version, expected) in [
        (json!({"logging": {}}), newer.clone(), json!("warning")),
        (json!({}), newer, Value::Null),
        (json!({"logging": {}}), older, Value::Null),
    ] {
        let lines = lines([discovered(capabilities)]);
        let sent = lines.sent.clone();
        let mut wire = Wire::new(lines).logging(LogLevel::Warning);
        received(&mut wire).await;
        let call = CallToolRequest::new(CallToolRequestParams::new("work"));
        send(&mut wire, with_version(call, version), 1).await;
        let list = rmcp::model::ListToolsRequest::default();
        send(&mut wire, ClientRequest::ListToolsRequest(list), 2).await;
        let sent = sent.lock().unwrap();
        let level = "/params/_meta/io.modelcontextprotocol~1logLevel";
        let levels = |at: usize| sent[at].pointer(level).cloned().unwrap_or_default();
        assert_eq!((levels(0), levels(1)), (expected, Value::Null));
    }
}

#[tokio::test]
async fn calls_past_rmcp_say_what_rmcp_says_in_the_first_list_of_tools() {
    let discovered = json!({"id": 0, "result": {
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
        "supportedVersions": ["2026-07-28"], "capabilities": {"logging": {}},
        "serverInfo": {"name": "s", "version": "0"},
    }});
    let direct = Arc::new(Direct::default());
    let mut wire = Wire::new(lines([discovered]))
        .logging(LogLevel::Warning)
        .with_direct(direct.clone());
    received(&mut wire).await;
    let params = CallToolRequestParams::new("work");
    let call = || {
        direct.call(
            Said::Again(&params),
            &Arc::default(),
            &ProgressSink::default(),
        )
    };
    assert!(call().is_none());
    let mut list = rmcp::model::ListToolsRequest::default();
    let mut meta = RequestMetaObject::default();
    meta.set_protocol_version(ProtocolVersion::V_2026_07_28);
    meta.set_progress_token(ProgressToken(RequestId::Number(5)));
    list.extensions.insert(meta);
    send(&mut wire, ClientRequest::ListToolsRequest(list), 1).await;
    assert!(call().is_some());
    let line = std::mem::take(&mut direct.unsent().lines);
    let sent: Value = serde_json::from_slice(&line).unwrap();
    let expected = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/logLevel": "warning",
    });
    assert_eq!(sent["params"]["_meta"], expected);
}

#[tokio::test]
async fn calls_are_open_until_their_answer_their_end_or_that_of_the_connection() {
    let lines = Lines {
        ends: true,
        ..lines([result(1)])
    };
    let mut wire = Wire::new(lines);
    let open = wire.open_requests();
    for id in [1, 2, 3] {
        send(
            &mut wire,
            ClientRequest::CallToolRequest(a_call(None, id)),
            id,
        )
        .await;
    }
    let list = rmcp::model::ListToolsRequest::default();
    send(&mut wire, ClientRequest::ListToolsRequest(list), 4).await;
    let level = rmcp::model::SetLevelRequestParams::new(LoggingLevel::Info);
    let level = rmcp::model::SetLevelRequest::new(level);
    send(&mut wire, ClientRequest::SetLevelRequest(level), 5).await;
    let ids = |ids: &[i64]| {
        ids.iter()
            .copied()
            .map(RequestId::Number)
            .collect::<Vec<_>>()
    };
    assert_eq!(open.calls(), ids(&[1, 2, 3]));
    received(&mut wire).await;
    assert_eq!(open.calls(), ids(&[2, 3]));
    let cancelled = CancelledNotificationParam::new(Some(RequestId::Number(2)), None);
    let cancelled = CancelledNotification::new(cancelled);
    let cancelled = ClientJsonRpcMessage::notification(cancelled.into());
    assert!(wire.send(cancelled).await.is_ok());
    assert_eq!(open.calls(), ids(&[3]));
    assert!(wire.receive().await.is_none());
    assert!(open.calls().is_empty());
    assert!(open.sole().is_none());
}
