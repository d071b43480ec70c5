//! Completions: what a person may mean who has begun to type an argument.

use std::collections::BTreeMap;

use rmcp::model::{
    ArgumentInfo, ClientRequest, CompleteRequest, CompleteRequestParams, CompletionContext,
    Reference,
};
use serde::Serialize;
use serde_json::Value;

use crate::features::{
    error::FeatureError,
    request::{Asker, Capability},
};
use crate::host::McpHost;

/// Whose argument is completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompletionOf {
    /// That of a prompt.
    Prompt {
        /// The prompt's name.
        name: String,
    },
    /// A variable of a resource template.
    ResourceTemplate {
        /// The template, as its server lists it.
        uri_template: String,
    },
}

/// What is to be completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionRequest {
    /// Whose argument it is.
    pub of: CompletionOf,
    /// The argument's name.
    pub argument: String,
    /// What is typed so far.
    pub value: String,
    /// The other arguments, as far as they are known.
    pub known: BTreeMap<String, String>,
}

/// What may be meant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Completion {
    /// Whole values, the likeliest first. At most 100, says the protocol.
    pub values: Vec<String>,
    /// How many there are in all, where the server says it.
    pub total: Option<u64>,
    /// Whether there are more than these.
    pub has_more: bool,
}

/// What a person may mean.
impl McpHost {
    /// What may be meant by what is typed so far.
    pub async fn complete(
        &self,
        server: &str,
        wanted: CompletionRequest,
    ) -> Result<Completion, FeatureError> {
        let mut asker = Asker::new(self, server).await?;
        let of = match wanted.of {
            CompletionOf::Prompt { name } => Reference::for_prompt(name),
            CompletionOf::ResourceTemplate { uri_template } => {
                Reference::for_resource(uri_template)
            }
        };
        let argument = ArgumentInfo::new(wanted.argument, wanted.value);
        let mut params = CompleteRequestParams::new(of, argument);
        if !wanted.known.is_empty() {
            let known = wanted.known.into_iter().collect();
            params = params.with_context(CompletionContext::with_arguments(known));
        }
        let request = ClientRequest::CompleteRequest(CompleteRequest::new(params));
        let method = request.method().to_owned();
        let result = asker.ask(Capability::Completions, request).await?;
        let completion = result.get("completion");
        let values = completion.and_then(|completion| completion.get("values"));
        let (Some(completion), Some(Value::Array(values))) = (completion, values) else {
            return Err(FeatureError::Malformed {
                server: server.to_owned(),
                request: method,
                reason: "it has no values".to_owned(),
            });
        };
        let texts: Vec<String> = values
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        if texts.len() < values.len() {
            let odd = values.len() - texts.len();
            tracing::warn!(server, odd, "values that are no text are left out");
        }
        Ok(Completion {
            values: texts,
            total: completion.get("total").and_then(Value::as_u64),
            has_more: completion.get("hasMore").and_then(Value::as_bool) == Some(true),
        })
    }
}
