use std::{sync::Mutex, time::SystemTime};

use axum::{Json, Router, http::StatusCode, response::IntoResponse, routing::post};
use secrecy::SecretString;
use serde_json::json;
use switchboard_providers_common::Headers;

use super::*;

/// A collector on loopback that keeps what it got.
struct Collector {
    address: String,
    got: Arc<Mutex<Vec<Value>>>,
}

impl Collector {
    async fn answering(
        answer: impl Fn() -> axum::response::Response + Clone + Send + Sync + 'static,
    ) -> Self {
        let got: Arc<Mutex<Vec<Value>>> = Arc::default();
        let keep = Arc::clone(&got);
        let handler = move |Json(body): Json<Value>| {
            keep.lock().unwrap().push(body);
            let answer = answer();
            async move { answer }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/v1/traces", listener.local_addr().unwrap());
        let router = Router::new().route("/v1/traces", post(handler));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, got }
    }

    fn spans(&self) -> usize {
        let got = self.got.lock().unwrap();
        got.iter().map(spans_of).sum()
    }
}

fn spans_of(request: &Value) -> usize {
    request["resourceSpans"][0]["scopeSpans"][0]["spans"]
        .as_array()
        .unwrap()
        .len()
}

fn settings(url: &str) -> Settings {
    Settings {
        url: url.to_owned(),
        headers: Headers::new()
            .with_secret("x-key", &SecretString::from("secret-of-the-collector")),
        form: Form::Json,
        resource: Vec::new(),
        timeout: Duration::from_secs(5),
        content: false,
    }
}

fn span() -> EndedSpan {
    EndedSpan {
        trace: [1; 16],
        id: [1; 8],
        parent: None,
        name: "chat large".into(),
        client: true,
        failed: false,
        since: SystemTime::UNIX_EPOCH,
        until: SystemTime::UNIX_EPOCH,
        attributes: Vec::new(),
    }
}

#[tokio::test]
async fn all_spans_are_sent_before_the_end_in_batches() {
    let collector =
        Collector::answering(|| Json(json!({"partialSuccess": {}})).into_response()).await;
    let (queue, export) = Export::start(settings(&collector.address), Redactor::default()).unwrap();
    for _ in 0..1_100 {
        queue.spans.send(span()).await.unwrap();
    }
    assert_eq!(export.finish().await, None);
    assert_eq!(collector.spans(), 1_100);
    let got = collector.got.lock().unwrap();
    assert!(got.iter().all(|request| spans_of(request) <= BATCH));
}

#[tokio::test]
async fn spans_do_not_wait_for_the_end() {
    let (told, mut is_told) = mpsc::unbounded_channel();
    let collector = Collector::answering(move || {
        let _ = told.send(());
        StatusCode::OK.into_response()
    })
    .await;
    let (queue, _export) =
        Export::start(settings(&collector.address), Redactor::default()).unwrap();
    queue.spans.send(span()).await.unwrap();
    assert!(is_told.recv().await.is_some());
    assert_eq!(collector.spans(), 1);
}

#[tokio::test]
async fn what_the_collector_rejects_is_counted_and_told() {
    let partial = json!({"partialSuccess": {"rejectedSpans": "2", "errorMessage": "too old, secret-of-the-collector"}});
    let collector = Collector::answering(move || Json(partial.clone()).into_response()).await;
    let (queue, export) = Export::start(settings(&collector.address), Redactor::default()).unwrap();
    for _ in 0..3 {
        queue.spans.send(span()).await.unwrap();
    }
    let lost = export.finish().await.unwrap();
    assert!(
        lost.contains("2 of 3") && lost.contains("too old"),
        "{lost}"
    );
    assert!(!lost.contains("secret-of-the-collector"), "{lost}");
}

#[tokio::test]
async fn a_collector_that_refuses_is_told_at_the_end() {
    let collector = Collector::answering(|| StatusCode::UNAUTHORIZED.into_response()).await;
    let (queue, export) = Export::start(settings(&collector.address), Redactor::default()).unwrap();
    queue.spans.send(span()).await.unwrap();
    queue.dropped.fetch_add(4, Ordering::Relaxed);
    let lost = export.finish().await.unwrap();
    assert!(lost.contains("5 of 5") && lost.contains("401"), "{lost}");
    // It is not tried again: the key will not become right.
    assert_eq!(collector.got.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_collector_that_says_nothing_does_not_hold_up_the_end() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/traces", listener.local_addr().unwrap());
    let (queue, export) = Export::start(settings(&url), Redactor::default()).unwrap();
    queue.spans.send(span()).await.unwrap();
    let (connection, _) = listener.accept().await.unwrap();
    tokio::time::pause();
    let lost = export.finish().await.unwrap();
    assert!(lost.contains("3s"), "{lost}");
    drop(connection);
}

#[test]
fn a_complaint_is_read_in_both_forms_of_its_number() {
    for answer in ["", "ok", "[]", "{}"] {
        assert_eq!(rejected(answer.as_bytes()), None, "{answer}");
    }
    for (answer, spans) in [
        (r#"{"partialSuccess":{}}"#, 0),
        (r#"{"partialSuccess":{"rejectedSpans":0}}"#, 0),
        (r#"{"partialSuccess":{"rejectedSpans":3}}"#, 3),
        (r#"{"partialSuccess":{"rejectedSpans":"3"}}"#, 3),
    ] {
        assert_eq!(rejected(answer.as_bytes()), Some((spans, None)), "{answer}");
    }
}

#[tokio::test]
async fn the_binary_form_is_sent_where_it_is_wanted() {
    let got: Arc<Mutex<Vec<_>>> = Arc::default();
    let keep = Arc::clone(&got);
    let take = move |headers: axum::http::HeaderMap, body: axum::body::Bytes| {
        let kind = headers["content-type"].to_str().unwrap().to_owned();
        keep.lock().unwrap().push((kind, body.to_vec()));
        // `partial_success` with `rejected_spans: 1`.
        let answer = [0x0a, 0x02, 0x08, 0x01];
        async move { ([("content-type", "application/x-protobuf")], answer) }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let router = Router::new().route("/", post(take));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let binary = Settings {
        form: Form::Binary,
        ..settings(&url)
    };
    let (queue, export) = Export::start(binary, Redactor::default()).unwrap();
    queue.spans.send(span()).await.unwrap();
    let lost = export.finish().await.unwrap();
    assert!(
        lost.contains("1 of 1") && lost.contains("did not say why"),
        "{lost}"
    );
    let got = got.lock().unwrap();
    let expected = protobuf::request(&[span()], &[], &Redactor::default());
    assert_eq!(*got, [("application/x-protobuf".to_owned(), expected)]);
}
