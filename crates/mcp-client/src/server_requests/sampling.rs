//! Sampling: a server requests a model answer. The configuration must allow it, within limits.

#![allow(deprecated, reason = "servers of every version use sampling")]

use rmcp::model::{CreateMessageRequestParams, CreateMessageResult, ErrorCode, ErrorData};
use switchboard_domain::SampleError;
use tokio::time::timeout;

use crate::{
    server_requests::{pending::register, responder::RequestResponder, sampling_messages},
    transport::call_context::RequestContext,
};

/// Error code for a rejected sampling request (MCP 2025-11-25, "Sampling", "Error Handling").
const REJECTED: ErrorCode = ErrorCode(-1);

impl RequestResponder {
    /// Answers a sampling request with a model call. Returns an error if sampling is not allowed,
    /// or if a limit is reached.
    pub(crate) async fn sample(
        &self,
        params: CreateMessageRequestParams,
        context: &RequestContext,
    ) -> Result<CreateMessageResult, ErrorData> {
        let Some((sampler, limits)) = &self.sampler else {
            return Err(ErrorData::method_not_found::<
                rmcp::model::CreateMessageRequestMethod,
            >());
        };
        let request = sampling_messages::request(&self.server, params, limits.max_tokens)
            .map_err(|reason| ErrorData::invalid_params(reason, None))?;
        if !self.take_sampling(limits.calls) {
            let reason = format!("all {} allowed model answers are used", limits.calls);
            tracing::warn!(server = self.server, reason, "sampling was rejected");
            return Err(ErrorData::new(REJECTED, reason, None));
        }
        let _pending = register(&self.pending, context)
            .ok_or_else(|| ErrorData::new(REJECTED, "too many pending requests", None))?;
        let response = timeout(self.answer_timeout, sampler.sample(&request)).await;
        let response = response.map_err(|_| {
            tracing::warn!(server = self.server, "sampling timed out");
            ErrorData::internal_error("the model did not answer in time", None)
        })?;
        let response = response.map_err(|error| {
            tracing::warn!(server = self.server, %error, "sampling failed");
            match error {
                SampleError::NotAllowed { reason, .. } => ErrorData::new(REJECTED, reason, None),
                // The error contains no details, because the server must not learn them about the
                // provider.
                _ => ErrorData::internal_error("the model did not answer", None),
            }
        })?;
        sampling_messages::result(response)
            .map_err(|reason| ErrorData::internal_error(reason, None))
    }
}
