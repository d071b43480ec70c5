//! Which conversation a call is about.

use schemars::JsonSchema;
use serde::{Deserialize, de::IgnoredAny};

/// The conversation of calls that name none.
pub(crate) const DEFAULT_CONVERSATION: &str = "default";

/// What the host adds to a call. Only the conversation is used: the rest is for servers that keep
/// their graph behind an HTTP API, and the host sends the same to all.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DatabaseContext {
    /// The conversation whose graph is meant.
    #[schemars(length(min = 1, max = 200))]
    conversation_id: String,
    /// Taken and not used.
    #[schemars(with = "Option<String>")]
    #[serde(default)]
    #[expect(dead_code, reason = "read by no one, so that it can go nowhere")]
    artifact_id: IgnoredAny,
    /// Taken and not used.
    #[schemars(with = "Option<String>")]
    #[serde(default)]
    #[expect(dead_code, reason = "read by no one, so that it can go nowhere")]
    api_base_url: IgnoredAny,
    /// Taken and not used.
    #[schemars(with = "Option<String>")]
    #[serde(default)]
    #[expect(dead_code, reason = "read by no one, so that it can go nowhere")]
    access_token: IgnoredAny,
}

/// The conversation that a call is about.
pub(crate) fn conversation(context: Option<&DatabaseContext>) -> &str {
    context.map_or(DEFAULT_CONVERSATION, |context| &context.conversation_id)
}
