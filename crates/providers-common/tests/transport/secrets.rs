//! Tests that API keys appear in no message, error or log.

use std::{
    error::Error as _,
    io,
    sync::{Arc, Mutex, PoisonError},
};

use secrecy::SecretString;
use switchboard_domain::{ModelError, ModelErrorKind};
use switchboard_providers_common::{
    ClassifiedError, ErrorClassifier, Headers, HttpFailure, HttpRequest, StatusClassifier,
};

use crate::{
    assert_hidden, config, nobody, once, request,
    server::{Server, answer},
    transport,
};

const KEY: &str = "sk-hidden-0123456789";

fn key() -> SecretString {
    SecretString::from(KEY)
}

#[tokio::test]
async fn a_key_that_the_provider_echoes_is_redacted() {
    let echo = format!("bad key {KEY}: Bearer {KEY} does not exist");
    let script = || vec![answer(401, "", &echo)];
    let server = Server::start(vec![script(), script()]).await;
    let requests = [
        request(&server).with_headers(&Headers::new().with_bearer(&key())),
        request(&server).with_secret("x-api-key", &key()),
    ];
    for request in requests {
        let result = transport(&once()).post(&request, &StatusClassifier).await;
        let error = result.unwrap_err();
        let expected = "bad key [redacted]: Bearer [redacted] does not exist";
        assert_eq!(error.message(), expected);
        assert_hidden(&error);
    }
}

#[tokio::test]
async fn a_password_of_the_address_that_the_server_echoes_is_redacted() {
    let echo = "bad password hidden@0123, sent as hidden%400123";
    let server = Server::start(vec![vec![answer(401, "", echo)]]).await;
    let address = server.url.replace("//", "//me:hidden%400123@");
    let request = HttpRequest::new(address);
    let result = transport(&once()).post(&request, &StatusClassifier).await;
    let error = result.unwrap_err();
    let expected = "bad password [redacted], sent as [redacted]";
    assert_eq!(error.message(), expected);
    assert_hidden(&error);
}

#[tokio::test]
async fn the_beginning_of_a_key_at_the_cut_of_an_excerpt_is_redacted() {
    // No excerpt of a body contains a part of the key, wherever the excerpt ends.
    let scripts = (270..300).map(|before| vec![answer(400, "", &("x".repeat(before) + KEY))]);
    let server = Server::start(scripts.collect()).await;
    let request = request(&server).with_secret("x-api-key", &key());
    let transport = transport(&once());
    for _ in 270..300 {
        let result = transport.post(&request, &StatusClassifier).await;
        let error = result.unwrap_err();
        assert!(!error.message().contains("sk-"), "{error}");
    }
}

/// Classifier that writes the key into every field of its result.
struct EchoingClassifier;

impl ErrorClassifier for EchoingClassifier {
    fn classify_failure(&self, _: &HttpFailure<'_>) -> ClassifiedError {
        ClassifiedError {
            kind: ModelErrorKind::InvalidRequest {
                field: Some(format!("tools.{KEY}")),
            },
            message: format!("no {KEY}"),
            request_id: None,
        }
    }
}

#[tokio::test]
async fn a_key_in_the_result_of_a_classifier_is_redacted() {
    let server = Server::start(vec![vec![answer(400, "", "")]]).await;
    let request = request(&server).with_secret("x-api-key", &key());
    let result = transport(&once()).post(&request, &EchoingClassifier).await;
    let error = result.unwrap_err();
    assert_eq!(error.message(), "no [redacted]");
    assert_hidden(&error);
}

#[tokio::test]
async fn a_failed_connection_shows_no_secret() {
    let (url, _bound) = nobody();
    let url = url.replace("http://", "http://me:hidden-12345@");
    let request = HttpRequest::new(format!("{url}?key={KEY}")).with_secret("x-api-key", &key());
    let result = transport(&once()).post(&request, &StatusClassifier).await;
    let error = result.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Connection);
    let mut causes = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        causes.push(format!("{cause} {cause:?}"));
        next = cause.source();
    }
    assert!(causes.len() > 2, "{causes:?}");
    let shown = format!("{error} {error:?} {request:?} {causes:?}");
    assert!(!shown.contains("hidden"), "{shown}");
    assert!(shown.contains("127.0.0.1"), "{shown}");
}

/// Writer that stores log lines.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    fn text(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&lines).into_owned()
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn the_trace_log_contains_every_attempt_and_no_key() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    // The subscriber is set for all threads, because a thread without a subscriber can disable
    // events for all. The log therefore also contains lines of other tests, which use the same key.
    tracing::subscriber::set_global_default(subscriber).unwrap();

    let echo = format!("no {KEY}");
    let server = Server::start(vec![
        vec![answer(503, "", &echo)],
        vec![answer(200, "", "fine")],
    ])
    .await;
    let url = server.url.replace("http://", "http://me:hidden-12345@");
    let request = HttpRequest::new(format!("{url}?key={KEY}"))
        .with_secret("x-api-key", &key())
        .with_json(format!("{{\"prompt\":\"{KEY}\"}}"));
    let transport = transport(&config());
    transport.post(&request, &StatusClassifier).await.unwrap();
    tracing::debug!(?transport, ?request, "what they print");

    let log = lines.text();
    assert!(!log.contains("hidden"), "{log}");
    for part in [
        "attempt=1",
        "status=503",
        "attempt=2",
        "status=200",
        &server.url,
    ] {
        assert!(log.contains(part), "`{part}` is missing: {log}");
    }
}

#[tokio::test]
async fn a_key_in_an_error_of_a_successful_answer_is_redacted() {
    let server = Server::start(vec![vec![answer(200, "x-request-id: req-1\r\n", "hello")]]).await;
    let request = request(&server).with_headers(&Headers::new().with_bearer(&key()));
    let answer = transport(&once()).post(&request, &StatusClassifier).await;
    let context = answer.unwrap().error_context();
    let applied = |error: ModelError| {
        let error = context.add_context_to_error(error);
        let shown = format!("{error:?} {:?}", error.source().map(ToString::to_string));
        assert!(!shown.contains("hidden"), "{shown}");
        error
    };
    let protocol = |message: &str| ModelError::new("acme", ModelErrorKind::Protocol, message);

    let error = applied(protocol(&format!("wrong key {KEY}")));
    assert_eq!(error.message(), "wrong key [redacted]");
    let expected = (Some(200), Some("req-1"));
    assert_eq!((error.http_status(), error.request_id()), expected);
    let error = applied(protocol("unreadable: sk-hidden-01…"));
    assert_eq!(error.message(), "unreadable: [redacted]…");
    let error = applied(protocol("unreadable").with_source(format!("unknown field `{KEY}`")));
    let cause = error.source().map(ToString::to_string);
    assert_eq!(cause.as_deref(), Some("unknown field `[redacted]`"));

    // A status or request id that the error already has is not replaced.
    let own = protocol("x").with_request_id(Some("own".to_owned()));
    let error = applied(own);
    let expected = (Some(200), Some("own"));
    assert_eq!((error.http_status(), error.request_id()), expected);
    let error = applied(protocol("x").with_status(503));
    assert_eq!((error.http_status(), error.request_id()), (Some(503), None));
    assert!(!format!("{context:?}").contains("hidden"));
}
