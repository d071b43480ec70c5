//! Requests that a server refuses before it looks at them, over real HTTP/2 on loopback.

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

/// How a server turns a request away.
#[derive(Clone, Copy)]
enum Turned {
    /// Its stream is reset.
    Away(Reason),
    /// The same behind the head of an answer.
    AwayInMid(Reason),
}

/// Turns the first requests away and answers those after them; counts them all.
async fn server(first: usize, turned: Turned) -> (String, Arc<AtomicUsize>) {
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
                        match turned {
                            Turned::Away(reason) => respond.send_reset(reason),
                            Turned::AwayInMid(reason) => {
                                let mut body = respond.send_response(head, false).unwrap();
                                // A reset takes the place of what is not written yet.
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

/// Reads the request of a connection, as frames (RFC 9113, section 4.1), and says farewell as if it
/// had not come.
async fn farewell(stream: &mut TcpStream) {
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
    // SETTINGS without any, then GOAWAY: no stream was looked at, no error.
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let go_away = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    stream.write_all(&settings).await.unwrap();
    stream.write_all(&go_away).await.unwrap();
}

/// What comes of a POST that is sent once as far as its policy goes.
async fn asked(address: &str) -> Result<HttpAnswer, ModelError> {
    let config = TransportConfig {
        retry: RetryPolicy::never_retry(),
        ..TransportConfig::default()
    };
    let mut transport = HttpTransport::new("acme", &config).unwrap();
    // Without TLS nobody agrees on HTTP/2; all else is as it is made for a provider.
    let builder = client_builder(&config).http2_prior_knowledge();
    transport.client = builder.build().unwrap();
    let request = HttpRequest::new(address).with_json("{}");
    transport.post(&request, &StatusClassifier).await
}

#[tokio::test]
async fn a_refused_stream_is_repeated_without_pause() {
    let (address, count) = server(2, Turned::Away(Reason::REFUSED_STREAM)).await;
    let answer = asked(&address).await.unwrap();
    assert_eq!(answer.first_body_bytes().as_ref(), b"{}");
    assert_eq!(count.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_request_after_goaway_is_repeated_without_pause() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let asking = asked(&address);
    let answering = async {
        let (mut first, _) = listener.accept().await.unwrap();
        farewell(&mut first).await;
        let (second, _) = listener.accept().await.unwrap();
        let mut connection = h2::server::handshake(second).await.unwrap();
        let (_request, mut respond) = connection.accept().await.unwrap().unwrap();
        let head = Response::builder().header("content-type", "application/json");
        let mut body = respond
            .send_response(head.body(()).unwrap(), false)
            .unwrap();
        body.send_data(Bytes::from_static(b"{}"), true).unwrap();
        // It is sent while the connection is waited on.
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
    for (first, turned, asked_for) in [
        (9, Turned::Away(Reason::REFUSED_STREAM), 3),
        (1, Turned::Away(Reason::INTERNAL_ERROR), 1),
        // Whatever it says: it has begun to answer.
        (1, Turned::AwayInMid(Reason::REFUSED_STREAM), 1),
    ] {
        let (address, count) = server(first, turned).await;
        let error = asked(&address).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Connection);
        assert_eq!(count.load(Ordering::SeqCst), asked_for);
    }
}
