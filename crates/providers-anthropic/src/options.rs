//! What the mapping may be told beside the request.

use serde::Deserialize;

use crate::{ServerTool, config::DEFAULT_API_VERSION, rules::Effort};

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
///
/// A configuration file may hold any of its fields:
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
    /// Tools that the API runs on its own side, declared before those of the request. One whose name
    /// a tool of the request has too is left out, with a warning.
    pub server_tools: Vec<ServerTool>,
    /// What of a request is kept in the provider's prompt cache.
    pub cache: CachePolicy,
    /// `output_config.effort`, in place of what
    /// [`ChatRequest::reasoning`](switchboard_domain::ChatRequest::reasoning) comes to. A level that
    /// the model does not have is sent as the next lower one, with a warning.
    pub effort: Option<Effort>,
    /// Thinking between calls on the models that do so by a beta only (Claude 4 to 4.5, with a
    /// budget). Off by default: all earlier thinking of the turn is paid for again with every call.
    pub interleaved_thinking: bool,
    /// Adds to `anthropic-beta` what an option or a field of the request needs. Off for servers that
    /// refuse names which they do not know.
    pub automatic_betas: bool,
}

/// What of a request is kept in the provider's prompt cache, which makes reading it again cheaper and
/// faster, and writing it a little dearer (a quarter for five minutes, double for an hour).
///
/// A cache entry is the beginning of a request (tools, instructions, conversation, in this order) up to
/// a block that is marked. At most four blocks are marked, never one that the API refuses a mark on,
/// and always so that the next step of a run finds a mark where this step had its last one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(tag = "scope", rename_all = "snake_case", deny_unknown_fields)]
pub enum CachePolicy {
    /// Nothing, as far as this adapter has a say.
    #[default]
    None,
    /// The tools and the leading instructions.
    Prefix {
        /// How long.
        #[serde(default)]
        lifetime: CacheLifetime,
    },
    /// Also the conversation: its last two turns of the person (or of results) are marked.
    Turns {
        /// How long the conversation is kept.
        #[serde(default)]
        lifetime: CacheLifetime,
        /// How long the tools and instructions are kept, if not as long. The API takes no shorter
        /// lifetime before a longer one: the longer holds for both then.
        #[serde(default)]
        prefix_lifetime: Option<CacheLifetime>,
    },
}

/// How long a cache entry lives after it was last read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum CacheLifetime {
    /// Five minutes.
    #[default]
    #[serde(rename = "5m")]
    FiveMinutes,
    /// An hour.
    #[serde(rename = "1h")]
    Hour,
}

impl CachePolicy {
    /// The lifetime of the prefix and, where it is kept, that of the conversation.
    pub(crate) fn lifetimes(self) -> Option<(CacheLifetime, Option<CacheLifetime>)> {
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
    /// Whether this version of the API refuses temperature and the like to every model.
    pub(crate) fn refuses_sampling(&self) -> bool {
        // Versions are ISO dates, which sort as text.
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
        for (written, cache) in [
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
            let options = read(json!({"cache": written, "effort": "xhigh"})).unwrap();
            assert_eq!(options.cache, cache);
            assert_eq!(options.effort, Some(Effort::XHigh));
        }
    }

    #[test]
    fn a_wrong_word_is_named() {
        for (written, word) in [
            (json!({"cached": {}}), "cached"),
            (json!({"cache": {"scope": "turn"}}), "turn"),
            (json!({"cache": {"scope": "prefix", "ttl": "1h"}}), "ttl"),
            (
                json!({"cache": {"scope": "prefix", "lifetime": "2h"}}),
                "2h",
            ),
            (json!({"effort": "extreme"}), "extreme"),
        ] {
            let error = read(written).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn no_shorter_lifetime_comes_before_a_longer_one() {
        let (five, hour) = (CacheLifetime::FiveMinutes, CacheLifetime::Hour);
        let turns = |lifetime, prefix_lifetime| CachePolicy::Turns {
            lifetime,
            prefix_lifetime,
        };
        assert_eq!(
            turns(five, Some(hour)).lifetimes(),
            Some((hour, Some(five)))
        );
        assert_eq!(
            turns(hour, Some(five)).lifetimes(),
            Some((hour, Some(hour)))
        );
        assert_eq!(turns(hour, None).lifetimes(), Some((hour, Some(hour))));
        assert_eq!(CachePolicy::None.lifetimes(), None);
    }
}
