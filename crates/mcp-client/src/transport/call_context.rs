//! The identity of a call, and the calls that a request from a server may belong to.

use std::sync::Arc;

use rmcp::model::{JsonObject, RequestId, RequestMetaObject};
use switchboard_domain::CandidateToolCalls;

/// Key in `_meta` for the idempotency key of a call, which all attempts of the call share. MCP
/// defines no such key, so its name has a prefix of this program.
pub(crate) const IDEMPOTENCY_KEY: &str = "switchboard/idempotency-key";

/// Identity of a tool call, or of another request during which a server may send its own requests.
/// All attempts of a call share one context. Contexts are compared by address.
#[derive(Debug, Default)]
pub(crate) struct CallContext {
    /// Idempotency key of the call. The elicitation handler uses it to find the agent run that made
    /// the call.
    pub(crate) idempotency_key: Option<String>,
}

impl CallContext {
    pub(crate) fn new(idempotency_key: Option<String>) -> Arc<Self> {
        Arc::new(Self { idempotency_key })
    }

    /// Returns the `_meta` object of the call's requests, or `None` without an idempotency key.
    pub(crate) fn request_meta(&self) -> Option<RequestMetaObject> {
        let key = self.idempotency_key.as_deref()?;
        let mut meta = JsonObject::new();
        meta.insert(IDEMPOTENCY_KEY.to_owned(), key.into());
        Some(RequestMetaObject::from(meta))
    }
}

/// Calls that a request from a server may belong to. If the call is known, `calls` contains only
/// this call and `others` is `false`.
#[derive(Clone, Default)]
pub(crate) struct RequestContext {
    pub(crate) calls: Vec<CandidateCall>,
    /// Whether the request from the server may also belong to a call that `calls` does not contain.
    pub(crate) others: bool,
}

/// Call that a request from a server may belong to.
#[derive(Clone)]
pub(crate) struct CandidateCall {
    /// Id of the client's unanswered request for this call. `None` if the server requested input in
    /// the result of the call (2026-07-28): that result has answered the client's request.
    pub(crate) request: Option<RequestId>,
    pub(crate) call: Arc<CallContext>,
}

impl RequestContext {
    /// Creates the context of an input request in the result of `call`, which belongs to `call`.
    pub(crate) fn from_call(call: &Arc<CallContext>) -> Self {
        let call = CandidateCall {
            request: None,
            call: Arc::clone(call),
        };
        Self {
            calls: vec![call],
            others: false,
        }
    }

    /// Returns the call that a server request belongs to. Returns `None` if several are possible.
    pub(crate) fn unambiguous_call(&self) -> Option<&CallContext> {
        match self.calls.as_slice() {
            [only] if !self.others => Some(&only.call),
            _ => None,
        }
    }

    /// Returns the idempotency keys of `calls`, which the elicitation handler receives.
    pub(crate) fn candidate_calls(&self) -> CandidateToolCalls {
        let mut candidates = CandidateToolCalls {
            calls: Vec::new(),
            others: self.others,
        };
        for candidate in &self.calls {
            match &candidate.call.idempotency_key {
                Some(key) if candidates.calls.contains(key) => {}
                Some(key) => candidates.calls.push(key.clone()),
                None => candidates.others = true,
            }
        }
        candidates
    }
}
