//! Sampling: a server requests a model answer, if the configuration allows it and within limits.

#![allow(deprecated, reason = "servers of every version use sampling")]

use rmcp::model::{CreateMessageRequestParams, CreateMessageResult, ErrorCode, ErrorData};
use switchboard_domain::SampleError;
use tokio::time::timeout;

use crate::{
    server_requests::{
        pending_requests::register_pending, responder::RequestResponder, sampling_messages,
    },
    transport::call_context::RequestContext,
};

/// Error code for a rejected sampling request (MCP 2025-11-25, "Sampling", "Error Handling").
const REJECTED: ErrorCode = ErrorCode(-1);

impl RequestResponder {
    /// Answers a sampling request with a model call. Returns an error if sampling is not allowed,
    /// if a limit is reached or if the model call fails.
    pub(crate) async fn answer_sampling(
        &self,
        params: CreateMessageRequestParams,
        context: &RequestContext,
    ) -> Result<CreateMessageResult, ErrorData> {
        let Some((sampler, limits)) = &self.sampler else {
            return Err(ErrorData::method_not_found::<
                rmcp::model::CreateMessageRequestMethod,
            >());
        };
        let request = sampling_messages::to_sample_request(&self.server, params, limits.max_tokens)
            .map_err(|reason| ErrorData::invalid_params(reason, None))?;
        let _pending = register_pending(&self.pending, context)
            .ok_or_else(|| ErrorData::new(REJECTED, "too many pending requests", None))?;
        if !self.count_sampling_request(limits.calls) {
            let reason = format!("the limit of {} model answers is reached", limits.calls);
            tracing::warn!(server = self.server, reason, "rejected a sampling request");
            return Err(ErrorData::new(REJECTED, reason, None));
        }
        let response = timeout(self.answer_timeout, sampler.sample(&request)).await;
        let response = response.map_err(|_| {
            tracing::warn!(server = self.server, "sampling timed out");
            ErrorData::internal_error("the model did not answer in time", None)
        })?;
        let response = response.map_err(|error| {
            tracing::warn!(server = self.server, %error, "sampling failed");
            match error {
                SampleError::NotAllowed { reason, .. } => ErrorData::new(REJECTED, reason, None),
                // The server receives no details of the error, because they may describe the model
                // provider.
                _ => ErrorData::internal_error("the model did not answer", None),
            }
        })?;
        sampling_messages::to_sampling_result(response)
            .map_err(|reason| ErrorData::internal_error(reason, None))
    }
}
