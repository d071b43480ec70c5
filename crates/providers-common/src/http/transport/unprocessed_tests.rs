//! Requests that a server refuses without processing them, over HTTP/2 on the loopback interface.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt as _;
use h2::Reason;
use http::Response;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use super::*;
use crate::StatusClassifier;

/// How a server refuses a request.
#[derive(Clone, Copy)]
enum Refusal {
    /// The server resets the request's stream before an answer.
    BeforeAnswer(Reason),
    /// The server resets the stream after the headers of an answer.
    DuringAnswer(Reason),
}

/// Starts a server that refuses the `first` requests and answers the later ones. Returns its URL
/// and the counter of all requests.
async fn server(first: usize, refusal: Refusal) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let counted = Arc::clone(&counted);
            tokio::spawn(async move {
                let mut connection = h2::server::handshake(stream).await.unwrap();
                while let Some(Ok((_request, mut respond))) = connection.accept().await {
                    let head = Response::builder().header("content-type", "application/json");
                    let head = head.body(()).unwrap();
                    if counted.fetch_add(1, Ordering::SeqCst) < first {
                        match refusal {
                            Refusal::BeforeAnswer(reason) => respond.send_reset(reason),
                            Refusal::DuringAnswer(reason) => {
                                let mut body = respond.send_response(head, false).unwrap();
                                // This call writes the headers: a reset would discard headers that
                                // are not yet written.
                                assert!(connection.accept().now_or_never().is_none());
                                body.send_reset(reason);
                            }
                        }
                        continue;
                    }
                    let mut body = respond.send_response(head, false).unwrap();
                    body.send_data(Bytes::from_static(b"{}"), true).unwrap();
                }
            });
        }
    });
    (address, count)
}

/// Reads the frames of a request (RFC 9113, section 4.1), and answers with GOAWAY, which states
/// that the server processed no request.
async fn reject_with_goaway(stream: &mut TcpStream) {
    const HEADERS: u8 = 1;
    let mut preface = [0; 24];
    stream.read_exact(&mut preface).await.unwrap();
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.unwrap();
        let [a, b, c, kind, ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        stream.read_exact(&mut payload).await.unwrap();
        if kind == HEADERS {
            break;
        }
    }
    // An empty SETTINGS frame, and a GOAWAY frame with the last stream 0 and no error.
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let go_away = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    stream.write_all(&settings).await.unwrap();
    stream.write_all(&go_away).await.unwrap();
}

/// Sends a POST request with a retry policy that allows one attempt.
async fn post_without_retry(address: &str) -> Result<HttpAnswer, ModelError> {
    let config = TransportConfig {
        retry: RetryPolicy::never_retry(),
        ..TransportConfig::default()
    };
    let mut transport = HttpTransport::new("acme", &config).unwrap();
    // Without TLS, the client cannot negotiate HTTP/2, so this setting selects it.
    let builder = client_builder(&config).http2_prior_knowledge();
    transport.client = builder.build().unwrap();
    let request = HttpRequest::new(address).with_json("{}");
    transport.post(&request, &StatusClassifier).await
}

#[tokio::test]
async fn a_refused_stream_is_repeated_without_pause() {
    let (address, count) = server(2, Refusal::BeforeAnswer(Reason::REFUSED_STREAM)).await;
    let answer = post_without_retry(&address).await.unwrap();
    assert_eq!(answer.first_body_bytes().as_ref(), b"{}");
    assert_eq!(count.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_request_after_goaway_is_repeated_without_pause() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let asking = post_without_retry(&address);
    let answering = async {
        let (mut first, _) = listener.accept().await.unwrap();
        reject_with_goaway(&mut first).await;
        let (second, _) = listener.accept().await.unwrap();
        let mut connection = h2::server::handshake(second).await.unwrap();
        let (_request, mut respond) = connection.accept().await.unwrap().unwrap();
        let head = Response::builder().header("content-type", "application/json");
        let mut body = respond
            .send_response(head.body(()).unwrap(), false)
            .unwrap();
        body.send_data(Bytes::from_static(b"{}"), true).unwrap();
        // The answer is sent only while the connection is polled.
        while connection.accept().await.is_some() {}
    };
    let answer = tokio::select! {
        answer = asking => answer.unwrap(),
        () = answering => panic!("the client is gone without its answer"),
    };
    assert_eq!(answer.first_body_bytes().as_ref(), b"{}");
}

#[tokio::test]
async fn only_unprocessed_requests_are_repeated_a_limited_number_of_times() {
    for (first, refusal, expected_count) in [
        (9, Refusal::BeforeAnswer(Reason::REFUSED_STREAM), 3),
        (1, Refusal::BeforeAnswer(Reason::INTERNAL_ERROR), 1),
        // The server has begun to answer, so the request is not repeated.
        (1, Refusal::DuringAnswer(Reason::REFUSED_STREAM), 1),
    ] {
        let (address, count) = server(first, refusal).await;
        let error = post_without_retry(&address).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Connection);
        assert_eq!(count.load(Ordering::SeqCst), expected_count);
    }
}
