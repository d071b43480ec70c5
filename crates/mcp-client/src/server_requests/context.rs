//! The calls that a request of a server may belong to.

use std::sync::Arc;

use rmcp::model::RequestId;
use switchboard_domain::Candidates;

use crate::calls::context::CallContext;

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
        Self {
            calls: vec![CandidateCall {
                request: None,
                call: Arc::clone(call),
            }],
            others: false,
        }
    }

    /// Returns the call, if it is known.
    pub(super) fn known_call(&self) -> Option<&CallContext> {
        match self.calls.as_slice() {
            [only] if !self.others => Some(&only.call),
            _ => None,
        }
    }

    /// Returns the calls by their idempotency keys.
    pub(super) fn candidates(&self) -> Candidates {
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
