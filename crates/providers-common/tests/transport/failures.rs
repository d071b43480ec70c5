//! Tests of failed requests, invalid answers, and requests that cannot be sent.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use secrecy::SecretString;
use switchboard_domain::ModelErrorKind;
use switchboard_providers_common::{
    ClassifiedError, ErrorClassifier, HttpFailure, HttpRequest, StatusClassifier,
    http::transport::MAX_ERROR_BODY_BYTES,
};

use crate::{
    ask, assert_hidden, config, once, request,
    server::{Act, Server, answer, send},
    transport,
};

#[tokio::test]
async fn a_redirect_is_not_followed_and_the_error_names_the_target() {
    let elsewhere = Server::start(vec![vec![answer(200, "", "stolen")]]).await;
    let target = elsewhere.url.replace("http://", "http://me:hidden-1@");
    for status in [301, 302, 303, 307, 308] {
        let location = format!("location: {target}?to=hidden-2\r\n");
        let script = || vec![answer(status, &location, "moved")];
        let server = Server::start(vec![script(), script()]).await;
        let request = request(&server).with_secret("x-api-key", &SecretString::from("hidden-3"));
        let error = transport(&config())
            .post(&request, &StatusClassifier)
            .await
            .unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Configuration);
        assert_eq!(error.http_status(), Some(status));
        assert!(error.message().contains(&elsewhere.url), "{error}");
        assert_hidden(&error);
        assert_eq!(server.seen().len(), 1);
    }
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn a_redirect_to_the_same_host_is_not_followed_either() {
    let server = Server::start(vec![vec![answer(308, "location: /v2/messages\r\n", "")]]).await;
    let error = ask(&server, &config()).await.unwrap_err();
    let target = server.url.replace("/v1/", "/v2/");
    assert!(error.message().contains(&target), "{error}");
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn an_html_page_instead_of_a_stream_is_an_error() {
    let page = "<html>\n<title>Sign in</title>";
    let script = || {
        vec![answer(
            200,
            "content-type: text/html; charset=utf-8\r\n",
            page,
        )]
    };
    let server = Server::start(vec![script(), script(), script()]).await;
    let transport = transport(&config());
    let strict = request(&server).expect_media_types(&["text/event-stream", "application/json"]);
    let error = transport
        .post(&strict, &StatusClassifier)
        .await
        .unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Protocol);
    assert_eq!(error.http_status(), Some(200));
    for part in [
        "`text/html`",
        "`text/event-stream` or `application/json`",
        &server.url,
        "<title>Sign in</title>",
    ] {
        assert!(error.message().contains(part), "{error}");
    }
    assert_eq!(server.seen().len(), 1, "a page does not pass");
    // Without expected media types, an answer of any type is accepted.
    let answer = transport.post(&request(&server), &StatusClassifier).await;
    let answer = answer.unwrap();
    assert_eq!(answer.media_type().as_deref(), Some("text/html"));
    assert_eq!(crate::text(answer).await.unwrap(), page);
}

#[tokio::test]
async fn the_expected_media_type_is_accepted_in_any_case() {
    for header in ["content-type: Application/JSON ;charset=utf-8\r\n", ""] {
        let server = Server::start(vec![vec![answer(200, header, "{}")]]).await;
        let request = request(&server).expect_media_types(&["application/json"]);
        let answer = transport(&once()).post(&request, &StatusClassifier).await;
        assert_eq!(
            crate::text(answer.unwrap()).await.unwrap(),
            "{}",
            "{header}"
        );
    }
}

/// Classifier that finds an error in a body with any status.
struct InBodyClassifier;

impl ErrorClassifier for InBodyClassifier {
    fn classify_failure(&self, failure: &HttpFailure<'_>) -> ClassifiedError {
        let mut classified = StatusClassifier.classify_failure(failure);
        if failure.body == b"{\"error\":\"busy\"}" {
            classified.kind = ModelErrorKind::Overloaded { retry_after: None };
        }
        classified
    }
}

#[tokio::test]
async fn an_error_with_a_successful_status_is_classified_and_retried() {
    let json = "content-type: application/json\r\n";
    let server = Server::start(vec![
        vec![answer(200, json, "{\"error\":\"busy\"}")],
        vec![answer(
            200,
            "content-type: text/event-stream\r\n",
            "data: 1\n\n",
        )],
    ])
    .await;
    let request = request(&server).expect_media_types(&["text/event-stream"]);
    let answer = transport(&config()).post(&request, &InBodyClassifier).await;
    let expected = Some("text/event-stream");
    assert_eq!(answer.unwrap().media_type().as_deref(), expected);
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn a_compressed_body_is_refused_and_not_shown() {
    let gzip = "content-encoding: gzip\r\n";
    let server = Server::start(vec![
        vec![answer(200, gzip, "\u{1f}garbage")],
        vec![answer(400, gzip, "\u{1f}garbage")],
        vec![answer(200, "content-encoding: identity\r\n", "fine")],
    ])
    .await;
    let error = ask(&server, &once()).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Protocol);
    assert!(error.message().contains("gzip"), "{error}");
    assert!(!error.message().contains("garbage"), "{error}");

    let error = ask(&server, &once()).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::InvalidRequest { field: None });
    assert!(error.message().contains("gzip"), "{error}");
    assert!(!error.message().contains("garbage"), "{error}");

    assert!(ask(&server, &once()).await.is_ok());
}

/// Classifier that stores the length and the end of the body that it received.
#[derive(Default)]
struct Witness {
    length: AtomicUsize,
    end: Mutex<Vec<u8>>,
}

impl ErrorClassifier for Witness {
    fn classify_failure(&self, failure: &HttpFailure<'_>) -> ClassifiedError {
        self.length.store(failure.body.len(), SeqCst);
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        *end = failure.body.iter().rev().take(3).copied().collect();
        StatusClassifier.classify_failure(failure)
    }
}

#[tokio::test]
async fn the_body_of_a_failure_is_read_up_to_a_limit() {
    let head = "HTTP/1.1 400 Bad\r\nconnection: close\r\n\r\n";
    let exact = "x".repeat(MAX_ERROR_BODY_BYTES - 3) + "end";
    let longer = exact.clone() + &"y".repeat(1 << 20);
    for body in [exact, longer] {
        let server = Server::start(vec![vec![send(format!("{head}{body}"))]]).await;
        let witness = Witness::default();
        let result = transport(&once()).post(&request(&server), &witness).await;
        let error = result.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::InvalidRequest { field: None });
        assert_eq!(witness.length.load(SeqCst), MAX_ERROR_BODY_BYTES);
        assert_eq!(*witness.end.lock().unwrap(), b"dne");
        assert!(error.message().chars().count() < 400, "{error}");
    }
}

#[tokio::test]
async fn a_failure_without_end_is_not_read_to_its_end() {
    let head = "HTTP/1.1 400 Bad\r\n\r\n";
    let mut server = Server::start(vec![vec![send(head), Act::Flood]]).await;
    let error = ask(&server, &once()).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::InvalidRequest { field: None });
    server.closed().await;
}

#[tokio::test]
async fn a_failure_with_half_a_body_is_reported_with_it() {
    let server = Server::start(vec![vec![
        send("HTTP/1.1 401 No\r\ncontent-length: 9\r\n\r\n"),
        Act::Send(b"\xff\xfe ".to_vec()),
    ]])
    .await;
    let error = ask(&server, &once()).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Authentication);
    assert_eq!(error.message(), "\u{fffd}\u{fffd}");
}

#[tokio::test]
async fn an_invalid_request_is_a_configuration_error() {
    let key = SecretString::from("hidden\u{7f}");
    let long = format!("http://a.example/{}", "x".repeat(70_000));
    let requests = [
        HttpRequest::new(""),
        HttpRequest::new("localhost:8000/v1"),
        HttpRequest::new("ftp://a.example/"),
        HttpRequest::new("http://"),
        HttpRequest::new("http://me:hidden@a.example:port/?hidden"),
        HttpRequest::new("data:hidden@a.example"),
        HttpRequest::new("http://a.example").with_secret("x-api-key", &key),
        HttpRequest::new("http://a.example").with_header("x y", "1"),
        HttpRequest::new(long),
    ];
    let transport = transport(&config());
    for request in requests {
        let result = transport.post(&request, &StatusClassifier).await;
        let error = result.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Configuration, "{error}");
        assert_hidden(&error);
    }
}
