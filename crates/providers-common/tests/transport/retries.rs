//! Tests of retries: which failures are retried, how often, and after which delay.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use switchboard_domain::{ModelErrorKind, TimeoutPhase};
use switchboard_providers_common::{
    ClassifiedError, ErrorClassifier, HttpFailure, HttpRequest, StatusClassifier, TransportConfig,
};

use crate::{
    ask, ask_for_text, config, nobody, request,
    server::{Act, Server, answer, chunk, opening, send},
    transport,
};

const MS: Duration = Duration::from_millis(1);

fn attempts(max_attempts: u32) -> TransportConfig {
    let mut config = config();
    config.retry.max_attempts = max_attempts;
    config
}

/// Asserts that one of the attempts gets the server's answer "at last".
async fn succeeds_at_last(server: &Server, max_attempts: u32) {
    let answer = ask_for_text(server, &attempts(max_attempts)).await;
    assert_eq!(answer.expect("an answer"), "at last");
}

#[tokio::test]
async fn transient_errors_are_retried_with_the_same_body() {
    for status in [408, 409, 429, 500, 502, 503, 504, 529] {
        let server = Server::start(vec![
            vec![answer(status, "", "busy")],
            vec![answer(status, "", "busy")],
            vec![answer(200, "", "at last")],
        ])
        .await;
        let got = ask_for_text(&server, &attempts(3)).await;
        assert_eq!(got.unwrap(), "at last", "{status}");
        let seen = server.seen();
        assert_eq!(seen.len(), 3, "{status}");
        assert!(seen.iter().all(|seen| seen.body == "{\"q\":1}"));
    }
}

#[tokio::test]
async fn permanent_errors_are_not_retried() {
    let kinds = [
        (400, ModelErrorKind::InvalidRequest { field: None }),
        (401, ModelErrorKind::Authentication),
        (402, ModelErrorKind::QuotaExhausted),
        (403, ModelErrorKind::Permission),
        (404, ModelErrorKind::NotFound),
        (413, ModelErrorKind::InvalidRequest { field: None }),
        (304, ModelErrorKind::Protocol),
    ];
    for (status, kind) in kinds {
        let script = || vec![answer(status, "request-id: req_1\r\n", "")];
        let server = Server::start(vec![script(), script()]).await;
        let error = ask(&server, &attempts(3)).await.unwrap_err();
        assert_eq!(error.kind, kind, "{status}");
        assert_eq!(error.http_status(), Some(status));
        assert_eq!(error.request_id(), Some("req_1"));
        assert_eq!(server.seen().len(), 1, "{status}");
    }
}

#[tokio::test]
async fn the_policy_limits_the_attempts() {
    for (max_attempts, expected) in [(0, 1), (1, 1), (2, 2), (4, 4)] {
        let scripts = (0..6).map(|n| vec![answer(500, "", &format!("failure {n}"))]);
        let server = Server::start(scripts.collect()).await;
        let error = ask(&server, &attempts(max_attempts)).await.unwrap_err();
        assert_eq!(server.seen().len(), expected, "{max_attempts}");
        assert_eq!(
            error.message(),
            format!("failure {}", expected - 1),
            "the last one's error"
        );
    }
}

#[tokio::test]
async fn a_connection_that_fails_is_tried_again() {
    // The connection is closed before an answer, within its headers, and before the first byte of
    // its body.
    let server = Server::start(vec![
        vec![],
        vec![send("HTTP/1.1 200 OK\r\ncontent-le")],
        vec![opening(200)],
        vec![send("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n")],
        vec![answer(200, "", "at last")],
    ])
    .await;
    succeeds_at_last(&server, 5).await;
    assert_eq!(server.seen().len(), 5);
}

#[tokio::test]
async fn a_refused_connection_is_a_connection_error() {
    let (url, _bound) = nobody();
    let result = transport(&attempts(2))
        .post(&HttpRequest::new(&url), &StatusClassifier)
        .await;
    let error = result.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Connection);
    assert!(error.message().starts_with(&url), "{error}");
    assert_eq!(error.http_status(), None);
}

#[tokio::test]
async fn a_started_answer_is_not_retried() {
    let server = Server::start(vec![
        vec![
            send("HTTP/1.1 200 OK\r\nrequest-id: req_1\r\ntransfer-encoding: chunked\r\n\r\n"),
            chunk("a"),
        ],
        vec![answer(200, "", "another answer")],
    ])
    .await;
    let answer = ask(&server, &attempts(3)).await.unwrap();
    let items: Vec<_> = answer.body.collect().await;
    assert_eq!(items.len(), 2, "{items:?}");
    assert_eq!(items[0].as_ref().unwrap(), "a");
    let error = items[1].as_ref().unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Interrupted);
    let expected = (Some(200), Some("req_1"));
    assert_eq!((error.http_status(), error.request_id()), expected);
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_body_shorter_than_promised_is_interrupted() {
    let server = Server::start(vec![vec![send(
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf",
    )]])
    .await;
    let error = ask_for_text(&server, &attempts(3)).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Interrupted);
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn the_pause_that_the_provider_requests_is_used() {
    for headers in ["retry-after-ms: 150\r\n", "retry-after: 0.15\r\n"] {
        let server = Server::start(vec![
            vec![answer(429, headers, "")],
            vec![answer(503, headers, "")],
            vec![answer(200, "", "at last")],
        ])
        .await;
        succeeds_at_last(&server, 3).await;
        for pair in server.seen().windows(2) {
            let pause = pair[1].at - pair[0].at;
            assert!(pause >= 150 * MS, "{headers}: {pause:?}");
        }
    }
}

#[tokio::test]
async fn a_too_long_requested_pause_is_returned_to_the_caller() {
    let script = || vec![answer(429, "retry-after: 3600\r\n", "")];
    let server = Server::start(vec![script(), script()]).await;
    let error = ask(&server, &attempts(3)).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_hours(1)));
    assert!(error.is_transient());
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn the_provider_can_override_the_status() {
    let server = Server::start(vec![
        vec![answer(400, "x-should-retry: true\r\n", "")],
        vec![answer(200, "", "at last")],
    ])
    .await;
    succeeds_at_last(&server, 3).await;

    // With `x-should-retry: true`, `retry-after-ms` applies to every status.
    let headers = "x-should-retry: true\r\nretry-after-ms: 150\r\n";
    let server = Server::start(vec![
        vec![answer(400, headers, "")],
        vec![answer(200, "", "at last")],
    ])
    .await;
    succeeds_at_last(&server, 3).await;
    let seen = server.seen();
    assert!(seen[1].at - seen[0].at >= 150 * MS);

    let script = || vec![answer(500, "x-should-retry: false\r\n", "final")];
    let server = Server::start(vec![script(), script()]).await;
    let error = ask(&server, &attempts(3)).await.unwrap_err();
    assert_eq!(error.message(), "final");
    assert_eq!(server.seen().len(), 1);
}

/// Classifier that treats status 429 as an exhausted quota, which is not retried.
struct QuotaClassifier;

impl ErrorClassifier for QuotaClassifier {
    fn classify_failure(&self, failure: &HttpFailure<'_>) -> ClassifiedError {
        let mut classified = StatusClassifier.classify_failure(failure);
        if failure.body == b"insufficient_quota" {
            classified.kind = ModelErrorKind::QuotaExhausted;
            classified.request_id = Some("from the body".to_owned());
        }
        classified
    }
}

#[tokio::test]
async fn the_classifier_decides_about_permanent_errors() {
    let script = || {
        vec![answer(
            429,
            "request-id: from the header\r\n",
            "insufficient_quota",
        )]
    };
    let server = Server::start(vec![script(), script()]).await;
    let error = transport(&attempts(3))
        .post(&request(&server), &QuotaClassifier)
        .await
        .unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::QuotaExhausted);
    assert_eq!(error.request_id(), Some("from the body"));
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_silent_server_is_retried() {
    let mut config = attempts(2);
    config.first_byte_timeout = 100 * MS;
    let server = Server::start(vec![vec![Act::Stall], vec![Act::Stall]]).await;
    let started = Instant::now();
    let error = ask(&server, &config).await.unwrap_err();
    let expected = ModelErrorKind::Timeout {
        phase: TimeoutPhase::FirstByte,
        after: 100 * MS,
    };
    assert_eq!(error.kind, expected);
    assert!(
        started.elapsed() >= 200 * MS,
        "two attempts take twice the limit"
    );
}

#[tokio::test]
async fn a_server_without_tls_is_not_retried() {
    // The server answers the client's TLS handshake with an HTTP error in plain text.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/v1", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let mut connections = 0;
        loop {
            let (mut socket, _) = listener.accept().await?;
            connections += 1;
            let mut greeting = [0; 512];
            if socket.read(&mut greeting).await? == 0 {
                return std::io::Result::Ok(connections);
            }
            socket
                .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                .await?;
        }
    });
    let result = transport(&attempts(3))
        .post(&HttpRequest::new(&url), &StatusClassifier)
        .await;
    let error = result.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Connection);
    assert!(error.message().starts_with(&url), "{error}");
    assert!(error.message().contains("InvalidContentType"), "{error}");
    // An empty connection stops the server. The connections before it were attempts.
    let address = url.trim_start_matches("https://").trim_end_matches("/v1");
    drop(tokio::net::TcpStream::connect(address).await.unwrap());
    assert_eq!(serving.await.unwrap().unwrap(), 2);
}
