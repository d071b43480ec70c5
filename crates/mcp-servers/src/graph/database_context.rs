//! The conversation to which a tool call belongs.

use schemars::JsonSchema;
use serde::{Deserialize, de::IgnoredAny};

/// Conversation id for tool calls without the argument `databaseContext`. All such calls share one
/// graph.
pub(crate) const DEFAULT_CONVERSATION: &str = "default";

/// Context that the host adds to a call. Only the conversation id is used. The other fields are for
/// servers with a graph behind an HTTP API.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(
    dead_code,
    reason = "the ignored fields are never read, because they may be credentials"
)]
pub(crate) struct DatabaseContext {
    /// The id of the conversation, which selects the graph.
    #[schemars(length(min = 1, max = 200))]
    conversation_id: String,
    /// Id of an artifact. This server ignores it.
    #[schemars(with = "Option<String>")]
    #[serde(default)]
    artifact_id: IgnoredAny,
    /// URL of a graph API. This server ignores it.
    #[schemars(with = "Option<String>")]
    #[serde(default)]
    api_base_url: IgnoredAny,
    /// Access token of a graph API. This server ignores it.
    #[schemars(with = "Option<String>")]
    #[serde(default)]
    access_token: IgnoredAny,
}

/// Returns the conversation id in the argument `databaseContext` of a call, or
/// [`DEFAULT_CONVERSATION`] if the call does not have this argument.
pub(crate) fn conversation_id(context: Option<&DatabaseContext>) -> &str {
    context.map_or(DEFAULT_CONVERSATION, |context| &context.conversation_id)
}
