//! Looks up the capabilities of a model by its name.
//!
//! The model catalog takes precedence. For OpenAI's own models, the series of the model (such as
//! GPT 5.4) adds rules for requests. Sources: error messages of the API in public issue threads
//! (openai/openai-openapi#541, litellm#34569, docker-agent#4165). Requests for an unknown model are
//! not restricted.

use switchboard_domain::ModelCapabilities;
use switchboard_providers_common::catalog;

use crate::Profile;

/// Returns the capabilities of `model` on a server with `profile`. The sources are the model
/// catalog and, for OpenAI's own models, the rules of the model series, such as GPT 5.4. The
/// catalog takes precedence. Unknown capabilities are `None`.
pub fn capabilities(model: &str, profile: &Profile) -> ModelCapabilities {
    // Azure is excluded: the name of an Azure deployment is arbitrary and not in the catalog.
    let has_model_name = profile.name != "azure";
    let known = has_model_name
        .then(|| catalog::find_model_entry(&profile.name, model))
        .flatten()
        .map(|entry| entry.capabilities);
    let of_series = series_capabilities(model, profile);
    catalog::join_capabilities(&known.unwrap_or_default(), &of_series)
}

fn series_capabilities(model: &str, profile: &Profile) -> ModelCapabilities {
    let Some(series) = ModelSeries::from_model_name(model).filter(|_| profile.openai_models) else {
        return ModelCapabilities::default();
    };
    let (context_window, max_output_tokens) = series.token_limits(model).unzip();
    ModelCapabilities {
        context_window,
        max_output_tokens,
        tools: Some(true),
        parallel_tools: Some(!matches!(series, ModelSeries::O(_))),
        forced_tool_choice: Some(true),
        structured_output: Some(true),
        // Support for `temperature` and `top_p`. It is `None` (unknown) if the reasoning of the
        // series can be turned off, because the API then accepts these fields only in requests
        // without reasoning.
        sampling: match series.reasoning_rules() {
            None => Some(true),
            Some(reasoning) if !reasoning.can_be_off => Some(false),
            Some(_) => None,
        },
        reasoning: Some(series.reasoning_rules().is_some()),
        images: Some(!model.starts_with("o3-mini")),
        documents: None,
        audio: Some(false),
        ..ModelCapabilities::default()
    }
}

/// A series of OpenAI's chat models, such as GPT 5.4 or o3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelSeries {
    /// A series of models with names such as `gpt-5.4` or `gpt-5.4-mini`.
    Gpt {
        /// Major and minor version of the series, such as (5, 4).
        version: (u32, u32),
        /// Whether this variant of the series, such as `-pro`, always reasons. The API then refuses
        /// `reasoning_effort: none`.
        always_reasons: bool,
    },
    /// A series of reasoning models such as `o1`, `o3` or `o4-mini`. The value is the number after
    /// the `o`, such as 4.
    O(u32),
}

/// How a model series with reasoning handles the request field `reasoning_effort`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReasoningEffortRules {
    /// Whether the model accepts `reasoning_effort: none`, which turns reasoning off.
    pub(crate) can_be_off: bool,
    /// Whether the model does not reason if the request omits `reasoning_effort`. Always `false` if
    /// `can_be_off` is `false`.
    pub(crate) off_by_default: bool,
    /// Whether Chat Completions refuses function tools in a request with reasoning: "Function tools
    /// with `reasoning_effort` are not supported for … in /v1/chat/completions".
    pub(crate) excludes_tools: bool,
}

impl ModelSeries {
    /// Returns the series that the model with this name belongs to. Returns `None` for an unknown
    /// name, and for a variant that does not follow the rules of its series, such as an audio,
    /// search or chat variant.
    pub(crate) fn from_model_name(model: &str) -> Option<Self> {
        let special = [
            "audio",
            "search",
            "realtime",
            "-chat",
            "transcribe",
            "instruct",
        ];
        if special.iter().any(|word| model.contains(word)) {
            return None;
        }
        if let Some(rest) = model.strip_prefix("gpt-") {
            let end = rest.find('-').unwrap_or(rest.len());
            let (version, variant) = rest.split_at(end);
            let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
            // The text `4o` in `gpt-4o` counts as version 4.0.
            let major: u32 = major.trim_end_matches('o').parse().ok()?;
            let version = (major, minor.parse().ok()?);
            let always_reasons = variant.starts_with("-pro")
                || variant.starts_with("-astra")
                || variant.starts_with("-rosalind")
                || (version == (6, 1) && variant.starts_with("-sol"));
            return Some(Self::Gpt {
                version,
                always_reasons,
            });
        }
        let generation = model.strip_prefix('o')?.split('-').next()?;
        Some(Self::O(generation.parse().ok()?))
    }

    /// Returns the rules of the series for `reasoning_effort`. Returns `None` for models without
    /// reasoning.
    pub(crate) fn reasoning_rules(self) -> Option<ReasoningEffortRules> {
        match self {
            Self::O(_) => Some(ReasoningEffortRules {
                can_be_off: false,
                off_by_default: false,
                excludes_tools: false,
            }),
            Self::Gpt { version, .. } if version < (5, 0) => None,
            Self::Gpt {
                version,
                always_reasons,
            } => {
                let can_be_off = version >= (5, 1) && !always_reasons;
                Some(ReasoningEffortRules {
                    can_be_off,
                    off_by_default: can_be_off && version < (5, 5),
                    excludes_tools: version >= (5, 4),
                })
            }
        }
    }

    /// Returns whether the API refuses the request field `stop` (stop sequences) for models of the
    /// series. Sources: a note in OpenAI's official SDK (o3 and o4-mini) and litellm's model list
    /// (GPT models with reasoning).
    pub(crate) fn refuses_stop_sequences(self) -> bool {
        match self {
            Self::O(generation) => generation >= 3,
            Self::Gpt { .. } => self.reasoning_rules().is_some(),
        }
    }

    /// Returns the context window and the maximum answer length of a model, both in tokens. Returns
    /// `None` if the limits of the series are unknown.
    fn token_limits(self, model: &str) -> Option<(u64, u64)> {
        match self {
            Self::O(_) => Some((200_000, 100_000)),
            Self::Gpt { version, .. } => match version {
                (4, 1) => Some((1_047_576, 32_768)),
                (4, 0) if model.starts_with("gpt-4o") => Some((128_000, 16_384)),
                (5, 0..=3) => Some((400_000, 128_000)),
                (5, 5..) | (6, _) => Some((1_050_000, 128_000)),
                _ => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reasoning(model: &str) -> Option<ReasoningEffortRules> {
        ModelSeries::from_model_name(model).and_then(ModelSeries::reasoning_rules)
    }

    #[test]
    fn the_series_is_read_from_the_name() {
        let gpt = |version| {
            Some(ModelSeries::Gpt {
                version,
                always_reasons: false,
            })
        };
        assert_eq!(ModelSeries::from_model_name("gpt-4o-mini"), gpt((4, 0)));
        assert_eq!(
            ModelSeries::from_model_name("gpt-5.4-mini-2026-03-17"),
            gpt((5, 4))
        );
        assert_eq!(ModelSeries::from_model_name("gpt-6-luna"), gpt((6, 0)));
        assert_eq!(ModelSeries::from_model_name("gpt-6.1-terra"), gpt((6, 1)));
        assert_eq!(
            ModelSeries::from_model_name("o4-mini"),
            Some(ModelSeries::O(4))
        );
        for unknown in [
            "gpt-audio-mini",
            "gpt-5-chat-latest",
            "gpt-oss-120b",
            "omni",
            "llama3.3",
            "",
        ] {
            assert_eq!(ModelSeries::from_model_name(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn the_rules_for_reasoning_effort_depend_on_the_generation() {
        let rules = |model| {
            reasoning(model).map(|it| (it.can_be_off, it.off_by_default, it.excludes_tools))
        };
        assert_eq!(rules("gpt-4.1"), None);
        assert_eq!(rules("o3"), Some((false, false, false)));
        assert_eq!(rules("gpt-5"), Some((false, false, false)));
        assert_eq!(rules("gpt-5.1"), Some((true, true, false)));
        assert_eq!(rules("gpt-5.4"), Some((true, true, true)));
        assert_eq!(rules("gpt-5.6-luna"), Some((true, false, true)));
        assert_eq!(rules("gpt-6-luna"), Some((true, false, true)));
        assert_eq!(rules("gpt-6.1-terra"), Some((true, false, true)));
        for always in ["gpt-6-astra", "gpt-6.1-sol", "gpt-5.4-pro"] {
            assert_eq!(rules(always), Some((false, false, true)), "{always}");
        }
    }

    #[test]
    fn models_of_other_servers_have_no_known_limits() {
        assert_eq!(
            capabilities("gpt-6-luna", &Profile::generic()),
            ModelCapabilities::default()
        );
        let luna = capabilities("gpt-6-luna", &Profile::openai());
        assert_eq!(luna.context_window, Some(1_050_000));
        assert_eq!(luna.sampling, None);
        let o3 = capabilities("o3", &Profile::openai());
        assert_eq!((o3.sampling, o3.parallel_tools), (Some(false), Some(false)));
    }

    #[test]
    fn the_catalogue_takes_precedence() {
        let of = |profile: Profile, model| capabilities(model, &profile);
        let old = of(Profile::openai(), "gpt-4-0613");
        assert_eq!(
            (old.images, old.structured_output),
            (Some(false), Some(false))
        );
        // The catalog lacks this value, so the rules of the series supply it.
        assert_eq!(old.forced_tool_choice, Some(true));
        let flash = of(Profile::deepseek(), "deepseek-v4-flash");
        assert_eq!(flash.context_window, Some(1_000_000));
        assert_eq!(flash.structured_output, Some(false));
        // The name of a local model is arbitrary.
        assert_eq!(
            of(Profile::llamacpp(), "deepseek-v4-flash"),
            ModelCapabilities::default()
        );
    }

    /// A new contradiction means that a rule of the series or an entry of the catalog is wrong.
    #[test]
    fn the_series_contradicts_the_catalogue_only_in_known_cases() {
        let openai = Profile::openai();
        let contradicted: Vec<_> = catalog::list_models("openai")
            .filter(|entry| {
                let ours = series_capabilities(entry.name, &openai);
                catalog::join_capabilities(&entry.capabilities, &ours)
                    != catalog::join_capabilities(&ours, &entry.capabilities)
            })
            .map(|entry| entry.name)
            .collect();
        let old = [
            "gpt-3.5-turbo",
            "gpt-3.5-turbo-0125",
            "gpt-3.5-turbo-1106",
            "gpt-3.5-turbo-16k",
            "gpt-4",
            "gpt-4-0613",
            "gpt-4-1106-preview",
            "gpt-4-turbo",
            "gpt-4o-2024-05-13",
        ];
        let special = ["gpt-5-pro", "gpt-5.4-pro", "gpt-5.5-pro", "gpt-5.6-cyber"];
        assert_eq!(contradicted, [&old[..], &special[..]].concat());
    }
}
