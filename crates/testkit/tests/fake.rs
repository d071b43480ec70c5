//! The fake model server, tested with a client that reads single bytes.

use std::io;

use serde_json::json;
use switchboard_testkit::fake::{Answer, FakeModel, Gate, Say};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// A connection to the fake server.
struct Client {
    stream: TcpStream,
    received: String,
}

impl Client {
    async fn connect(fake: &FakeModel) -> io::Result<Self> {
        let base = fake.base_url();
        let address = base.strip_prefix("http://").unwrap_or_default();
        Ok(Self {
            stream: TcpStream::connect(address).await?,
            received: String::new(),
        })
    }

    /// Connects and sends a request.
    async fn ask(fake: &FakeModel, path: &str, body: &str) -> io::Result<Self> {
        let mut client = Self::connect(fake).await?;
        client.send(path, body).await?;
        Ok(client)
    }

    async fn send(&mut self, path: &str, body: &str) -> io::Result<()> {
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: fake\r\nX-Api-Key: sk-secret\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await
    }

    /// Reads until `what` has arrived. Returns everything that arrived since the last call.
    async fn until(&mut self, what: &str) -> io::Result<String> {
        while !self.received.contains(what) {
            let mut piece = [0; 4096];
            let count = self.stream.read(&mut piece).await?;
            if count == 0 {
                let message = format!("ended without {what:?}: {:?}", self.received);
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
            }
            self.received
                .push_str(&String::from_utf8_lossy(&piece[..count]));
        }
        Ok(std::mem::take(&mut self.received))
    }

    /// Reads to the end of a chunked answer.
    async fn whole(&mut self) -> io::Result<String> {
        self.until("\r\n0\r\n\r\n").await
    }
}

#[tokio::test]
async fn answers_are_given_in_order_and_requests_are_kept() {
    let fake = FakeModel::start().await.unwrap();
    fake.answer(Answer::json(429, &json!({"error": "slow down"})).header("retry-after", "7"));
    fake.answer(Answer::sse("data: hi\n\n"));
    assert_eq!(fake.unused(), 2);

    let mut client = Client::ask(&fake, "/v1/messages?beta=true", r#"{"a":1}"#)
        .await
        .unwrap();
    let first = client.whole().await.unwrap();
    assert!(first.starts_with("HTTP/1.1 429 "), "{first}");
    assert!(first.contains("retry-after: 7\r\n"), "{first}");
    assert!(
        first.contains("content-type: application/json\r\n"),
        "{first}"
    );
    assert!(first.contains(r#"{"error":"slow down"}"#), "{first}");

    // The second request uses the same connection, as a client with a connection pool does.
    client.send("/other", "no json").await.unwrap();
    let second = client.whole().await.unwrap();
    assert!(second.starts_with("HTTP/1.1 200 "), "{second}");
    assert!(second.contains("text/event-stream"), "{second}");
    assert!(second.contains("data: hi\n\n"), "{second}");

    let requests = fake.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].method(), "POST");
    assert_eq!(requests[0].path(), "/v1/messages");
    assert_eq!(requests[0].query(), Some("beta=true"));
    assert_eq!(requests[0].header("X-API-key"), Some("sk-secret"));
    assert_eq!(requests[0].json(), &json!({"a": 1}));
    assert_eq!(requests[1].body(), b"no json");
    assert!(requests[1].json().is_null());
    requests[1].answered().await;
    assert!(!requests[0].is_client_gone() && !requests[1].is_client_gone());
    assert_eq!(fake.unused(), 0);
}

#[tokio::test]
async fn a_gate_keeps_the_rest_back_until_it_is_opened() {
    let fake = FakeModel::start().await.unwrap();
    let (held, between) = (Gate::new(), Gate::new());
    let answer = Answer::new(200)
        .held_by(&held)
        .piece("one")
        .gate(&between)
        .piece("two");
    fake.answer(answer);
    let mut client = Client::ask(&fake, "/", "{}").await.unwrap();

    held.reached().await;
    let mut nothing = [0; 1];
    assert!(
        client.stream.try_read(&mut nothing).is_err(),
        "not even a status has come"
    );
    held.open();
    let begin = client.until("one").await.unwrap();
    assert!(!begin.contains("two"), "{begin}");
    between.reached().await;
    between.open();
    assert!(client.whole().await.unwrap().contains("two"));
}

#[tokio::test]
async fn a_gate_fits_into_an_answer_that_is_already_made() {
    let gate = Gate::new();
    let answer = Answer::openai_chat([Say::text("one"), Say::text("two")]);
    // The pieces are the role, two texts, the finish reason, the usage and `[DONE]`.
    assert_eq!(answer.pieces(), 6);
    let fake = FakeModel::start().await.unwrap();
    fake.answer(answer.gate_before(2, &gate));
    fake.answer(Answer::new(200).piece("all").gate_before(9, &gate));
    let mut client = Client::ask(&fake, "/", "{}").await.unwrap();
    let begin = client.until("one").await.unwrap();
    gate.reached().await;
    assert!(!begin.contains("two"), "{begin}");
    gate.open();
    assert!(client.whole().await.unwrap().contains("two"));
    // The gate was opened before, so it stays open for this answer.
    client.send("/", "{}").await.unwrap();
    assert!(client.whole().await.unwrap().contains("all"));
}

#[tokio::test]
async fn a_client_that_leaves_is_noticed_in_the_middle_and_before_the_status() {
    let fake = FakeModel::start().await.unwrap();
    let gate = Gate::new();
    fake.answer(Answer::new(200).piece("one").gate(&gate).piece("two"));
    fake.answer(Answer::new(200).held_by(&gate));

    let mut client = Client::ask(&fake, "/", "{}").await.unwrap();
    client.until("one").await.unwrap();
    let request = fake.request(0).await;
    assert!(!request.is_client_gone());
    drop(client);
    request.client_gone().await;

    let client = Client::ask(&fake, "/", "{}").await.unwrap();
    gate.reached().await;
    let request = fake.request(1).await;
    assert!(!request.is_client_gone());
    drop(client);
    request.client_gone().await;
    assert!(request.is_client_gone());
}

#[tokio::test]
async fn a_break_comes_after_all_pieces_and_without_an_end() {
    let fake = FakeModel::start().await.unwrap();
    let answer = Answer::new(200).piece("one").piece("two").break_off();
    fake.answer(answer.piece("never"));
    let mut client = Client::ask(&fake, "/", "{}").await.unwrap();
    let error = client.whole().await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    let message = error.to_string();
    assert!(
        message.contains("one") && message.contains("two"),
        "{message}"
    );
    assert!(!message.contains("never"), "{message}");
    let request = fake.request(0).await;
    request.answered().await;
    assert!(!request.is_client_gone());
}

#[tokio::test]
async fn a_request_without_a_scripted_answer_is_refused_or_gets_the_fallback() {
    let fake = FakeModel::start().await.unwrap();
    let mut client = Client::ask(&fake, "/v1/x", "{}").await.unwrap();
    let refused = client.whole().await.unwrap();
    assert!(refused.starts_with("HTTP/1.1 400 "), "{refused}");
    assert!(
        refused.contains("no answer is scripted for request 0, POST /v1/x"),
        "{refused}"
    );

    fake.otherwise(|number, request| {
        Answer::json(200, &json!({"number": number, "got": request.json()}))
    });
    fake.answer(Answer::new(204));
    client.send("/", "{}").await.unwrap();
    let queued = client.until("\r\n\r\n").await.unwrap();
    assert!(queued.starts_with("HTTP/1.1 204 "), "{queued}");
    client.send("/", r#"["x"]"#).await.unwrap();
    let made = client.whole().await.unwrap();
    assert!(made.contains(r#"{"number":2,"got":["x"]}"#), "{made}");
}

#[tokio::test]
async fn a_script_that_is_no_http_says_so() {
    let fake = FakeModel::start().await.unwrap();
    fake.answer(Answer::new(200).header("no header", "x"));
    let mut client = Client::ask(&fake, "/", "{}").await.unwrap();
    let answer = client.until("fake model: ").await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
}

#[tokio::test]
async fn waiting_for_a_request_ends_when_it_arrives() {
    let fake = FakeModel::start().await.unwrap();
    fake.otherwise(|_, _| Answer::new(200));
    let (second, clients) = tokio::join!(fake.request(1), async {
        let first = Client::ask(&fake, "/first", "{}").await?;
        fake.request(0).await;
        let second = Client::ask(&fake, "/second", "{}").await?;
        io::Result::Ok([first, second])
    });
    assert_eq!(second.path(), "/second");
    assert_eq!(clients.unwrap().len(), 2);
}

#[tokio::test]
async fn dropping_the_server_cancels_pending_requests() {
    let fake = FakeModel::start().await.unwrap();
    let gate = Gate::new();
    fake.answer(Answer::new(200).piece("one").gate(&gate));
    fake.answer(Answer::new(200).held_by(&gate));
    let mut streaming = Client::ask(&fake, "/", "{}").await.unwrap();
    streaming.until("one").await.unwrap();
    gate.reached().await;
    let mut held = Client::ask(&fake, "/", "{}").await.unwrap();
    let request = fake.request(1).await;
    drop(fake);
    for client in [&mut streaming, &mut held] {
        let error = client.whole().await.unwrap_err();
        assert!(
            matches!(
                error.kind(),
                io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset
            ),
            "{error}"
        );
    }
    assert!(!request.is_client_gone(), "it was us");
}

#[tokio::test]
async fn keys_are_not_printed() {
    let fake = FakeModel::start().await.unwrap();
    let mut client = Client::ask(&fake, "/", r#"{"seen":true}"#).await.unwrap();
    client.whole().await.unwrap();
    let printed = format!("{fake:?} {:?}", fake.request(0).await);
    assert!(printed.contains("seen"), "{printed}");
    assert!(!printed.contains("sk-secret"), "{printed}");
}

#[tokio::test]
async fn a_transcript_is_served_under_its_media_type() {
    let fake = FakeModel::start().await.unwrap();
    for (path, media_type) in [
        ("openai-chat/text.sse", "text/event-stream"),
        ("openai-chat/text.json", "application/json"),
    ] {
        fake.answer(Answer::transcript(path).unwrap());
        let mut client = Client::ask(&fake, "/", "{}").await.unwrap();
        let answer = client.whole().await.unwrap();
        assert!(answer.contains(media_type), "{answer}");
        assert!(answer.contains("Grüße"), "{answer}");
    }
    let missing = Answer::transcript("openai-chat/none.sse").unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
}
