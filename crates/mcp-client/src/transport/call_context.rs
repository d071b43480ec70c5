//! The identity of a call, and the calls that a request of a server may belong to.

use std::sync::Arc;

use rmcp::model::{JsonObject, RequestId, RequestMetaObject};
use switchboard_domain::Candidates;

/// The key in `_meta` of a call for its idempotency key, which is the same for every attempt. The
/// protocol has no name for it, so it has a prefix of its own.
pub(crate) const IDEMPOTENCY_KEY: &str = "switchboard/idempotency-key";

/// A call, or another request during which a server may send requests. All attempts share it.
/// Contexts are compared by address.
#[derive(Debug, Default)]
pub(crate) struct CallContext {
    /// The idempotency key of the call. An elicitor finds the run of the call by it.
    pub(crate) idempotency_key: Option<String>,
}

impl CallContext {
    pub(crate) fn new(idempotency_key: Option<String>) -> Arc<Self> {
        Arc::new(Self { idempotency_key })
    }

    /// Returns the `_meta` that every request of the call has.
    pub(crate) fn request_meta(&self) -> Option<RequestMetaObject> {
        let key = self.idempotency_key.as_deref()?;
        let mut meta = JsonObject::new();
        meta.insert(IDEMPOTENCY_KEY.to_owned(), key.into());
        Some(RequestMetaObject::from(meta))
    }
}

/// The calls that a request of a server may belong to. One call if it is known.
#[derive(Clone, Default)]
pub(crate) struct RequestContext {
    pub(crate) calls: Vec<CandidateCall>,
    /// Whether the request may also belong to an unknown call.
    pub(crate) others: bool,
}

/// A call that a request of a server may belong to.
#[derive(Clone)]
pub(crate) struct CandidateCall {
    /// The request during which the server asks. `None` if the server asks in its result: then the
    /// caller drops the future when the call ends.
    pub(crate) request: Option<RequestId>,
    pub(crate) call: Arc<CallContext>,
}

impl RequestContext {
    /// Returns the context of a request that a server sends in a result.
    pub(crate) fn of_call(call: &Arc<CallContext>) -> Self {
        let call = CandidateCall {
            request: None,
            call: Arc::clone(call),
        };
        Self {
            calls: vec![call],
            others: false,
        }
    }

    /// Returns the call, if it is known.
    pub(crate) fn known_call(&self) -> Option<&CallContext> {
        match self.calls.as_slice() {
            [only] if !self.others => Some(&only.call),
            _ => None,
        }
    }

    /// Returns the calls by their idempotency keys.
    pub(crate) fn candidates(&self) -> Candidates {
        let mut candidates = Candidates {
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
