//! Limits and time-outs of open connections and requests.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_testkit::fake::{Answer, FakeModel, Gate, Say};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
};

use crate::{
    serving::{ANN, BOB, MODEL, Serving, no_servers, place, says},
    support::Place,
};

/// Opens a connection with a small receive buffer.
pub(crate) async fn connect(server: &Serving) -> TcpStream {
    let address = server.base.trim_start_matches("http://");
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4 << 10).unwrap();
    socket.connect(address.parse().unwrap()).await.unwrap()
}

/// Opens a request and reads only the status of its response.
async fn open(server: &Serving, path: &str) -> (TcpStream, u16) {
    let mut stream = connect(server).await;
    let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\naccept-encoding: gzip\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut line = [0; "HTTP/1.1 200".len()];
    stream.read_exact(&mut line).await.unwrap();
    let status = std::str::from_utf8(&line[9..]).unwrap().parse().unwrap();
    (stream, status)
}

/// Sends bytes. Returns the status and the whole response.
pub(crate) async fn send_raw(server: &Serving, bytes: &str) -> (u16, String) {
    let mut stream = connect(server).await;
    // A refused request may be cut while we still write or read.
    let _ = stream.write_all(bytes.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).unwrap();
    (answer[9..12].parse().unwrap(), answer)
}

/// Posts JSON and returns the response.
async fn post(server: &Serving, path: &str, body: &Value) -> Value {
    let (_, answer) = send_raw(server, &posting(path, body, "close")).await;
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap()
}

fn posting(path: &str, body: &Value, connection: &str) -> String {
    let body = body.to_string();
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: {connection}\r\ncontent-type: \
         application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Returns a metric. The request uses a separate connection, which counts too.
async fn gauge(server: &Serving, name: &str) -> u64 {
    let asked = "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let (status, output) = send_raw(server, asked).await;
    assert_eq!(status, 200, "{output}");
    let mut lines = output.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap().parse().unwrap()
}

/// Waits until the metric has this value.
async fn until(server: &Serving, name: &str, wanted: u64) {
    let waiting = async {
        while gauge(server, name).await != wanted {
            tokio::task::yield_now().await;
        }
    };
    let done = tokio::time::timeout(Duration::from_secs(30), waiting).await;
    // The last value is for the message.
    assert!(
        done.is_ok(),
        "{name} is {}, not {wanted}",
        gauge(server, name).await
    );
}

const REQUESTS: &str = "switchboard_http_requests_open";
const CONNECTIONS: &str = "switchboard_http_connections_open";

/// One client requests a large file and reads nothing, another follows a session and reads
/// no events: both lose their connection and their request permit.
#[tokio::test]
async fn a_client_that_reads_nothing_is_disconnected() {
    const WORDS: usize = 2_000;
    let fake = FakeModel::start().await.unwrap();
    let word = "x".repeat(1_000);
    fake.answer(Answer::openai_chat(
        (0..WORDS).map(|n| Say::text(format!("{n} {word}\n"))),
    ));
    let mut config = no_servers();
    config["serve"] = json!({"write_time": 0.3});
    let server = Serving::start_owned(place(&fake, &config), &[]).await;
    let session = post(&server, "/sessions", &json!({})).await["id"].clone();
    let events = format!("/sessions/{}/events", session.as_str().unwrap());
    let (mut file, status) = open(&server, "/assets/vendor/mermaid.js").await;
    assert_eq!(status, 200);
    let (mut follower, status) = open(&server, &events).await;
    assert_eq!(status, 200);
    let asked = json!({"message": "Count.", "session_id": session, "background": true});
    post(&server, "/chat", &asked).await;
    until(&server, "switchboard_runs_total{outcome=\"completed\"}", 1).await;
    // Only the request for the metrics is left.
    until(&server, REQUESTS, 1).await;
    until(&server, CONNECTIONS, 1).await;
    for stream in [&mut file, &mut follower] {
        let mut rest = Vec::new();
        let ended = stream.read_to_end(&mut rest).await;
        assert!(
            ended.is_err() && rest.len() < 700_000,
            "it is no proper end: {ended:?} after {} bytes",
            rest.len()
        );
    }
}

#[tokio::test]
async fn open_connections_and_requests_are_counted() {
    let fake = FakeModel::start().await.unwrap();
    let gate = Gate::new();
    fake.answer(says("late").held_by(&gate));
    let server = Serving::start_owned(place(&fake, &no_servers()), &[]).await;
    let session = post(&server, "/sessions", &json!({})).await["id"].clone();
    let path = format!("/sessions/{}/events", session.as_str().unwrap());
    until(&server, REQUESTS, 1).await;
    until(&server, CONNECTIONS, 1).await;
    let mut streams = Vec::new();
    for _ in 0..3 {
        streams.push(open(&server, &path).await.0);
    }
    until(&server, REQUESTS, 4).await;
    until(&server, CONNECTIONS, 4).await;
    // A client that disconnects before its response starts.
    let asked = json!({"message": "Hi", "session_id": session});
    let mut vanishing = connect(&server).await;
    let bytes = posting("/chat", &asked, "keep-alive");
    vanishing.write_all(bytes.as_bytes()).await.unwrap();
    until(&server, REQUESTS, 5).await;
    drop((streams, vanishing));
    until(&server, REQUESTS, 1).await;
    until(&server, CONNECTIONS, 1).await;
    gate.open();
}

#[tokio::test]
async fn a_full_server_accepts_probes_and_approval_decisions() {
    let fake = FakeModel::start().await.unwrap();
    let gate = Gate::new();
    fake.answer(says("late").held_by(&gate));
    let mut config = no_servers();
    config["serve"] = json!({"max_requests": 2});
    let server = Serving::start_owned(place(&fake, &config), &[]).await;
    let (run, _) = server.begin(json!({"message": "Hi"})).await;
    let path = format!("/runs/{run}/events");
    let mut follower = server.follow(&path).await;
    let (_other, _) = open(&server, &path).await;
    for closed in [&path, "/sessions", "/", "/models"] {
        let refused = server.get(closed).await;
        assert_eq!(refused.problem(503), "unavailable", "{closed}");
        assert!(!refused.header("retry-after").is_empty(), "{refused:?}");
    }
    for probe in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(server.get(probe).await.status, 200, "{probe}");
    }
    server.cancel(&run).await;
    let end = follower.rest().await;
    assert_eq!(end.last().unwrap().data["report"]["outcome"], "cancelled");
}

#[tokio::test]
async fn one_principal_cannot_block_others() {
    let fake = FakeModel::start().await.unwrap();
    let gate = Gate::new();
    fake.answer(says("late").held_by(&gate));
    let mut config = no_servers();
    config["serve"] = json!({
        "max_requests_each": 2,
        "tokens": [{"token": ANN, "user": "ann"}, {"token": BOB, "user": "bob"}],
    });
    let server = Serving::start_owned(place(&fake, &config), &[])
        .await
        .with_token(ANN);
    let (run, _) = server.begin(json!({"message": "Hi"})).await;
    let path = format!("/runs/{run}/events");
    let mut follower = server.follow(&path).await;
    let other = server.follow(&path).await;
    let refused = server.get(&path).await;
    assert_eq!(refused.problem(429), "too-many");
    assert!(!refused.header("retry-after").is_empty(), "{refused:?}");
    let refused = server.post("/chat", &json!({"message": "Hi"})).await;
    assert_eq!(refused.problem(429), "too-many");
    // Each dialect gets the error in its own format.
    let answered = server.get("/v1/models").await;
    assert_eq!(answered.status, 429, "{answered:?}");
    assert!(answered.json()["error"].is_object(), "{answered:?}");
    // The page and the probes belong to no principal.
    for open in ["/", "/assets/app.css", "/healthz", "/metrics"] {
        assert_ne!(server.get(open).await.status, 429, "{open}");
    }
    let server = server.with_token(BOB);
    assert_eq!(server.get("/sessions").await.status, 200);
    // Each closed stream releases a permit, and requests that end streams are accepted.
    let server = server.with_token(ANN);
    drop(other);
    while server.get("/sessions").await.status == 429 {
        tokio::task::yield_now().await;
    }
    let _again = server.follow(&path).await;
    server.cancel(&run).await;
    follower.rest().await;
}

#[tokio::test]
async fn the_head_of_a_request_is_limited() {
    let server = Serving::start_owned(Place::new(), &["--no-tools"]).await;
    let head = |target: &str, headers: &str| {
        format!("GET {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n")
    };
    let most = 32 << 10;
    let fits = |length: usize| head("/healthz", &format!("x: {}\r\n", "y".repeat(length)));
    // The limit is exact to the byte, for one large header and for many small headers.
    let rest = most - fits(0).len();
    assert_eq!(send_raw(&server, &fits(rest)).await.0, 200);
    for (what, asked) in [
        ("one byte more", fits(rest + 1)),
        ("one large one", fits(40_000)),
        (
            "many",
            head(
                "/healthz",
                &format!("x: {}\r\n", "y".repeat(993)).repeat(40),
            ),
        ),
        (
            "an address",
            head(&format!("/healthz?{}", "y".repeat(40_000)), ""),
        ),
    ] {
        let (status, answer) = send_raw(&server, &asked).await;
        assert_eq!(status, 431, "{what}: {answer}");
    }
}

#[tokio::test]
async fn host_and_origin_must_be_single_and_valid() {
    let server = Serving::start_owned(Place::new(), &["--no-tools"]).await;
    let own = server.base.trim_start_matches("http://");
    let port = own.rsplit_once(':').unwrap().1;
    for (headers, expected) in [
        (format!("host: {own}\r\norigin: http://{own}\r\n"), 200),
        (
            format!("host: {own}\r\norigin: http://{own}\r\norigin: http://{own}\r\n"),
            400,
        ),
        (
            format!("host: {own}\r\norigin: http://{own}\r\norigin: https://evil.example\r\n"),
            400,
        ),
        (format!("host: {own}\r\norigin: http://evil@{own}\r\n"), 403),
        ("host: localhost:99999\r\n".to_owned(), 400),
        (format!("host: [::1]:{port}\r\n"), 200),
    ] {
        let asked = format!("GET /sessions HTTP/1.1\r\nconnection: close\r\n{headers}\r\n");
        let (status, answer) = send_raw(&server, &asked).await;
        assert_eq!(status, expected, "{headers}: {answer}");
    }
    let asked = format!(
        "GET http://evil@{own}/sessions HTTP/1.1\r\nhost: {own}\r\nconnection: close\r\n\r\n"
    );
    assert_eq!(send_raw(&server, &asked).await.0, 400);
}

#[tokio::test]
async fn unknown_model_names_are_not_metric_labels() {
    let fake = FakeModel::start().await.unwrap();
    let unknown =
        json!({"error": {"message": "there is no such model", "code": "model_not_found"}});
    fake.answer(Answer::json(404, &unknown));
    fake.answer(Answer::json(401, &unknown));
    fake.answer(says("Hi."));
    let server = Serving::start_owned(place(&fake, &no_servers()), &[]).await;
    let ask = |model: &str| json!({"message": "Hi", "model": model});
    for model in [
        "x".repeat(257),
        format!("openai/{}", "x".repeat(250)),
        "openai/a\nb".to_owned(),
    ] {
        let refused = server.post("/chat", &ask(&model)).await;
        assert_eq!(refused.problem(422), "invalid");
        assert_eq!(refused.json()["field"], "model", "{refused:?}");
        let messages = json!([{"role": "user", "content": "Hi"}]);
        let asked = json!({"model": model, "messages": messages});
        let refused = server.post("/v1/chat/completions", &asked).await;
        assert!([400, 404, 422].contains(&refused.status), "{refused:?}");
    }
    assert_eq!(fake.requests().len(), 0, "nobody was asked");
    let asked = ask("openai/made-up-by-somebody");
    let report = server.post("/chat", &asked).await;
    assert_eq!(report.expect(200)["outcome"], "failed");
    // A failed request to a configured model is counted under the name of the model.
    let report = server.post("/chat", &ask(MODEL)).await;
    assert_eq!(report.expect(200)["outcome"], "failed");
    let asked = ask("openai/made-up-and-answers");
    let report = server.post("/chat", &asked).await;
    assert_eq!(report.expect(200)["outcome"], "completed");
    let output = server.get("/metrics").await.text;
    assert!(!output.contains("by-somebody"), "{output}");
    // A refusal in another dialect is counted for its route.
    let refused = r#"{method="POST",route="/v1/chat/completions",status="4"#;
    assert!(output.contains(refused), "{output}");
    for counted in [
        r#"{provider="(other)",model="(other)",result="failed"} 1"#,
        r#"{provider="openai",model="gpt-4o-mini",result="failed"} 1"#,
        r#"{provider="openai",model="made-up-and-answers",result="successful"} 1"#,
    ] {
        let line = format!("switchboard_model_requests_total{counted}");
        assert!(output.contains(&line), "{line}: {output}");
    }
}

#[tokio::test]
async fn only_ui_resources_are_served_as_pages() {
    let server = Serving::start_owned(Place::new(), &["--no-tools"]).await;
    for uri in ["file:///etc/passwd", "ui:x", ""] {
        // None of these characters has a special meaning in the query of a URL.
        let path = format!("/mcp/apps/page?server=any&uri={uri}");
        let answered = server.get(&path).await;
        assert_eq!(answered.problem(404), "not-found");
        let detail = answered.json()["detail"].clone();
        let is_said = |detail: &Value| detail.as_str().unwrap().contains("ui://");
        assert!(is_said(&detail), "{detail}");
    }
}
