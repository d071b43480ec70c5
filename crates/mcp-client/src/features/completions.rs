//! Completions: proposals for the value of an argument that a user is typing.

use std::collections::BTreeMap;

use rmcp::model::{
    ArgumentInfo, ClientRequest, CompleteRequest, CompleteRequestParams, CompletionContext,
    Reference,
};
use serde::{Deserialize, Serialize};

use crate::{
    common::error::shortened,
    features::request::{Capability, FeatureClient, FeatureError},
    host::McpHost,
};

/// The owner of a completed argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompletionOf {
    /// A prompt.
    Prompt {
        /// The name of the prompt.
        name: String,
    },
    /// A resource template. Its variables are the arguments.
    ResourceTemplate {
        /// The template, as the server lists it.
        uri_template: String,
    },
}

/// A request for completions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionRequest {
    /// The owner of the argument.
    pub of: CompletionOf,
    /// The name of the argument.
    pub argument: String,
    /// The text that was typed so far.
    pub value: String,
    /// The known values of other arguments.
    pub known: BTreeMap<String, String>,
}

/// Proposed values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// The values, the most likely first. The protocol allows 100.
    pub values: Vec<String>,
    /// The total number of values, if the server reports it.
    pub total: Option<u64>,
    /// Whether more values exist.
    #[serde(default, rename(deserialize = "hasMore"))]
    pub has_more: bool,
}

/// Completions.
impl McpHost {
    /// Returns proposals for the value of an argument.
    pub async fn complete(
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
        let result = client.request(Capability::Completions, request).await?;
        let completion = Completion::deserialize(&result["completion"]);
        completion.map_err(|error| {
            let error = shortened(&error.to_string());
            client.invalid(
                "completion/complete",
                format!("is not a valid completion: {error}"),
            )
        })
    }
}
