//! Looks up the capabilities of Google's models by their names.
//!
//! The model catalog takes precedence. The model series, such as Gemini 2.5 Flash, adds
//! capabilities that the catalog lacks and rules for requests. Sources: the types of the official
//! SDK (google-genai 3.4.0) and the API's guides to thinking and thought signatures. Unknown models
//! are not restricted.

use switchboard_domain::ModelCapabilities;
use switchboard_providers_common::catalog;

/// Returns the capabilities of a Google model. `model` is its name with or without the prefix
/// `models/`. The model catalog takes precedence over the rules for the model's series, such as
/// Gemini 2.5 Flash. Unknown capabilities are `None`.
pub fn capabilities(model: &str) -> ModelCapabilities {
    let known = catalog::find_model_entry("gemini", model).map(|entry| entry.capabilities);
    let of_series = series_capabilities(model);
    let mut both = catalog::join_capabilities(&known.unwrap_or_default(), &of_series);
    if ModelSeries::from_model_name(model).is_some_and(|series| series.line == ModelLine::Gemma) {
        // The catalog entries of Gemma describe other servers. The Gemini API has refused functions
        // for older Gemma versions, so the rules of the series decide whether tools are supported.
        both.tools = of_series.tools;
    }
    both
}

fn series_capabilities(model: &str) -> ModelCapabilities {
    let Some(series) = ModelSeries::from_model_name(model) else {
        return ModelCapabilities::default();
    };
    let (context_window, max_output_tokens) = series.token_limits().unzip();
    let common = ModelCapabilities {
        context_window,
        max_output_tokens,
        reasoning: Some(series.thinking_control().is_some()),
        images: Some(true),
        ..ModelCapabilities::default()
    };
    if series.line == ModelLine::Gemma {
        return ModelCapabilities {
            tools: (series.version >= (4, 0)).then_some(true),
            ..common
        };
    }
    ModelCapabilities {
        tools: Some(true),
        parallel_tools: Some(true),
        forced_tool_choice: Some(true),
        structured_output: Some(true),
        sampling: series.supports_sampling(),
        documents: Some(true),
        audio: Some(true),
        ..common
    }
}

/// A series of Google's chat models, such as Gemini 2.5 Flash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ModelSeries {
    line: ModelLine,
    /// Major and minor version of the series, such as (2, 5).
    version: (u32, u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ModelLine {
    Pro,
    Flash,
    FlashLite,
    /// A Gemini model line other than Pro, Flash and Flash-Lite, such as Argon.
    Other,
    Gemma,
}

/// The request field that controls how much a model thinks, and the values that the model accepts
/// in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThinkingControl {
    /// A request controls thinking with the field `thinkingLevel`.
    Levels {
        /// The lowest thinking level that the model accepts.
        least: &'static str,
        /// Whether the model accepts the thinking level `MEDIUM`.
        medium: bool,
    },
    /// A request controls thinking with the field `thinkingBudget`.
    Budget {
        /// Minimum thinking budget in tokens.
        least: u32,
        /// Maximum thinking budget in tokens.
        most: u32,
        /// Whether the model accepts a budget of 0, which disables thinking.
        can_be_off: bool,
    },
}

impl ThinkingControl {
    /// The thinking control of the newest model series. It is also assumed for a model with an
    /// unknown name, because such a model is probably new.
    pub(crate) const NEWEST: Self = Self::Levels {
        least: "LOW",
        medium: true,
    };
}

impl ModelSeries {
    /// Returns the series of a model by its name or by a path that ends with its name. Returns
    /// `None` for unknown names, and for speech, image and robot models, which have other rules.
    pub(crate) fn from_model_name(model: &str) -> Option<Self> {
        let special = [
            "tts",
            "image",
            "live",
            "audio",
            "embedding",
            "computer",
            "robotics",
            "omni",
        ];
        let name = model.rsplit('/').next()?.to_ascii_lowercase();
        let mut words = name.split('-');
        let family = words.next()?;
        let words: Vec<&str> = words.collect();
        if words.iter().any(|word| special.contains(word)) {
            return None;
        }
        let version = words.first().and_then(|word| parse_version(word));
        match family {
            "gemma" => Some(Self {
                line: ModelLine::Gemma,
                version: version?,
            }),
            "gemini" => {
                let has = |word| words.contains(&word);
                let line = match (has("pro"), has("flash"), has("lite")) {
                    (true, ..) => ModelLine::Pro,
                    (_, true, true) => ModelLine::FlashLite,
                    (_, true, false) => ModelLine::Flash,
                    _ => ModelLine::Other,
                };
                // Version that aliases such as `gemini-pro-latest` referred to in November 2026.
                let latest = || match line {
                    _ if !has("latest") => None,
                    ModelLine::Pro => Some((3, 1)),
                    ModelLine::Flash => Some((3, 8)),
                    ModelLine::FlashLite => Some((3, 5)),
                    ModelLine::Other | ModelLine::Gemma => None,
                };
                let version = version.or_else(latest)?;
                Some(Self { line, version })
            }
            _ => None,
        }
    }

    /// Returns the request field that controls thinking, or `None` for a model without thinking.
    pub(crate) fn thinking_control(self) -> Option<ThinkingControl> {
        match (self.line, self.version) {
            (_, (..2, _) | (2, ..5)) | (ModelLine::Gemma, (..4, _)) => None,
            (ModelLine::Pro, (2, _)) => Some(ThinkingControl::Budget {
                least: 128,
                most: 32_768,
                can_be_off: false,
            }),
            (ModelLine::FlashLite, (2, _)) => Some(ThinkingControl::Budget {
                least: 512,
                most: 24_576,
                can_be_off: true,
            }),
            (_, (2, _)) => Some(ThinkingControl::Budget {
                least: 1,
                most: 24_576,
                can_be_off: true,
            }),
            (ModelLine::Flash | ModelLine::FlashLite, (3, ..7)) => Some(ThinkingControl::Levels {
                least: "MINIMAL",
                medium: true,
            }),
            (ModelLine::Pro, (3, 0)) => Some(ThinkingControl::Levels {
                least: "LOW",
                medium: false,
            }),
            _ => Some(ThinkingControl::NEWEST),
        }
    }

    /// Returns whether the API requires a thought signature on the first tool call of every model
    /// message after the last user message. The API refuses a request without these signatures.
    pub(crate) fn requires_signatures(self) -> bool {
        self.line != ModelLine::Gemma && self.version >= (3, 0)
    }

    /// Returns whether a tool result may contain media. For older models, media must be separate
    /// parts.
    pub(crate) fn supports_media_in_results(self) -> bool {
        self.line != ModelLine::Gemma && self.version >= (3, 0)
    }

    /// Returns whether the model accepts functions together with a response schema. Older models
    /// answer "Function calling with a response mime type: 'application/json' is unsupported".
    pub(crate) fn supports_schema_with_tools(self) -> bool {
        self.version >= (3, 0)
    }

    /// Returns whether the model accepts server tools together with functions. Models before Gemini
    /// 3 answer "Tool use with function calling is unsupported" or "Tool call context circulation
    /// is not enabled for models/gemini-2.5-flash" (go-genai#323, prism#972).
    pub(crate) fn supports_server_tools_with_functions(self) -> bool {
        self.line == ModelLine::Gemma || self.version >= (3, 0)
    }

    /// Returns whether the model accepts `systemInstruction`. Gemma answers "Developer instruction
    /// is not enabled for models/gemma-3-27b-it".
    pub(crate) fn supports_system_instruction(self) -> bool {
        self.line != ModelLine::Gemma || self.version >= (4, 0)
    }

    /// Returns whether sampling parameters, such as the temperature, have an effect. The newest
    /// models ignore them. `None` means unknown.
    fn supports_sampling(self) -> Option<bool> {
        match self.version {
            (3, 5) if self.line == ModelLine::FlashLite => Some(false),
            (..3, _) | (3, ..=5) => Some(true),
            (3, _) => Some(false),
            _ => None,
        }
    }

    /// Returns the maximum number of prompt tokens and the maximum number of answer tokens, in this
    /// order. Returns `None` for unknown series.
    fn token_limits(self) -> Option<(u64, u64)> {
        match (self.line, self.version) {
            (ModelLine::Gemma, (3, _)) => Some((131_072, 8_192)),
            (ModelLine::Gemma, (4, _)) => Some((262_144, 32_768)),
            (ModelLine::Gemma, _) => None,
            (_, (2, ..5)) => Some((1_048_576, 8_192)),
            (_, (2 | 3, _)) => Some((1_048_576, 65_536)),
            (_, (4, _)) => Some((1_048_576, 1_048_576)),
            _ => None,
        }
    }
}

/// Parses the version in a model name into a major and a minor number. Examples: `2.5`, `3` (minor
/// 0) and `3n` (Gemma). Returns `None` if `word` is not a version.
fn parse_version(word: &str) -> Option<(u32, u32)> {
    let (major, minor) = word.split_once('.').unwrap_or((word, "0"));
    let major = major.trim_end_matches('n');
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_say_what_the_catalogue_says() {
        let mut known = 0;
        for entry in catalog::list_models("gemini") {
            known += 1;
            let ours = series_capabilities(entry.name);
            let theirs = &entry.capabilities;
            // `join_capabilities` prefers its first argument, so equal results mean agreement.
            assert_eq!(
                catalog::join_capabilities(theirs, &ours),
                catalog::join_capabilities(&ours, theirs),
                "{}",
                entry.name
            );
        }
        assert!(known > 10, "the catalogue has {known} of Google's models");
    }

    #[test]
    fn names_tell_the_series() {
        let line_and_version =
            |model| ModelSeries::from_model_name(model).map(|it| (it.line, it.version));
        for (model, expected) in [
            (
                "gemini-2.5-flash-lite-preview-09-2025",
                (ModelLine::FlashLite, (2, 5)),
            ),
            ("models/gemini-3.8-flash", (ModelLine::Flash, (3, 8))),
            ("google/gemini-3-pro-preview", (ModelLine::Pro, (3, 0))),
            ("gemini-4-argon", (ModelLine::Other, (4, 0))),
            ("gemini-flash-latest", (ModelLine::Flash, (3, 8))),
            ("gemini-pro-latest", (ModelLine::Pro, (3, 1))),
            ("gemma-3n-e4b-it", (ModelLine::Gemma, (3, 0))),
            ("gemma-4-31b-it", (ModelLine::Gemma, (4, 0))),
        ] {
            assert_eq!(line_and_version(model), Some(expected), "{model}");
        }
        for unknown in [
            "gemini-2.5-flash-image",
            "gemini-2.5-pro-preview-tts",
            "gemini-exp-1206",
            "learnlm-1.5-pro-experimental",
            "gpt-6-luna",
            "gemini",
            "",
        ] {
            assert_eq!(line_and_version(unknown), None, "{unknown}");
            assert_eq!(series_capabilities(unknown), ModelCapabilities::default());
        }
    }

    #[test]
    fn generations_differ_in_how_they_think() {
        let thinking =
            |model| ModelSeries::from_model_name(model).and_then(ModelSeries::thinking_control);
        let least = |model| match thinking(model) {
            Some(ThinkingControl::Levels { least, .. }) => least,
            _ => "",
        };
        assert_eq!(thinking("gemini-2.0-flash"), None);
        assert_eq!(thinking("gemma-3-27b-it"), None);
        let pro = ThinkingControl::Budget {
            least: 128,
            most: 32_768,
            can_be_off: false,
        };
        assert_eq!(thinking("gemini-2.5-pro"), Some(pro));
        assert_eq!(least("gemini-3.6-flash"), "MINIMAL");
        for always in [
            "gemini-3.7-flash",
            "gemini-3.8-flash",
            "gemini-4-argon",
            "gemini-3.1-pro",
        ] {
            assert_eq!(least(always), "LOW", "{always}");
        }
    }

    #[test]
    fn the_newest_ignore_sampling() {
        let sampling = |model| capabilities(model).sampling;
        assert_eq!(sampling("gemini-2.5-pro"), Some(true));
        assert_eq!(sampling("gemini-3.5-flash"), Some(true));
        assert_eq!(sampling("gemini-3.5-flash-lite"), Some(false));
        assert_eq!(sampling("gemini-3.8-flash"), Some(false));
        assert_eq!(sampling("gemini-4-argon"), None);
        let argon = capabilities("gemini-4-argon");
        assert_eq!(argon.max_output_tokens, Some(1_048_576));
        assert_eq!(argon.forced_tool_choice, Some(true));
        assert_eq!(capabilities("gemma-3-27b-it").tools, None);
    }
}
