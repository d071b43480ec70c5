//! Completions: proposals for the value of an argument that a user is typing.

use std::collections::BTreeMap;

use rmcp::model::{
    ArgumentInfo, ClientRequest, CompleteRequest, CompleteRequestParams, CompletionContext,
    Reference,
};
use serde::{Deserialize, Serialize};

use crate::{
    features::request::{Capability, FeatureClient, FeatureError},
    host::McpHost,
    primitives::error::shorten_text,
};

/// Prompt or resource template that has the argument to complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompletionOf {
    /// An argument of a prompt.
    Prompt {
        /// Name of the prompt.
        name: String,
    },
    /// A variable of a resource template.
    ResourceTemplate {
        /// URI template exactly as the server lists it.
        uri_template: String,
    },
}

/// Request for completions of one argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionRequest {
    /// Prompt or resource template that has the argument.
    pub of: CompletionOf,
    /// Name of the argument to complete.
    pub argument: String,
    /// Text that the user has typed so far.
    pub value: String,
    /// Values of the other arguments that are already known.
    pub known: BTreeMap<String, String>,
}

/// Proposed values for an argument.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// Proposed values, the most likely first. The protocol allows at most 100 values.
    pub values: Vec<String>,
    /// Total number of matching values, if the server reports it.
    pub total: Option<u64>,
    /// Whether the server has more matching values.
    #[serde(default, rename(deserialize = "hasMore"))]
    pub has_more: bool,
}

/// Methods for completions of arguments.
impl McpHost {
    /// Requests proposals for the value of an argument.
    pub async fn complete_argument(
        &self,
        server: &str,
        request: CompletionRequest,
    ) -> Result<Completion, FeatureError> {
        let client = FeatureClient::new(self, server)?;
        let of = match request.of {
            CompletionOf::Prompt { name } => Reference::for_prompt(name),
            CompletionOf::ResourceTemplate { uri_template } => {
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
            let error = shorten_text(&error.to_string());
            client.invalid_answer_error(
                "completion/complete",
                format!("is not a valid completion: {error}"),
            )
        })
    }
}
