//! Options of the mapping between requests and the Messages API.

use serde::Deserialize;

use crate::{ServerTool, model_rules::Effort};

/// The default API version. Every compatible server supports this version. Versions from 2026-10-21
/// refuse `temperature` and similar fields for every model.
pub const DEFAULT_API_VERSION: &str = "2023-06-01";

/// The first API version that refuses `temperature`, `top_p` and `top_k` with HTTP status 400 for
/// every model.
const VERSION_WITHOUT_SAMPLING: &str = "2026-10-21";

/// Options of the mapping between requests and the Messages API.
///
/// ```
/// use switchboard_providers_anthropic::MessagesOptions;
///
/// let options = MessagesOptions { strict_tools: true, ..MessagesOptions::default() };
/// assert!(options.replay_reasoning);
/// ```
///
/// Every field is optional in a configuration file:
///
/// ```
/// # use switchboard_providers_anthropic::{CachePolicy, MessagesOptions};
/// let options: MessagesOptions = serde_json::from_str(
///     r#"{"server_tools": [{"type": "web_search", "max_uses": 3}],
///         "cache": {"scope": "turns", "prefix_lifetime": "1h"}}"#,
/// )?;
/// assert_eq!(options.server_tools.len(), 1);
/// assert_ne!(options.cache, CachePolicy::None);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MessagesOptions {
    /// Value of the `anthropic-version` header, a date. Newer versions refuse some fields of older
    /// versions.
    pub api_version: String,
    /// The output limit in tokens for requests without a limit. `None` selects 32,000 or the
    /// model's maximum, whichever is less, and 8,192 for unknown models.
    pub default_max_tokens: Option<u32>,
    /// Whether the API enforces the input schemas of tools (`strict`), if the schemas and the API's
    /// limits per request allow it. Off by default: the API compiles all strict schemas of a
    /// request into one grammar and refuses the request when the grammar is too large.
    pub strict_tools: bool,
    /// Value of the request field `metadata.user_id`: an opaque id of the end user. The id must not
    /// be a name or an address.
    pub user_id: Option<String>,
    /// Whether the thinking of earlier answers is sent back to the model that created it.
    pub replay_reasoning: bool,
    /// Tools that the API runs on its own servers. They precede the request's tools in the list. A
    /// server tool with the name of one of the request's tools is dropped with a warning.
    pub server_tools: Vec<ServerTool>,
    /// Parts of a request that the provider's prompt cache stores, and for how long.
    pub cache: CachePolicy,
    /// Value of `output_config.effort`. It overrides
    /// [`ChatRequest::reasoning`](switchboard_domain::ChatRequest::reasoning). An effort that the
    /// model does not support is replaced by the next lower one, with a warning.
    pub effort: Option<Effort>,
    /// Whether Claude 4 to 4.5 may think between tool calls, which requires a beta header and a
    /// thinking budget. Off by default, because every call is billed for all earlier thinking of
    /// the turn.
    pub interleaved_thinking: bool,
    /// Whether the `anthropic-beta` header automatically contains the values that options and
    /// request fields require. The value `false` is for servers that refuse unknown values of the
    /// header.
    pub automatic_betas: bool,
}

/// The use of the provider's prompt cache. Reading from the cache is cheaper and faster than
/// sending new input. Writing costs 1.25 times the input price for a lifetime of five minutes, and
/// twice the input price for one hour.
///
/// A cache entry is a prefix of a request (tools, instructions, conversation) that ends with a
/// breakpoint. A request has at most four breakpoints. The next request of a conversation also has
/// a breakpoint where this request had its last one, so the API finds the entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(tag = "scope", rename_all = "snake_case", deny_unknown_fields)]
pub enum CachePolicy {
    /// No cache breakpoints are set, so that nothing is cached.
    #[default]
    None,
    /// Cache breakpoints are set after the tools and after the instructions that precede the
    /// conversation.
    Prefix {
        /// Lifetime of the cache entries of tools and instructions.
        #[serde(default)]
        lifetime: CacheLifetime,
    },
    /// Cache breakpoints are set as with [`Self::Prefix`], and at the end of the last two user
    /// messages. Messages with tool results count as user messages.
    Turns {
        /// Lifetime of the cache entries of the conversation.
        #[serde(default)]
        lifetime: CacheLifetime,
        /// Lifetime of the cache entry of tools and instructions. The default is `lifetime`. A
        /// shorter lifetime is replaced by `lifetime`, because the API requires that earlier parts
        /// of a request live at least as long as later parts.
        #[serde(default)]
        prefix_lifetime: Option<CacheLifetime>,
    },
}

/// The lifetime of a prompt cache entry after its last use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum CacheLifetime {
    /// The cache entry lives for five minutes after its last use.
    #[default]
    #[serde(rename = "5m")]
    FiveMinutes,
    /// The cache entry lives for one hour after its last use.
    #[serde(rename = "1h")]
    Hour,
}

impl CachePolicy {
    /// Returns the cache lifetime of the prefix (tools and instructions) and of the conversation.
    /// The lifetime of the conversation is `None` if only the prefix is cached. Returns `None` if
    /// nothing is cached.
    pub(crate) fn cache_lifetimes(self) -> Option<(CacheLifetime, Option<CacheLifetime>)> {
        match self {
            Self::None => None,
            Self::Prefix { lifetime } => Some((lifetime, None)),
            Self::Turns {
                lifetime,
                prefix_lifetime,
            } => {
                let prefix = prefix_lifetime.unwrap_or(lifetime).max(lifetime);
                Some((prefix, Some(lifetime)))
            }
        }
    }
}

impl Default for MessagesOptions {
    fn default() -> Self {
        Self {
            api_version: DEFAULT_API_VERSION.to_owned(),
            default_max_tokens: None,
            strict_tools: false,
            user_id: None,
            replay_reasoning: true,
            server_tools: Vec::new(),
            cache: CachePolicy::None,
            effort: None,
            interleaved_thinking: false,
            automatic_betas: true,
        }
    }
}

impl MessagesOptions {
    /// Returns whether this API version refuses sampling parameters for every model.
    pub(crate) fn rejects_sampling_params(&self) -> bool {
        // API versions are ISO dates, which sort correctly as text.
        self.api_version.as_str() >= VERSION_WITHOUT_SAMPLING
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(value: Value) -> Result<MessagesOptions, serde_json::Error> {
        serde_json::from_value(value)
    }

    #[test]
    fn options_are_read_from_configuration() {
        assert_eq!(read(json!({})).unwrap(), MessagesOptions::default());
        let hour = CacheLifetime::Hour;
        for (configured, cache) in [
            (json!({"scope": "none"}), CachePolicy::None),
            (
                json!({"scope": "prefix", "lifetime": "1h"}),
                CachePolicy::Prefix { lifetime: hour },
            ),
            (
                json!({"scope": "turns", "prefix_lifetime": "1h"}),
                CachePolicy::Turns {
                    lifetime: CacheLifetime::FiveMinutes,
                    prefix_lifetime: Some(hour),
                },
            ),
        ] {
            let options = read(json!({"cache": configured, "effort": "xhigh"})).unwrap();
            assert_eq!(options.cache, cache);
            assert_eq!(options.effort, Some(Effort::XHigh));
        }
    }

    #[test]
    fn an_error_of_the_configuration_names_the_wrong_word() {
        for (configured, word) in [
            (json!({"cached": {}}), "cached"),
            (json!({"cache": {"scope": "turn"}}), "turn"),
            (json!({"cache": {"scope": "prefix", "ttl": "1h"}}), "ttl"),
            (
                json!({"cache": {"scope": "prefix", "lifetime": "2h"}}),
                "2h",
            ),
            (json!({"effort": "extreme"}), "extreme"),
        ] {
            let error = read(configured).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn the_prefix_never_has_the_shorter_lifetime() {
        let (five, hour) = (CacheLifetime::FiveMinutes, CacheLifetime::Hour);
        let turns = |lifetime, prefix_lifetime| CachePolicy::Turns {
            lifetime,
            prefix_lifetime,
        };
        assert_eq!(
            turns(five, Some(hour)).cache_lifetimes(),
            Some((hour, Some(five)))
        );
        assert_eq!(
            turns(hour, Some(five)).cache_lifetimes(),
            Some((hour, Some(hour)))
        );
        assert_eq!(
            turns(hour, None).cache_lifetimes(),
            Some((hour, Some(hour)))
        );
        assert_eq!(CachePolicy::None.cache_lifetimes(), None);
    }
}
