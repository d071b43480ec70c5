//! Shared parts of the tests: the server in every variant, hosts, and users that answer.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use serde_json::{Value, json};
use switchboard_domain::{
    Elicitation, ElicitationAnswer, Elicitor, ToolCall, ToolCallError, ToolHost,
};
use switchboard_mcp_client::{ClientHandlers, HostOptions, McpHost, ServerConfig};
use tokio::{
    sync::watch,
    task::{AbortHandle, JoinSet},
};

pub(crate) use crate::shared::{object, soon};
use crate::{
    server_requests::VERSION,
    server_requests::asking_server::AskingServer,
    shared::{serve_http, this_program},
};

pub(crate) const LEGACY: &str = "2025-11-25";
pub(crate) const MODERN: &str = "2026-07-28";

/// One variant of the server, configured as `s`.
pub(crate) struct Variant {
    pub(crate) config: ServerConfig,
    pub(crate) version: &'static str,
    pub(crate) name: String,
    /// The task of the HTTP server.
    serving: Option<AbortHandle>,
}

impl Drop for Variant {
    fn drop(&mut self) {
        if let Some(serving) = &self.serving {
            serving.abort();
        }
    }
}

/// Returns both versions over both transports.
pub(crate) async fn every_variant() -> Vec<Variant> {
    let mut variants = Vec::new();
    for version in [LEGACY, MODERN] {
        variants.push(over_stdio(version));
        variants.push(over_http(version).await);
    }
    variants
}

/// Returns the legacy version over both transports.
pub(crate) async fn legacy() -> Vec<Variant> {
    vec![over_stdio(LEGACY), over_http(LEGACY).await]
}

/// Returns the legacy version over both transports, with a server that sends a request without a
/// call.
pub(crate) async fn eager() -> Vec<Variant> {
    let version = "2025-11-25 eager";
    vec![over_stdio(version), over_http(version).await]
}

pub(crate) fn over_stdio(version: &'static str) -> Variant {
    Variant {
        config: this_program("s", VERSION, version),
        version,
        name: format!("{version} over stdio"),
        serving: None,
    }
}

async fn over_http(version: &'static str) -> Variant {
    let (url, serving) = serve_http(AskingServer::new(version)).await;
    Variant {
        config: ServerConfig::http("s", url),
        version,
        name: format!("{version} over HTTP"),
        serving: Some(serving),
    }
}

impl Variant {
    pub(crate) fn is_legacy(&self) -> bool {
        self.version != MODERN
    }

    /// A host whose server is ready.
    pub(crate) async fn host(&self, client_handlers: ClientHandlers) -> McpHost {
        let options = HostOptions {
            client_handlers,
            ..HostOptions::default()
        };
        let host = McpHost::start(vec![self.config.clone()], options).unwrap();
        soon(host.wait_for_startup()).await;
        let status = &host.server_statuses()[0];
        assert!(status.state.takes_calls(), "{status:#?}");
        let spoken = self.version.trim_end_matches(" eager");
        assert_eq!(status.protocol_version.as_deref(), Some(spoken));
        host
    }
}

/// Yields until the condition is true.
pub(crate) async fn until(condition: impl Fn() -> bool) {
    soon(async {
        while !condition() {
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

/// Creates a call with an idempotency key.
pub(crate) fn keyed(name: &str, key: &str) -> ToolCall {
    ToolCall {
        idempotency_key: Some(key.to_owned()),
        ..tool(name)
    }
}

/// Calls a tool and returns its answer as JSON.
pub(crate) async fn call(host: &McpHost, name: &str) -> Result<Value, ToolCallError> {
    let output = soon(host.call_tool(tool(name))).await?;
    Ok(serde_json::from_str(&output.content[0].as_text()).unwrap())
}

pub(crate) fn accept(content: Value) -> ElicitationAnswer {
    ElicitationAnswer::Accept {
        content: object(content),
    }
}

/// A user who gives the given answers, and never answers further elicitations.
pub(crate) struct User {
    answers: Mutex<VecDeque<ElicitationAnswer>>,
    pub(crate) elicitations: Mutex<Vec<Elicitation>>,
    /// Whether it represents several users. The user of a call is the first word of its key.
    is_several: bool,
    /// The number of pending elicitations.
    pub(crate) pending: watch::Sender<usize>,
}

impl User {
    pub(crate) fn with_answers(answers: impl IntoIterator<Item = ElicitationAnswer>) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.into_iter().collect()),
            elicitations: Mutex::default(),
            is_several: false,
            pending: watch::Sender::new(0),
        })
    }

    /// Represents several users, as the core does: cancels an elicitation that may be for more than
    /// one of them.
    pub(crate) fn several(answers: impl IntoIterator<Item = ElicitationAnswer>) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.into_iter().collect()),
            elicitations: Mutex::default(),
            is_several: true,
            pending: watch::Sender::new(0),
        })
    }

    /// Returns the call or the candidates of each elicitation.
    pub(crate) fn attributions(&self) -> Vec<(Option<String>, Vec<String>)> {
        let elicitations = self.elicitations.lock().unwrap();
        let attributions = elicitations.iter().map(|it| {
            let mut candidates = it.candidates.calls.clone();
            candidates.sort();
            (it.call.clone(), candidates)
        });
        attributions.collect()
    }

    /// Returns the elicitations that were shown to a user.
    pub(crate) fn shown(&self) -> Vec<Elicitation> {
        let elicitations = self.elicitations.lock().unwrap();
        let shown = elicitations.iter().filter(|it| self.is_shown(it));
        shown.cloned().collect()
    }

    fn is_shown(&self, elicitation: &Elicitation) -> bool {
        let candidates = &elicitation.candidates;
        let mut users = candidates.calls.iter().map(|key| key.split('/').next());
        let first = users.next();
        !self.is_several
            || elicitation.call.is_some()
            || !candidates.others && users.all(|user| Some(user) == first)
    }

    pub(crate) fn handlers(self: &Arc<Self>) -> ClientHandlers {
        ClientHandlers {
            elicitor: Some(self.clone()),
            ..ClientHandlers::default()
        }
    }

    pub(crate) async fn has_pending(&self, count: usize) {
        let mut pending = self.pending.subscribe();
        soon(pending.wait_for(|pending| *pending == count))
            .await
            .unwrap();
    }
}

struct PendingGuard<'a>(&'a watch::Sender<usize>);

impl Drop for PendingGuard<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|pending| *pending -= 1);
    }
}

#[async_trait]
impl Elicitor for User {
    async fn elicit(&self, elicitation: &Elicitation) -> ElicitationAnswer {
        self.elicitations.lock().unwrap().push(elicitation.clone());
        if !self.is_shown(elicitation) {
            return ElicitationAnswer::Cancel;
        }
        self.pending.send_modify(|pending| *pending += 1);
        let _guard = PendingGuard(&self.pending);
        let next = self.answers.lock().unwrap().pop_front();
        match next {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }
}

/// Runs a test with several variants in parallel.
pub(crate) async fn with_each<F>(variants: Vec<Variant>, test: impl Fn(Variant) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut tests = JoinSet::new();
    let mut names = HashMap::new();
    for variant in variants {
        let name = variant.name.clone();
        names.insert(tests.spawn(test(variant)).id(), name);
    }
    while let Some(ended) = tests.join_next_with_id().await {
        if let Err(error) = ended {
            panic!("{}: {error}", names[&error.id()]);
        }
    }
}

/// The answer to a declined elicitation.
pub(crate) fn declined() -> Value {
    json!({"action": "decline"})
}
