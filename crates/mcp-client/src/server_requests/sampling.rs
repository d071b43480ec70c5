//! Sampling: a server wants a model's answer. Off unless a server is allowed to, and then within limits.

#![allow(
    deprecated,
    reason = "servers of both eras still send sampling requests"
)]

use rmcp::model::{CreateMessageRequestParams, CreateMessageResult, ErrorCode, ErrorData};
use serde::{Deserialize, Serialize};
use switchboard_domain::SampleError;
use tokio::time::timeout;

use crate::server_requests::sampling_messages;
use crate::server_requests::{
    responder::Asks,
    within::{Within, count},
};

/// The specification's example of the error for a request that was turned down (2025-11-25,
/// "Sampling", "Error Handling").
const TURNED_DOWN: ErrorCode = ErrorCode(-1);

/// How much a server may ask of a model. What it asks is paid for by whoever runs the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SamplingLimits {
    /// Answers in all, while the host is there.
    pub calls: u32,
    /// Tokens of one answer; a server that wants more gets these.
    pub max_tokens: u32,
}

impl Default for SamplingLimits {
    /// 20 answers of 2048 tokens.
    fn default() -> Self {
        Self {
            calls: 20,
            max_tokens: 2048,
        }
    }
}

impl Asks {
    pub(crate) async fn sample(
        &self,
        params: CreateMessageRequestParams,
        within: &Within,
    ) -> Result<CreateMessageResult, ErrorData> {
        let Some((sampler, limits)) = &self.sampler else {
            return Err(ErrorData::method_not_found::<
                rmcp::model::CreateMessageRequestMethod,
            >());
        };
        let request = sampling_messages::request(&self.server, params, limits.max_tokens)
            .map_err(|why| ErrorData::invalid_params(why, None))?;
        if !self.take_sample(limits.calls) {
            let why = format!("all {} answers that it may have were given", limits.calls);
            tracing::warn!(server = self.server, why, "a server may not ask a model");
            return Err(ErrorData::new(TURNED_DOWN, why, None));
        }
        let _asking = count(&self.asking, within)
            .ok_or_else(|| ErrorData::new(TURNED_DOWN, "it asks too much at once", None))?;
        let response = timeout(self.patience, sampler.sample(&request)).await;
        let response = response.map_err(|_| {
            tracing::warn!(server = self.server, "a model does not answer a server");
            ErrorData::internal_error("the model did not answer in time", None)
        })?;
        let response = response.map_err(|error| {
            tracing::warn!(server = self.server, %error, "a server gets no answer of a model");
            match error {
                SampleError::NotAllowed { reason, .. } => ErrorData::new(TURNED_DOWN, reason, None),
                // What went wrong with a provider is none of the server's business.
                _ => ErrorData::internal_error("the model did not answer", None),
            }
        })?;
        sampling_messages::result(response).map_err(|why| ErrorData::internal_error(why, None))
    }
}
