//! What a server asks of us in the middle of a call: something of the person (elicitation), an answer
//! of a model (sampling), the folders it may work in (roots).
//!
//! Both eras come together here. Before 2026-07-28 a server sends a request of its own while ours is
//! open (`handler.rs`); since then it answers ours with what it wants to know first (`call.rs`).
//! What nobody answers here is not offered in the capabilities.

#![allow(
    deprecated,
    reason = "servers of both eras still ask for samples and roots"
)]

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, CreateMessageRequestParams, ElicitationCapability,
    ErrorCode, ErrorData, FormElicitationCapability, InputRequest, InputRequiredResult,
    InputResponses, ListRootsResult, RootsCapabilities, SamplingCapability,
    UrlElicitationCapability,
};
use serde_json::{Value, json};
use switchboard_domain::{Candidates, Elicitor, Sampler};
use tokio::{
    sync::watch,
    time::{Duration, sleep},
};

use crate::{
    calls::context::Caller,
    config::ServerConfig,
    redact::Redactor,
    server_requests::{
        alone::{Alone, Turn},
        roots::Root,
        sampling::SamplingLimits,
        within::{Asking, MOST_QUESTIONS, Within},
    },
};

/// How many matters that a server said to be done with are remembered.
const DONE_MATTERS: usize = 64;
/// How long to wait before a request is made again where its server wants nothing else.
const BETWEEN_ROUNDS: Duration = Duration::from_millis(100);

/// Who answers what servers ask. Without anybody, nothing is offered to them, and whoever asks all the
/// same is declined at once.
#[derive(Clone)]
pub struct Answering {
    /// Asks the person.
    pub elicitor: Option<Arc<dyn Elicitor>>,
    /// Asks a model, for those servers that are allowed to ([`ServerConfig::sampling`]).
    pub sampler: Option<Arc<dyn Sampler>>,
    /// The folders that servers may work in, where they have none of their own
    /// ([`ServerConfig::roots`]); `None` is not offered to them.
    pub roots: Option<Vec<Root>>,
    /// How long a question may wait for its answer. That time does not count towards the deadline of the
    /// call that it belongs to, so it has an end of its own: whoever does not answer has gone away.
    pub patience: Duration,
    /// How long a question is held back of which it is not certain whose it is, so that it turns out: those of
    /// the calls that are answered meanwhile did not ask it. Shorter than a server waits for an answer, which
    /// would answer its call without one.
    pub placing: Duration,
}

impl Default for Answering {
    /// Nobody, nothing, ten minutes, and ten seconds.
    fn default() -> Self {
        Self {
            elicitor: None,
            sampler: None,
            roots: None,
            patience: Duration::from_mins(10),
            placing: Duration::from_secs(10),
        }
    }
}

impl fmt::Debug for Answering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answering")
            .field("elicitor", &self.elicitor.is_some())
            .field("sampler", &self.sampler.is_some())
            .field("roots", &self.roots)
            .field("patience", &self.patience)
            .field("placing", &self.placing)
            .finish()
    }
}

/// Answers one server.
pub(crate) struct Asks {
    pub(super) server: String,
    pub(super) redactor: Redactor,
    pub(super) elicitor: Option<Arc<dyn Elicitor>>,
    /// Only where the server may ask.
    pub(super) sampler: Option<(Arc<dyn Sampler>, SamplingLimits)>,
    /// Whether it may ask a model, if there is one.
    pub(super) may_sample: bool,
    /// How many times it has asked a model.
    pub(super) sampled: AtomicU32,
    pub(super) roots: Mutex<Option<Vec<Root>>>,
    pub(super) has_own_roots: bool,
    /// Whether the connection was told that there are roots.
    pub(super) offered_roots: AtomicBool,
    pub(super) patience: Duration,
    pub(super) placing: Duration,
    /// Of questions of which nobody knows whose they are, one at a time is asked.
    pub(super) turn: tokio::sync::Mutex<()>,
    pub(super) alone: Alone,
    /// Questions that wait for an answer of ours.
    pub(super) asking: watch::Sender<Asking>,
    /// The last matters that it said to be done with.
    pub(super) done: watch::Sender<VecDeque<String>>,
}

impl Asks {
    pub(crate) fn new(config: &ServerConfig, answering: &Answering) -> Self {
        let sampler = answering.sampler.clone();
        Self {
            server: config.name.clone(),
            redactor: Redactor::new(config),
            elicitor: answering.elicitor.clone(),
            sampler: sampler.zip(config.sampling),
            may_sample: config.sampling.is_some(),
            sampled: AtomicU32::new(0),
            roots: Mutex::new(config.roots.clone().or_else(|| answering.roots.clone())),
            has_own_roots: config.roots.is_some(),
            offered_roots: AtomicBool::new(false),
            patience: answering.patience,
            placing: answering.placing,
            turn: tokio::sync::Mutex::default(),
            alone: Alone::default(),
            asking: watch::Sender::default(),
            done: watch::Sender::default(),
        }
    }

    /// What is offered: that which is answered, and nothing else.
    pub(crate) fn capabilities(&self) -> ClientCapabilities {
        let mut capabilities = ClientCapabilities::default();
        if self.elicitor.is_some() {
            let form = FormElicitationCapability::new();
            let elicitation = ElicitationCapability::new().with_form(form);
            let url = UrlElicitationCapability::new();
            capabilities.elicitation = Some(elicitation.with_url(url));
        }
        if self.sampler.is_some() {
            let mut sampling = SamplingCapability::default();
            sampling.tools = Some(rmcp::model::JsonObject::new());
            capabilities.sampling = Some(sampling);
        }
        let has_roots = self.lock_roots().is_some();
        self.offered_roots.store(has_roots, Ordering::Relaxed);
        if has_roots {
            let mut roots = RootsCapabilities::default();
            roots.list_changed = Some(true);
            capabilities.roots = Some(roots);
        }
        capabilities
    }

    /// Those of its questions that wait for an answer now. The time that takes is not the server's.
    pub(crate) fn asking(&self) -> watch::Receiver<Asking> {
        self.asking.subscribe()
    }

    /// How long a question may wait for its answer.
    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// A turn of this call among those that may ask, if there is one now.
    pub(crate) fn take_turn(&self, caller: &Arc<Caller>) -> Option<Turn<'_>> {
        self.alone.take(caller, |calls| self.is_sure_with(calls))
    }

    /// The same, which is waited for.
    pub(crate) async fn turn_of(&self, caller: &Arc<Caller>) -> Turn<'_> {
        let are_one = |calls: &Candidates| self.is_sure_with(calls);
        self.alone.turn(caller, are_one).await
    }

    pub(super) fn is_sure_with(&self, candidates: &Candidates) -> bool {
        let elicitor = self.elicitor.as_ref();
        elicitor.is_none_or(|elicitor| elicitor.knows_whom_to_ask(candidates))
    }

    /// Answers everything that a server wants to know before it answers a request (2026-07-28). An error
    /// is why it cannot have that.
    ///
    /// `within` is the request.
    pub(crate) async fn answer(
        &self,
        wants: InputRequiredResult,
        within: &Within,
    ) -> Result<Known, ErrorData> {
        let Some(requests) = wants.input_requests else {
            return Ok(Known {
                responses: None,
                state: wants.request_state,
            });
        };
        few_enough(requests.len())?;
        let mut responses = InputResponses::new();
        for (key, request) in requests {
            let answer = match request {
                InputRequest::Elicitation(request) => {
                    let params = serde_json::to_value(request.params).unwrap_or_default();
                    self.elicit(params, within).await?
                }
                InputRequest::CreateMessage(request) => {
                    let result = self.sample(request.params, within).await;
                    let result = result.map_err(|error| self.without_sample(error))?;
                    serde_json::to_value(result).unwrap_or_default()
                }
                InputRequest::ListRoots(_) => {
                    self.answer_within("roots/list", Value::Null, within)
                        .await?
                }
                _ => return Err(not_known("a request")),
            };
            responses.insert(key, answer);
        }
        Ok(Known {
            responses: Some(responses),
            state: wants.request_state,
        })
    }

    /// The same for a result that the protocol's own types could not read, for a form with a field of a
    /// newer kind, say: `None` if it is no result that wants something.
    pub(crate) async fn answer_json(
        &self,
        result: &Value,
        within: &Within,
    ) -> Option<Result<Known, ErrorData>> {
        let kind = result.get("resultType").and_then(Value::as_str);
        if kind != Some("input_required") {
            return None;
        }
        let state = result.get("requestState").and_then(Value::as_str);
        let requests = result.get("inputRequests").and_then(Value::as_object);
        if let Err(error) = few_enough(requests.map_or(0, serde_json::Map::len)) {
            return Some(Err(error));
        }
        let mut responses = InputResponses::new();
        for (key, request) in requests.into_iter().flatten() {
            let method = request.get("method").and_then(Value::as_str);
            let params = request.get("params").cloned().unwrap_or_default();
            let method = method.unwrap_or_default();
            match self.answer_within(method, params, within).await {
                Ok(answer) => responses.insert(key.clone(), answer),
                Err(error) => return Some(Err(error)),
            };
        }
        Some(Ok(Known {
            responses: requests.is_some().then_some(responses),
            state: state.map(str::to_owned),
        }))
    }

    async fn answer_within(
        &self,
        method: &str,
        params: Value,
        within: &Within,
    ) -> Result<Value, ErrorData> {
        match (method, self.answer_one(method, params, within).await) {
            // An error would end the call; that there are none is as good an answer.
            ("roots/list", Err(_)) => Ok(json!({"roots": []})),
            ("sampling/createMessage", Err(error)) => Err(self.without_sample(error)),
            (_, answer) => answer,
        }
    }

    /// Why the call ends of a server that would not answer without a model's answer. There is no way to tell
    /// it that it gets none (2026-07-28, "Multi Round-Trip Requests").
    fn without_sample(&self, error: ErrorData) -> ErrorData {
        let why = match (error.code, self.may_sample) {
            (ErrorCode::METHOD_NOT_FOUND, false) => {
                "it may not ask one, which `sampling` in its configuration would allow".into()
            }
            (ErrorCode::METHOD_NOT_FOUND, true) => "there is none to be asked here".into(),
            _ => error.message,
        };
        let message = format!("it answers only with the help of a model, and got none: {why}");
        ErrorData::new(error.code, message, None)
    }

    /// Answers a request by its method.
    pub(crate) async fn answer_one(
        &self,
        method: &str,
        params: Value,
        within: &Within,
    ) -> Result<Value, ErrorData> {
        match method {
            "elicitation/create" => self.elicit(params, within).await,
            "sampling/createMessage" => {
                let params: CreateMessageRequestParams = serde_json::from_value(params)
                    .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
                let result = self.sample(params, within).await?;
                Ok(serde_json::to_value(result).unwrap_or_default())
            }
            "roots/list" => {
                let roots = self.list_roots()?;
                Ok(serde_json::to_value(roots).unwrap_or_default())
            }
            other => Err(not_known(other)),
        }
    }

    /// The server says that it is done with a matter for which the person went to an address.
    pub(crate) fn done_with(&self, matter: &str) {
        tracing::debug!(server = self.server, matter, "an address was visited");
        self.done.send_modify(|done| {
            if done.len() == DONE_MATTERS {
                done.pop_front();
            }
            done.push_back(matter.to_owned());
        });
    }

    pub(crate) fn list_roots(&self) -> Result<ListRootsResult, ErrorData> {
        match self.lock_roots().as_deref() {
            Some(roots) => Ok(ListRootsResult::new(
                roots.iter().map(Root::to_mcp).collect(),
            )),
            None => Err(ErrorData::method_not_found::<
                rmcp::model::ListRootsRequestMethod,
            >()),
        }
    }

    /// Replaces the roots of the host; whether that is news to the server.
    pub(super) fn set_roots(&self, roots: &[Root]) -> bool {
        let mut now = self.lock_roots();
        if self.has_own_roots || now.as_deref() == Some(roots) {
            return false;
        }
        *now = Some(roots.to_vec());
        self.offered_roots.load(Ordering::Relaxed)
    }

    pub(super) fn lock_roots(&self) -> std::sync::MutexGuard<'_, Option<Vec<Root>>> {
        self.roots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one of the server's questions to a model, if it has any left.
    pub(super) fn take_sample(&self, most: u32) -> bool {
        let more = |used: u32| (used < most).then_some(used + 1);
        self.sampled
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_ok()
    }
}

/// What a server wanted to know first, to be sent with the request that it is made again with.
#[derive(Debug)]
pub(crate) struct Known {
    /// `None` where it only wants to be asked again.
    responses: Option<InputResponses>,
    /// Its own, unread.
    state: Option<String>,
}

impl Known {
    /// Waits a moment where the server only wants to be asked again.
    pub(crate) async fn put_into(self, params: &mut CallToolRequestParams) {
        if self.responses.is_none() {
            sleep(BETWEEN_ROUNDS).await;
        }
        params.input_responses = self.responses;
        params.request_state = self.state;
    }

    /// The same for other requests.
    pub(crate) async fn into_parts(self) -> (Option<InputResponses>, Option<String>) {
        if self.responses.is_none() {
            sleep(BETWEEN_ROUNDS).await;
        }
        (self.responses, self.state)
    }
}

fn few_enough(questions: usize) -> Result<(), ErrorData> {
    if questions <= MOST_QUESTIONS {
        return Ok(());
    }
    let why = format!("it wants to know {questions} things at once, more than {MOST_QUESTIONS}");
    Err(ErrorData::invalid_request(why, None))
}

fn not_known(what: &str) -> ErrorData {
    let what = format!("{what} is not known here");
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, what, None)
}

#[cfg(test)]
#[path = "responder_tests.rs"]
mod tests;
