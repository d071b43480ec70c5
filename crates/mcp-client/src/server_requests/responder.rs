//! Answers the requests that one MCP server sends: elicitation, sampling and roots.
//!
//! A server of 2025-11-25 or older sends its requests during a call (`client_handler.rs`). A server
//! of 2026-07-28 lists them in the result of the call (`calls/multi_round.rs`).

#![allow(deprecated, reason = "servers of every version use sampling and roots")]

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use rmcp::model::{
    ClientCapabilities, CreateMessageRequestParams, ElicitationCapability, ErrorCode, ErrorData,
    FormElicitationCapability, InputResponses, ListRootsResult, RootsCapabilities,
    SamplingCapability, UrlElicitationCapability,
};
use serde_json::{Value, json};
use switchboard_domain::{Elicitor, Sampler, redact::Redactor};
use tokio::sync::watch;

use crate::{
    config::{
        ServerConfig,
        client_features::{Root, SamplingLimits},
    },
    server_requests::{
        handlers::ClientHandlers,
        pending_requests::{PendingCallRequests, PendingRequests},
    },
    transport::call_context::{CallContext, RequestContext},
};

/// Maximum number of inputs that a server may request in one result. More inputs are an error.
const MAX_INPUTS: usize = 16;
/// Maximum number of stored ids of completed URL elicitations. The oldest ids are dropped.
const MAX_COMPLETED: usize = 64;

/// Handler of all requests that one MCP server sends to the host.
pub(crate) struct RequestResponder {
    pub(super) server: String,
    pub(super) redactor: Redactor,
    pub(super) elicitor: Option<Arc<dyn Elicitor>>,
    /// Handler and limits of sampling. `None` without a handler, or if the configuration of the
    /// server does not allow sampling.
    pub(super) sampler: Option<(Arc<dyn Sampler>, SamplingLimits)>,
    /// Whether the configuration of the server allows sampling.
    allows_sampling: bool,
    /// Number of accepted sampling requests of the server so far.
    samplings: AtomicU32,
    roots: Option<Vec<Root>>,
    pub(super) answer_timeout: Duration,
    /// Requests of the server that wait for a person or a model.
    pub(super) pending: watch::Sender<PendingRequests>,
    /// Ids of the last URL elicitations that the server reported as completed.
    pub(super) completed: watch::Sender<VecDeque<String>>,
}

/// Answers to the input requests in a result of protocol version 2026-07-28. The client sends the
/// same request again with these answers.
#[derive(Debug)]
pub(crate) struct CollectedInput {
    /// Answers by the keys of `inputRequests` in the result. `None` if the result has no
    /// `inputRequests`, because the server then only requests a repetition.
    pub(crate) responses: Option<InputResponses>,
    /// Opaque state from the server, which the repeated call must contain unchanged.
    pub(crate) state: Option<String>,
}

impl RequestResponder {
    pub(crate) fn new(config: &ServerConfig, handlers: &ClientHandlers) -> Self {
        let sampler = handlers.sampler.clone();
        Self {
            server: config.name.clone(),
            redactor: config.server_redactor(),
            elicitor: handlers.elicitor.clone(),
            sampler: sampler.zip(config.sampling),
            allows_sampling: config.sampling.is_some(),
            samplings: AtomicU32::new(0),
            roots: config.roots.clone(),
            answer_timeout: handlers.answer_timeout,
            pending: watch::Sender::default(),
            completed: watch::Sender::default(),
        }
    }

    /// Returns the client capabilities that the host supports for this server.
    pub(crate) fn client_capabilities(&self) -> ClientCapabilities {
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
        if self.roots.is_some() {
            capabilities.roots = Some(RootsCapabilities::default());
        }
        capabilities
    }

    /// Returns the receiver with which the deadline of a call is paused while a request of the
    /// server waits for an answer. Returns `None` without handlers of elicitation and sampling.
    pub(crate) fn pending_requests(&self, call: &Arc<CallContext>) -> Option<PendingCallRequests> {
        let has_handler = self.elicitor.is_some() || self.sampler.is_some();
        has_handler.then(|| PendingCallRequests {
            requests: self.pending.subscribe(),
            call: Arc::clone(call),
        })
    }

    /// Answers all input requests in a result of protocol version 2026-07-28. Returns `None` for a
    /// result without input requests, and an error if a request cannot be answered.
    pub(crate) async fn collect_input(
        &self,
        result: &Value,
        context: &RequestContext,
    ) -> Option<Result<CollectedInput, ErrorData>> {
        let kind = result.get("resultType").and_then(Value::as_str);
        if kind != Some("input_required") {
            return None;
        }
        let state = result.get("requestState").and_then(Value::as_str);
        let requests = result.get("inputRequests").and_then(Value::as_object);
        let count = requests.map_or(0, serde_json::Map::len);
        if count > MAX_INPUTS {
            let reason =
                format!("the server requested {count} inputs, but the limit is {MAX_INPUTS}");
            return Some(Err(ErrorData::invalid_request(reason, None)));
        }
        let mut responses = InputResponses::new();
        for (key, request) in requests.into_iter().flatten() {
            let method = request["method"].as_str().unwrap_or_default();
            let params = request.get("params").cloned().unwrap_or_default();
            let answer = self.answer_input_request(method, params, context);
            match answer.await {
                Ok(answer) => responses.insert(key.clone(), answer),
                Err(error) => return Some(Err(error)),
            };
        }
        Some(Ok(CollectedInput {
            responses: requests.is_some().then_some(responses),
            state: state.map(str::to_owned),
        }))
    }

    async fn answer_input_request(
        &self,
        method: &str,
        params: Value,
        context: &RequestContext,
    ) -> Result<Value, ErrorData> {
        match (method, self.answer_request(method, params, context).await) {
            // The server receives an empty list of roots, because an error would end the call.
            ("roots/list", Err(_)) => Ok(json!({"roots": []})),
            // The protocol has no negative answer to a sampling request (2026-07-28, "Multi
            // Round-Trip Requests"), so the call fails.
            ("sampling/createMessage", Err(error)) => {
                let reason = match error.code {
                    ErrorCode::METHOD_NOT_FOUND if self.allows_sampling => "no model is available",
                    ErrorCode::METHOD_NOT_FOUND => {
                        "set `sampling` in the server's configuration to allow it"
                    }
                    _ => &error.message,
                };
                let message = format!("the server requires sampling: {reason}");
                Err(ErrorData::new(error.code, message, None))
            }
            (_, answer) => answer,
        }
    }

    /// Answers one request of the server with the handler for the request's method. Returns an
    /// error for an unknown method, or if the handler fails.
    pub(crate) async fn answer_request(
        &self,
        method: &str,
        params: Value,
        context: &RequestContext,
    ) -> Result<Value, ErrorData> {
        match method {
            "elicitation/create" => self.answer_elicitation(params, context).await,
            "sampling/createMessage" => {
                let params: CreateMessageRequestParams = serde_json::from_value(params)
                    .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
                let result = self.answer_sampling(params, context).await?;
                Ok(serde_json::to_value(result).unwrap_or_default())
            }
            "roots/list" => {
                let roots = self.list_roots()?;
                Ok(serde_json::to_value(roots).unwrap_or_default())
            }
            other => {
                let message = format!("unknown method `{other}`");
                Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None))
            }
        }
    }

    /// Records that the server completed a URL elicitation. A call that waits for the completion is
    /// then repeated.
    pub(crate) fn complete_url_elicitation(&self, id: &str) {
        tracing::debug!(server = self.server, id, "a URL elicitation is complete");
        self.completed.send_modify(|completed| {
            if completed.len() == MAX_COMPLETED {
                completed.pop_front();
            }
            completed.push_back(id.to_owned());
        });
    }

    pub(crate) fn list_roots(&self) -> Result<ListRootsResult, ErrorData> {
        match &self.roots {
            Some(roots) => Ok(ListRootsResult::new(roots.clone())),
            None => Err(ErrorData::method_not_found::<
                rmcp::model::ListRootsRequestMethod,
            >()),
        }
    }

    /// Counts one sampling request. Returns `false` if `max` requests are already counted.
    pub(super) fn count_sampling_request(&self, max: u32) -> bool {
        let next = |used: u32| (used < max).then_some(used + 1);
        self.samplings
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
            .is_ok()
    }
}

#[cfg(test)]
#[path = "responder_tests.rs"]
mod tests;
