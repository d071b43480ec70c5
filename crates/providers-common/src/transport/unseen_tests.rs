//! Requests that a server refuses before it looks at them, over real HTTP/2 on loopback.

use std::sync::atomic::{AtomicUsize, Ordering};

use h2::Reason;
use http::Response;
use tokio::net::TcpListener;

use super::*;
use crate::StatusClassifier;

/// Resets the first streams with `reason` and answers those after them; counts them all.
async fn server(resets: usize, reason: Reason) -> (String, Arc<AtomicUsize>) {
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
                    if counted.fetch_add(1, Ordering::SeqCst) < resets {
                        respond.send_reset(reason);
                        continue;
                    }
                    let head = Response::builder().header("content-type", "application/json");
                    let mut body = respond
                        .send_response(head.body(()).unwrap(), false)
                        .unwrap();
                    body.send_data(Bytes::from_static(b"{}"), true).unwrap();
                }
            });
        }
    });
    (address, count)
}

/// What comes of a POST that is sent once as far as its policy goes.
async fn asked(address: &str) -> Result<HttpAnswer, ModelError> {
    let config = TransportConfig {
        retry: RetryPolicy::never(),
        ..TransportConfig::default()
    };
    let mut transport = HttpTransport::new("acme", &config).unwrap();
    // Without TLS nobody agrees on HTTP/2; all else is as it is made for a provider.
    let builder = builder(&config).http2_prior_knowledge();
    transport.client = builder.build().unwrap();
    let request = HttpRequest::new(address).with_json("{}");
    transport.post(&request, &StatusClassifier).await
}

#[tokio::test]
async fn a_request_that_was_not_looked_at_is_sent_again_at_once() {
    let (address, count) = server(2, Reason::REFUSED_STREAM).await;
    let answer = asked(&address).await.unwrap();
    assert_eq!(answer.beginning().as_ref(), b"{}");
    assert_eq!(count.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn not_for_ever_and_not_what_failed_otherwise() {
    for (resets, reason, asked_for) in [
        (9, Reason::REFUSED_STREAM, 3),
        (1, Reason::INTERNAL_ERROR, 1),
    ] {
        let (address, count) = server(resets, reason).await;
        let error = asked(&address).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Connection);
        assert_eq!(count.load(Ordering::SeqCst), asked_for);
    }
}
