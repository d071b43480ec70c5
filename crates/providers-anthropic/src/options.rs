//! What the mapping may be told beside the request.

use crate::config::DEFAULT_API_VERSION;

/// From this version of the API on, `temperature`, `top_p` and `top_k` answer 400.
const VERSION_WITHOUT_SAMPLING: &str = "2026-10-21";

/// What the mapping may be told beside the request.
///
/// ```
/// use switchboard_providers_anthropic::MessagesOptions;
///
/// let careful = MessagesOptions { strict_tools: true, ..MessagesOptions::default() };
/// assert!(careful.replay_reasoning);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessagesOptions {
    /// The `anthropic-version` header, which is a date: newer versions refuse what older ones took.
    pub api_version: String,
    /// `max_tokens`, which the API requires, where the request does not say one. `None`: 32,000 or
    /// what the model can write, whichever is less; 8,192 for models of which nothing is known.
    pub default_max_tokens: Option<u32>,
    /// Holds tool inputs to their schemas (`strict`) where the schema allows it and as far as the
    /// API's limits per request go. Off by default: the API compiles all strict schemas of a request
    /// into one grammar and refuses the request when that grows too large.
    pub strict_tools: bool,
    /// `metadata.user_id`: an opaque id of the person behind the request, never a name or address.
    pub user_id: Option<String>,
    /// Sends the model's own thinking back to it. Off for one more try when the API says that the
    /// thinking belongs to another conversation.
    pub replay_reasoning: bool,
}

impl Default for MessagesOptions {
    fn default() -> Self {
        Self {
            api_version: DEFAULT_API_VERSION.to_owned(),
            default_max_tokens: None,
            strict_tools: false,
            user_id: None,
            replay_reasoning: true,
        }
    }
}

impl MessagesOptions {
    /// Whether this version of the API refuses temperature and the like to every model.
    pub(crate) fn refuses_sampling(&self) -> bool {
        // Versions are ISO dates, which sort as text.
        self.api_version.as_str() >= VERSION_WITHOUT_SAMPLING
    }
}
