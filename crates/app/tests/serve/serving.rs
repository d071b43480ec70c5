//! A running server and an HTTP client.

use std::{pin::Pin, time::Duration};

use futures_util::{Stream, StreamExt as _};
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::{Value, json};
use switchboard_testkit::fake::{Answer, FakeModel, Say};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStderr},
};

use crate::{slow_server::SlowServer, support::Place};

/// The tokens of two users.
pub(crate) const ANN: &str = "ann-0123456789abcdef";
pub(crate) const BOB: &str = "bob-0123456789abcdef";

/// The scripted model.
pub(crate) const MODEL: &str = "openai/gpt-4o-mini";

/// A running server.
pub(crate) struct Serving {
    pub(crate) child: Child,
    pub(crate) base: String,
    client: Client,
    token: Option<String>,
    stderr: Lines<BufReader<ChildStderr>>,
    /// Its working folder, if the test has no other use for it.
    place: Option<Place>,
}

/// A response with its body.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
}

impl Answered {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }

    /// Checks the status and returns the body as JSON.
    pub(crate) fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        self.json()
    }

    /// Checks the status and returns the last segment of the problem type.
    pub(crate) fn problem(&self, status: u16) -> String {
        let body = self.expect(status);
        assert_eq!(
            self.header("content-type"),
            "application/problem+json",
            "{self:?}"
        );
        assert_eq!(body["status"], status, "{body}");
        for field in ["title", "detail"] {
            assert!(!body[field].as_str().unwrap().is_empty(), "{body}");
        }
        let kind = body["type"].as_str().unwrap();
        kind.strip_prefix("urn:switchboard:problem:")
            .unwrap()
            .to_owned()
    }
}

impl Serving {
    /// Starts the server on a free port and waits until it listens.
    pub(crate) async fn start(place: &Place, options: &[&str]) -> Self {
        let args = ["serve", "--bind", "127.0.0.1:0"];
        let mut child = place.start(args.iter().chain(options));
        let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = Vec::new();
        let base = loop {
            let Some(line) = stderr.next_line().await.unwrap() else {
                panic!("it ended: {said:?}");
            };
            if let Some(address) = line.strip_prefix("listening on ") {
                break address.to_owned();
            }
            said.push(line);
        };
        let client = Client::builder()
            .no_proxy()
            .timeout(Duration::from_mins(1))
            .build()
            .unwrap();
        Self {
            child,
            base,
            client,
            token: None,
            stderr,
            place: None,
        }
    }

    /// Starts the server and keeps its working folder.
    pub(crate) async fn start_owned(place: Place, options: &[&str]) -> Self {
        let mut serving = Self::start(&place, options).await;
        serving.place = Some(place);
        serving
    }

    /// Sends this token with all further requests.
    pub(crate) fn with_token(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.base));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answered {
        read(self.request(Method::GET, path).send().await.unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answered {
        read(self.posting(path, body).send().await.unwrap()).await
    }

    pub(crate) fn posting(&self, path: &str, body: &Value) -> RequestBuilder {
        self.posting_body(path, body.to_string())
    }

    fn posting_body(&self, path: &str, body: impl Into<reqwest::Body>) -> RequestBuilder {
        self.request(Method::POST, path)
            .header("content-type", "application/json")
            .body(body)
    }

    /// Posts a body that need not be JSON.
    pub(crate) async fn post_body(&self, path: &str, body: impl Into<reqwest::Body>) -> Answered {
        read(self.posting_body(path, body).send().await.unwrap()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answered {
        read(self.request(Method::DELETE, path).send().await.unwrap()).await
    }

    /// Starts a background run. Returns the ids of the run and its session.
    pub(crate) async fn begin(&self, body: Value) -> (String, String) {
        let mut body = body;
        body["background"] = json!(true);
        let begun = self.post("/chat", &body).await.expect(202);
        let id = |field: &str| begun[field].as_str().unwrap().to_owned();
        (id("run_id"), id("session_id"))
    }

    /// Opens a stream of events.
    pub(crate) async fn follow(&self, path: &str) -> Events {
        let response = self.request(Method::GET, path).send().await.unwrap();
        Events::of(response).await
    }

    /// Opens the stream of events of a run.
    pub(crate) async fn follow_run(&self, run: &str) -> Events {
        self.follow(&format!("/runs/{run}/events")).await
    }

    /// Waits for the end of a run and returns its report.
    pub(crate) async fn report(&self, run: &str) -> Value {
        let events = self.follow_run(run).await.rest().await;
        events.last().unwrap().data["report"].clone()
    }

    /// Cancels a run and returns its state.
    pub(crate) async fn cancel(&self, run: &str) -> Value {
        let path = format!("/runs/{run}/cancel");
        self.post(&path, &json!({})).await.expect(202)
    }

    /// Returns a stored session with its messages and runs.
    pub(crate) async fn session(&self, id: &str) -> Value {
        self.get(&format!("/sessions/{id}")).await.expect(200)
    }

    /// Returns the state of a run from `GET /runs/{id}`.
    pub(crate) async fn run(&self, id: &str) -> Value {
        self.get(&format!("/runs/{id}")).await.expect(200)
    }

    /// Kills the process.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Sends SIGTERM.
    #[cfg(unix)]
    pub(crate) fn terminate(&self) {
        let pid = i32::try_from(self.child.id().unwrap()).unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    /// Waits for the end of the process. Returns the exit code and standard error.
    pub(crate) async fn ended(mut self) -> (i32, String) {
        let mut said = String::new();
        while let Some(line) = self.stderr.next_line().await.unwrap() {
            said.push_str(&line);
            said.push('\n');
        }
        (self.child.wait().await.unwrap().code().unwrap(), said)
    }
}

pub(crate) async fn read(response: Response) -> Answered {
    Answered {
        status: response.status().as_u16(),
        headers: response.headers().clone(),
        text: response.text().await.unwrap(),
    }
}

/// A stream of server-sent events.
pub(crate) struct Events {
    bytes: Pin<Box<dyn Stream<Item = reqwest::Result<Vec<u8>>> + Send>>,
    rest: String,
    pub(crate) comments: usize,
}

/// A server-sent event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: u64,
    pub(crate) kind: String,
    pub(crate) data: Value,
}

impl Events {
    pub(crate) async fn of(response: Response) -> Self {
        let status = response.status();
        assert!(status == 200, "{:?}", read(response).await);
        let kind = response.headers()["content-type"].to_str().unwrap();
        assert!(kind.starts_with("text/event-stream"), "{kind}");
        Self {
            bytes: Box::pin(response.bytes_stream().map(|piece| piece.map(Vec::from))),
            rest: String::new(),
            comments: 0,
        }
    }

    /// Returns the next event, or `None` at the regular end.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            while let Some(end) = self.rest.find("\n\n") {
                let event = Event::read(&self.rest[..end]);
                self.rest.drain(..end + 2);
                match event {
                    Some(event) => return Some(event),
                    None => self.comments += 1,
                }
            }
            let Some(piece) = self.bytes.next().await else {
                assert_eq!(self.rest, "", "it broke off");
                return None;
            };
            // The stream is ASCII, so every piece is valid UTF-8.
            self.rest
                .push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
        }
    }

    /// Returns all events up to and including the first one of this type.
    pub(crate) async fn until(&mut self, kind: &str) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            let is_it = event.kind == kind;
            events.push(event);
            if is_it {
                return events;
            }
        }
        panic!("no {kind}: {events:#?}");
    }

    /// Returns all remaining events.
    pub(crate) async fn rest(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}

impl Event {
    fn read(frame: &str) -> Option<Self> {
        let field = |name: &str| {
            let lines = frame.lines();
            let mut values = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            values.next()
        };
        let event = Self {
            id: field("id")?.parse().unwrap(),
            kind: field("event")?.to_owned(),
            data: serde_json::from_str(field("data")?).unwrap(),
        };
        assert_eq!(event.data["type"], event.kind, "{frame}");
        Some(event)
    }
}

pub(crate) fn ids(events: &[Event]) -> Vec<u64> {
    events.iter().map(|event| event.id).collect()
}

pub(crate) fn kinds(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.kind.as_str()).collect()
}

/// Returns the text of the answer.
pub(crate) fn text(events: &[Event]) -> String {
    let pieces = events.iter().filter(|event| event.kind == "text_delta");
    pieces
        .map(|event| event.data["text"].as_str().unwrap())
        .collect()
}

/// Returns a call of the tool `left` of [`SlowServer`] with the id `a`.
pub(crate) fn call_left() -> Answer {
    Answer::openai_chat([Say::call("a", "slow__left", json!({"far": 1}))])
}

/// Returns an answer with this text.
pub(crate) fn says(text: impl Into<String>) -> Answer {
    Answer::openai_chat([Say::text(text)])
}

/// Returns a working folder with the fake model and these settings.
pub(crate) fn place(fake: &FakeModel, config: &Value) -> Place {
    let mut config = config.clone();
    config["model"] = json!(MODEL);
    Place::new()
        .with_variable("OPENAI_API_KEY", "sk-secret")
        .with_variable("OPENAI_BASE_URL", &format!("{}/v1", fake.base_url()))
        .with_file("switchboard.json", &config.to_string())
}

/// Returns settings without servers.
pub(crate) fn no_servers() -> Value {
    json!({"mcp_servers": {}})
}

/// Returns settings with only this server.
pub(crate) fn with_server(slow: &SlowServer) -> Value {
    serde_json::from_str(&slow.config()).unwrap()
}
