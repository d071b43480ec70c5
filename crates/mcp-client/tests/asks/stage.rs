//! What the tests share: the server in every form, hosts, and people and models that answer.

use std::{
    collections::{HashMap, VecDeque},
    env,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use axum::Router;
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use serde_json::{Value, json};
use switchboard_domain::{
    Candidates, Elicitation, ElicitationAnswer, Elicitor, JsonObject, ToolCall, ToolCallError,
    ToolHost,
};
use switchboard_mcp_client::{Answering, HostOptions, McpHost, ServerConfig, ServerTransport};
use tokio::{
    net::TcpListener,
    sync::watch,
    task::{AbortHandle, JoinSet},
};

use crate::{VERSION, asker::Asker};

/// Far more than anything here takes. A test that waits so long has failed.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) const OLDER: &str = "2025-11-25";
pub(crate) const NEWER: &str = "2026-07-28";

/// The server, in one of its four forms, configured as `s`.
pub(crate) struct Stage {
    pub(crate) config: ServerConfig,
    pub(crate) version: &'static str,
    pub(crate) name: String,
    /// Of the HTTP server.
    accepting: Option<AbortHandle>,
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(accepting) = &self.accepting {
            accepting.abort();
        }
    }
}

/// Both eras over both transports.
pub(crate) async fn every_form() -> Vec<Stage> {
    let mut forms = Vec::new();
    for version in [OLDER, NEWER] {
        forms.push(over_stdio(version));
        forms.push(over_http(version).await);
    }
    forms
}

/// The older era over both transports.
pub(crate) async fn older() -> Vec<Stage> {
    vec![over_stdio(OLDER), over_http(OLDER).await]
}

/// The older era over both transports, with a server that asks before anybody called it.
pub(crate) async fn eager() -> Vec<Stage> {
    let version = "2025-11-25 eager";
    vec![over_stdio(version), over_http(version).await]
}

pub(crate) fn over_stdio(version: &'static str) -> Stage {
    let itself = env::current_exe().unwrap();
    let args = ["--exact", "server", "--ignored", "--nocapture"];
    let mut config = ServerConfig::stdio("s", itself.to_str().unwrap(), args);
    if let ServerTransport::Stdio { env, .. } = &mut config.transport {
        env.push((VERSION.to_owned(), version.into()));
    }
    Stage {
        config,
        version,
        name: format!("{version} over stdio"),
        accepting: None,
    }
}

async fn over_http(version: &'static str) -> Stage {
    let server = Asker::new(version);
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    let app = Router::new().nest_service("/mcp", service);
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = TcpListener::bind(any).await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    Stage {
        config: ServerConfig::http("s", format!("http://{address}/mcp")),
        version,
        name: format!("{version} over HTTP"),
        accepting: Some(serving.abort_handle()),
    }
}

impl Stage {
    pub(crate) fn is_older(&self) -> bool {
        self.version != NEWER
    }

    /// A host whose server is ready.
    pub(crate) async fn host(&self, answering: Answering) -> McpHost {
        let options = HostOptions {
            answering,
            ..HostOptions::default()
        };
        let host = McpHost::start(vec![self.config.clone()], options).unwrap();
        soon(host.settled()).await;
        let status = &host.servers()[0];
        assert!(status.state.takes_calls(), "{status:#?}");
        let spoken = self.version.trim_end_matches(" eager");
        assert_eq!(status.protocol_version.as_deref(), Some(spoken));
        host
    }
}

/// Fails the test instead of hanging.
pub(crate) async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future)
        .await
        .expect("it hangs")
}

/// Lets others go on until it is as wanted.
pub(crate) async fn until(is_so: impl Fn() -> bool) {
    soon(async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

pub(crate) fn tool(name: &str) -> ToolCall {
    ToolCall {
        name: format!("s__{name}"),
        ..ToolCall::default()
    }
}

/// A call of a tool, within which whoever's it is can be asked.
pub(crate) fn keyed(name: &str, key: &str) -> ToolCall {
    ToolCall {
        idempotency_key: Some(key.to_owned()),
        ..tool(name)
    }
}

/// What a tool says, as JSON.
pub(crate) async fn call(host: &McpHost, name: &str) -> Result<Value, ToolCallError> {
    let output = soon(host.call(tool(name))).await?;
    Ok(serde_json::from_str(&output.content[0].as_text()).unwrap())
}

pub(crate) fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        other => panic!("no object: {other}"),
    }
}

pub(crate) fn accept(content: Value) -> ElicitationAnswer {
    ElicitationAnswer::Accept {
        content: object(content),
    }
}

/// Answers what it was told to, and then thinks for ever.
pub(crate) struct Person {
    answers: Mutex<VecDeque<ElicitationAnswer>>,
    pub(crate) asked: Mutex<Vec<Elicitation>>,
    /// Whether it answers for several people: calls are of one whose keys have the same word before the slash.
    stands_for_many: bool,
    /// How many questions are before it.
    pub(crate) open: watch::Sender<usize>,
}

impl Person {
    pub(crate) fn who_says(answers: impl IntoIterator<Item = ElicitationAnswer>) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.into_iter().collect()),
            asked: Mutex::default(),
            stands_for_many: false,
            open: watch::Sender::new(0),
        })
    }

    /// People who are apart and all think for ever, after these answers.
    pub(crate) fn people(answers: impl IntoIterator<Item = ElicitationAnswer>) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.into_iter().collect()),
            asked: Mutex::default(),
            stands_for_many: true,
            open: watch::Sender::new(0),
        })
    }

    /// Within which call each question was asked, or which ones it may have been.
    pub(crate) fn asked_within(&self) -> Vec<(Option<String>, Vec<String>)> {
        let asked = self.asked.lock().unwrap();
        let places = asked.iter().map(|it| {
            let mut candidates = it.candidates.calls.clone();
            candidates.sort();
            (it.call.clone(), candidates)
        });
        places.collect()
    }

    pub(crate) fn answering(self: &Arc<Self>) -> Answering {
        Answering {
            elicitor: Some(self.clone()),
            ..Answering::default()
        }
    }

    pub(crate) async fn has_open(&self, questions: usize) {
        let mut open = self.open.subscribe();
        soon(open.wait_for(|open| *open == questions))
            .await
            .unwrap();
    }
}

struct Before<'a>(&'a watch::Sender<usize>);

impl Drop for Before<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

#[async_trait]
impl Elicitor for Person {
    async fn elicit(&self, elicitation: &Elicitation) -> ElicitationAnswer {
        self.asked.lock().unwrap().push(elicitation.clone());
        self.open.send_modify(|open| *open += 1);
        let _before = Before(&self.open);
        let next = self.answers.lock().unwrap().pop_front();
        match next {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }

    fn knows_whom_to_ask(&self, candidates: &Candidates) -> bool {
        let mut people = candidates.calls.iter().map(|key| key.split('/').next());
        let first = people.next();
        !self.stands_for_many || !candidates.others && people.all(|person| Some(person) == first)
    }
}

/// Runs a test with every form at once.
pub(crate) async fn with_each<F>(forms: Vec<Stage>, test: impl Fn(Stage) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut tests = JoinSet::new();
    let mut names = HashMap::new();
    for form in forms {
        let name = form.name.clone();
        names.insert(tests.spawn(test(form)).id(), name);
    }
    while let Some(ended) = tests.join_next_with_id().await {
        if let Err(error) = ended {
            panic!("{}: {error}", names[&error.id()]);
        }
    }
}

/// The answer of a server that was refused.
pub(crate) fn declined() -> Value {
    json!({"action": "decline"})
}
