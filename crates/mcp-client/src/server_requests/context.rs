//! The call that a request of a server belongs to.

use std::{future::pending, sync::Arc};

use rmcp::model::RequestId;

use crate::{
    calls::context::CallContext,
    transport::open_requests::{CandidateCalls, OpenRequests},
};

/// The call that a request of a server belongs to.
#[derive(Clone)]
pub(crate) enum RequestContext {
    /// A known call.
    Call {
        /// The request during which the server asks. `None` if the server asks in its result:
        /// then the caller drops the future when the call ends.
        request: Option<RequestId>,
        call: Arc<CallContext>,
    },
    /// The server does not name the call.
    Candidates(Arc<CandidateCalls>),
}

impl RequestContext {
    /// Returns the context of a request that a server sends in a result.
    pub(crate) fn of_call(call: &Arc<CallContext>) -> Self {
        Self::Call {
            request: None,
            call: Arc::clone(call),
        }
    }

    /// Waits until the calls have ended, so that no answer is needed.
    pub(crate) async fn closed(&self, requests: &OpenRequests) {
        match self {
            Self::Call {
                request: Some(request),
                ..
            } => requests.closed(request).await,
            Self::Call { request: None, .. } => pending().await,
            Self::Candidates(candidates) => requests.all_closed(candidates).await,
        }
    }

    /// Returns the call, if it is known.
    pub(super) fn known_call(&self) -> Option<Arc<CallContext>> {
        match self {
            Self::Call { call, .. } => Some(Arc::clone(call)),
            Self::Candidates(candidates) => candidates.only(),
        }
    }

    /// Returns every call that the request may belong to.
    pub(super) fn calls(&self) -> Vec<Arc<CallContext>> {
        match self {
            Self::Call { call, .. } => vec![Arc::clone(call)],
            Self::Candidates(candidates) => candidates.calls(),
        }
    }
}
