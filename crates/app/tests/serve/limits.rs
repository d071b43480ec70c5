//! Requests that are too many, too large, too slow or malformed.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use reqwest::Method;
use serde_json::json;
use switchboard_testkit::fake::{FakeModel, Gate};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::oneshot,
};

use crate::{
    connections::{connect, send_raw},
    serving::{MODEL, Serving, no_servers, place, read, says},
    support::Place,
};

#[tokio::test]
async fn malformed_bodies_are_refused() {
    let server = Serving::start_owned(Place::new(), &["--no-tools"]).await;
    for (body, status, kind) in [
        ("", 400, "malformed"),
        ("{", 400, "malformed"),
        ("{\"message\": \"Hi\"} x", 400, "malformed"),
        ("\u{fffd}", 400, "malformed"),
        ("null", 422, "invalid"),
    ] {
        let answered = server.post_body("/chat", body).await;
        assert_eq!(answered.problem(status), kind, "{body}");
    }
    // Deep nesting overflows no stack and causes no time-out.
    let deep = format!("{{\"message\": {}", "[".repeat(200_000));
    let answered = server.post_body("/chat", deep).await;
    assert!([400, 422].contains(&answered.status), "{answered:?}");
    for (method, path) in [
        (Method::GET, "/chat"),
        (Method::PUT, "/sessions"),
        (Method::DELETE, "/runs/x"),
        (Method::POST, "/healthz"),
    ] {
        let answered = read(server.request(method.clone(), path).send().await.unwrap()).await;
        assert_eq!(answered.problem(405), "no-method", "{method} {path}");
        assert!(
            !answered.header("allow").is_empty(),
            "{method} {path}: {answered:?}"
        );
    }
    for path in [
        "/nowhere",
        "/sessions/",
        "/runs",
        "/sessions/%ff",
        "/sessions/%00",
        "/runs/%00/events",
    ] {
        assert_eq!(server.get(path).await.problem(404), "not-found", "{path}");
    }
    for path in ["/sessions?limit=0", "/sessions?limit=1001"] {
        assert_eq!(server.get(path).await.problem(422), "invalid", "{path}");
    }
    let refused = server.get("/sessions?limit=x").await;
    assert_eq!(refused.problem(400), "malformed");
    assert_eq!(send_raw(&server, "NONSENSE\r\n\r\n").await.0, 400);
    let without_host = "GET /sessions HTTP/1.1\r\nconnection: close\r\n\r\n";
    assert_eq!(send_raw(&server, without_host).await.0, 400);
    server.get("/healthz").await.expect(200);
}

#[tokio::test]
async fn bodies_above_the_limit_are_not_read() {
    let config = json!({"mcp_servers": {}, "serve": {"max_body": 1000}});
    let place = Place::new().with_file("switchboard.json", &config.to_string());
    let server = Serving::start(&place, &[]).await;
    let asked = json!({"message": "x".repeat(1000)});
    assert_eq!(server.post("/chat", &asked).await.problem(413), "too-large");
    // This request has no content length.
    let pieces =
        futures_util::stream::iter((0..3).map(|_| Ok::<_, std::io::Error>(vec![b' '; 500])));
    let body = reqwest::Body::wrap_stream(pieces);
    assert_eq!(
        server.post_body("/chat", body).await.problem(413),
        "too-large"
    );
    server.get("/healthz").await.expect(200);
}

#[tokio::test]
async fn runs_above_the_limit_are_refused() {
    for (serve, status, kind) in [
        (json!({"max_runs": 1}), 503, "unavailable"),
        (json!({"max_runs_each": 1}), 429, "too-many"),
    ] {
        let mut config = no_servers();
        config["serve"] = serve;
        let gate = Gate::new();
        let fake = FakeModel::start().await.unwrap();
        fake.answer(says("ok").held_by(&gate));
        fake.answer(says("ok"));
        let server = Serving::start_owned(place(&fake, &config), &[]).await;
        let (run, _) = server.begin(json!({"message": "Hi"})).await;
        let refused = server.post("/chat", &json!({"message": "Hi"})).await;
        assert_eq!(refused.problem(status), kind);
        assert!(!refused.header("retry-after").is_empty(), "{refused:?}");
        let sessions = server.get("/sessions").await.expect(200);
        assert_eq!(
            sessions["sessions"].as_array().unwrap().len(),
            1,
            "nothing is left of it"
        );
        let mut reader = server.follow_run(&run).await;
        gate.open();
        reader.rest().await;
        server
            .post("/chat", &json!({"message": "Hi"}))
            .await
            .expect(200);
    }
}

/// A header that arrives byte by byte times out.
#[tokio::test]
async fn an_endless_header_times_out() {
    let config = json!({"mcp_servers": {}, "serve": {"header_time": 0.2}});
    let place = Place::new().with_file("switchboard.json", &config.to_string());
    let server = Serving::start(&place, &[]).await;
    let answered = async {
        let mut stream = connect(&server).await;
        stream
            .write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\nx-slow: ")
            .await
            .unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
    };
    tokio::time::timeout(Duration::from_secs(20), answered)
        .await
        .expect("it is cut");
}

#[tokio::test]
async fn an_endless_body_times_out() {
    let config = json!({"mcp_servers": {}, "serve": {"body_time": 0.2}});
    let place = Place::new().with_file("switchboard.json", &config.to_string());
    let server = Serving::start(&place, &[]).await;
    let head = b"POST /chat HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{";
    let answered = async {
        let mut stream = connect(&server).await;
        stream.write_all(head).await.unwrap();
        let mut answer = vec![0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer, b"HTTP/1.1 408");
    };
    tokio::time::timeout(Duration::from_secs(20), answered)
        .await
        .expect("it is told");
}

#[tokio::test]
async fn an_endless_answer_ends_as_limited_and_its_connection_is_closed() {
    // Dropped with the body, when the client closes the connection.
    struct OnDrop(Option<oneshot::Sender<()>>);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            let _ = self.0.take().unwrap().send(());
        }
    }
    let chunk = json!({
        "id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": {"content": "word ".repeat(200)}, "finish_reason": null}],
    });
    let frame = format!("data: {chunk}\n\n");
    let (closed, is_closed) = oneshot::channel();
    let on_drop = Arc::new(Mutex::new(Some(OnDrop(Some(closed)))));
    let answer = move || {
        let (frame, on_drop) = (frame.clone(), on_drop.lock().unwrap().take());
        let frames = futures_util::stream::repeat_with(move || {
            let _ = &on_drop;
            Ok::<_, std::io::Error>(frame.clone())
        });
        let body = axum::body::Body::from_stream(frames);
        async move { ([("content-type", "text/event-stream")], body) }
    };
    let router = axum::Router::new().route("/v1/chat/completions", axum::routing::post(answer));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });

    let config = json!({
        "mcp_servers": {}, "model": MODEL, "limits": {"max_answer_bytes": 200_000},
    });
    let place = Place::new()
        .with_variable("OPENAI_API_KEY", "sk-secret")
        .with_variable("OPENAI_BASE_URL", &base)
        .with_file("switchboard.json", &config.to_string());
    let server = Serving::start_owned(place, &[]).await;
    let answered = server.post("/chat", &json!({"message": "Talk."})).await;
    let report = answered.expect(200);
    assert_eq!(report["outcome"], "limited");
    assert_eq!(report["error"]["kind"], "output_limit");
    let message = report["error"]["message"].as_str().unwrap();
    assert!(message.contains("`limits.max_answer_bytes`"), "{message}");
    let length = report["answer"].as_str().unwrap().len();
    assert!((190_000..=200_000).contains(&length), "{length}");
    is_closed.await.unwrap();
    let path = format!("/sessions/{}", report["session_id"].as_str().unwrap());
    server.get(&path).await.expect(200);
    task.abort();
}
