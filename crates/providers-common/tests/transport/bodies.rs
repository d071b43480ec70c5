//! Tests of sent requests and of successful answers.

use futures_util::StreamExt as _;
use switchboard_domain::ModelErrorKind;
use switchboard_providers_common::{Headers, HttpRequest, StatusClassifier, read_to_end};

use crate::{
    ask, ask_for_text, config, once, request,
    server::{Act, Server, answer, chunk, opening, send},
    text, transport,
};

#[tokio::test]
async fn a_request_is_sent_unchanged() {
    let server = Server::start(vec![vec![answer(200, "x-request-id: req_9\r\n", "fine")]]).await;
    let key = secrecy::SecretString::from("sk-1\n");
    let headers = Headers::new()
        .with_header("x-version", "2")
        .with_bearer(&key);
    let request = request(&server)
        .with_headers(&headers)
        .expect_media_types(&["text/event-stream", "application/json"]);
    let answer = transport(&once())
        .post(&request, &StatusClassifier)
        .await
        .unwrap();
    assert_eq!(answer.status, 200);
    assert_eq!(answer.request_id.as_deref(), Some("req_9"));
    assert_eq!(text(answer).await.unwrap(), "fine");

    let seen = server.seen().remove(0);
    assert!(seen.head.starts_with("POST /v1/messages HTTP/1.1\r\n"));
    assert_eq!(seen.body, "{\"q\":1}");
    let table = [
        ("content-type", Some("application/json")),
        ("x-version", Some("2")),
        ("authorization", Some("Bearer sk-1")),
        ("accept", Some("text/event-stream, application/json")),
        // No compression is requested, so the client need not decompress bodies.
        ("accept-encoding", None),
    ];
    for (name, value) in table {
        assert_eq!(seen.header(name), value, "{name}");
    }
    assert!(
        seen.header("user-agent")
            .unwrap()
            .starts_with("switchboard/")
    );
}

#[tokio::test]
async fn the_beginning_of_a_body_shows_its_form() {
    let table = [
        ("text/event-stream", "data: {}\n\n", false),
        ("application/json", ": waiting\n\n", false),
        ("text/event-stream", "\n {\"choices\":[]}", true),
        ("text/plain", "[{\"error\":1}]", true),
        ("text/plain", "\u{feff}{}", true),
        ("application/json", "\r\n\n", true),
        ("Application/Problem+JSON; charset=utf-8", " ", true),
        ("application/jsonl", "\n", false),
        ("text/event-stream", "\r\n\n", false),
        ("application/json", "", true),
    ];
    for (media_type, body, whole) in table {
        let header = format!("content-type: {media_type}\r\n");
        let server = Server::start(vec![vec![answer(200, &header, body)]]).await;
        let answer = ask(&server, &once()).await.unwrap();
        assert_eq!(answer.is_json_document(), whole, "{media_type} {body:?}");
        assert_eq!(answer.first_body_bytes(), body);
        assert_eq!(text(answer).await.unwrap(), body, "it is still there");
    }
}

#[tokio::test]
async fn a_list_is_requested_by_get_with_its_query() {
    let server = Server::start(vec![vec![answer(200, "", "[]")]]).await;
    let request = HttpRequest::new(format!("{}?limit=5", server.url)).with_header("accept", "*/*");
    let request = request.expect_media_types(&["application/json"]);
    let answer = transport(&once())
        .get(&request, &StatusClassifier)
        .await
        .unwrap();
    assert_eq!(text(answer).await.unwrap(), "[]");
    let seen = server.seen().remove(0);
    assert!(
        seen.head
            .starts_with("GET /v1/messages?limit=5 HTTP/1.1\r\n")
    );
    assert_eq!(seen.header("accept"), Some("*/*"), "the caller's own wins");
    assert_eq!(seen.header("content-type"), None);
}

#[tokio::test]
async fn user_and_password_of_the_address_become_a_header() {
    let server = Server::start(vec![vec![answer(200, "", "")]]).await;
    let url = server.url.replace("http://", "http://me:open%20sesame@");
    transport(&once())
        .post(&HttpRequest::new(url), &StatusClassifier)
        .await
        .unwrap();
    let seen = server.seen().remove(0);
    // `printf 'me:open sesame' | base64`
    let expected = Some("Basic bWU6b3BlbiBzZXNhbWU=");
    assert_eq!(seen.header("authorization"), expected);
}

#[tokio::test]
async fn an_empty_successful_answer_is_accepted() {
    let server = Server::start(vec![
        vec![answer(200, "", "")],
        vec![send("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")],
        vec![opening(200), send("0\r\n\r\n")],
    ])
    .await;
    for _ in 0..3 {
        assert_eq!(ask_for_text(&server, &config()).await.unwrap(), "");
    }
    assert_eq!(server.seen().len(), 3);
}

#[tokio::test]
async fn two_requests_share_a_connection() {
    let reply = || send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    let server = Server::start(vec![vec![reply(), Act::Read, reply()]]).await;
    let transport = transport(&once());
    for client in [&transport, &transport.clone()] {
        let answer = client.post(&request(&server), &StatusClassifier).await;
        assert_eq!(text(answer.unwrap()).await.unwrap(), "ok");
    }
    assert_eq!(server.seen().len(), 2, "a second connection has no script");
}

#[tokio::test]
async fn a_body_longer_than_allowed_is_not_read_to_its_end() {
    let server = Server::start(vec![vec![
        opening(200),
        chunk("12345"),
        chunk("67890"),
        Act::Stall,
    ]]);
    let mut server = server.await;
    let answer = ask(&server, &once()).await.unwrap();
    let error = read_to_end("acme", answer.body, 9).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Protocol);
    server.closed().await;
}

#[tokio::test]
async fn dropping_a_request_aborts_it() {
    let mut server = Server::start(vec![vec![Act::Stall]]).await;
    let (transport, request) = (transport(&config()), request(&server));
    let asking = tokio::spawn(async move { transport.post(&request, &StatusClassifier).await });
    server.requested().await;
    asking.abort();
    server.closed().await;
    assert!(asking.await.unwrap_err().is_cancelled());
}

#[tokio::test]
async fn dropping_a_body_aborts_the_request() {
    let mut server = Server::start(vec![vec![opening(200), chunk("a"), Act::Stall]]).await;
    // The client stays alive after the request, as in an adapter.
    let transport = transport(&config());
    let answer = transport.post(&request(&server), &StatusClassifier).await;
    let mut body = answer.unwrap().body;
    assert_eq!(body.next().await.unwrap().unwrap(), "a");
    server.requested().await;
    drop(body);
    server.closed().await;
}
