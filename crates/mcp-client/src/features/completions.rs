//! Completions: proposals for the value of an argument that a user is typing.

use std::collections::BTreeMap;

use rmcp::model::{
    ArgumentInfo, ClientRequest, CompleteRequest, CompleteRequestParams, CompletionContext,
    Reference,
};
use serde::{Deserialize, Serialize};

use crate::{
    features::feature_client::{Capability, FeatureClient, FeatureError},
    host::McpHost,
    primitives::error::shorten,
};

/// Prompt or resource template whose argument should be completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompletionTarget {
    /// The argument belongs to a prompt.
    Prompt {
        /// Name of the prompt.
        name: String,
    },
    /// The argument is a variable of a resource template.
    ResourceTemplate {
        /// URI template of the resource template, exactly as the server lists it.
        uri_template: String,
    },
}

/// Request for proposed values (completions) of one argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionRequest {
    /// Prompt or resource template that the argument belongs to.
    pub of: CompletionTarget,
    /// Name of the argument whose value should be completed.
    pub argument: String,
    /// Text that the user has typed so far.
    pub value: String,
    /// Values that the user has already entered for other arguments, by argument name.
    pub known: BTreeMap<String, String>,
}

/// Values that a server proposes for an argument of a prompt or resource template.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// Proposed values, the most likely first. The protocol allows at most 100 values.
    pub values: Vec<String>,
    /// Total number of matching values, including those not in `values`, if the server reports it.
    pub total: Option<u64>,
    /// Whether the server has more matching values than it sent.
    #[serde(default, rename(deserialize = "hasMore"))]
    pub has_more: bool,
}

/// Method that requests completions of arguments.
impl McpHost {
    /// Requests proposed values for an argument that a user is typing.
    pub async fn complete_argument(
        &self,
        server: &str,
        request: CompletionRequest,
    ) -> Result<Completion, FeatureError> {
        let client = FeatureClient::new(self, server)?;
        let of = match request.of {
            CompletionTarget::Prompt { name } => Reference::for_prompt(name),
            CompletionTarget::ResourceTemplate { uri_template } => {
                Reference::for_resource(uri_template)
            }
        };
        let argument = ArgumentInfo::new(request.argument, request.value);
        let mut params = CompleteRequestParams::new(of, argument);
        if !request.known.is_empty() {
            let known = request.known.into_iter().collect();
            params = params.with_context(CompletionContext::with_arguments(known));
        }
        let request = ClientRequest::CompleteRequest(CompleteRequest::new(params));
        let result = client
            .send_request(Capability::COMPLETIONS, request)
            .await?;
        let completion = Completion::deserialize(&result["completion"]);
        completion.map_err(|error| {
            let error = shorten(&error.to_string());
            let reason = format!("is not a valid completion: {error}");
            client.invalid_answer_error("completion/complete", reason)
        })
    }
}
