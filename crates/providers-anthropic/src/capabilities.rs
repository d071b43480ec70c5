//! What Claude models can do, by their names.
//!
//! Only what the request mapping needs and the API does not say itself. Facts are those of the
//! model catalogue of litellm 1.109.1, the model table of `@ai-sdk/anthropic` 3.0.138, the types of
//! the official SDK (anthropic 2.11.0) and the API's error messages as reported in public issue
//! threads (oh-my-pi#12939, aiquila#410, opencode-anthropic-auth#159). A model that is not known here
//! has no known limits, and the API's own answer decides.

use switchboard_domain::ModelCapabilities;

/// What is known of `model`, the server's name for it.
pub fn capabilities(model: &str) -> ModelCapabilities {
    let Some(series) = Series::of(model) else {
        return ModelCapabilities::default();
    };
    ModelCapabilities {
        context_window: Some(series.context_window()),
        max_output_tokens: Some(series.max_output_tokens()),
        tools: Some(true),
        parallel_tools: Some(true),
        forced_tool_choice: series.takes_forced_tool_choice(),
        structured_output: Some(series.has_structured_output()),
        sampling: Some(series.takes_sampling()),
        reasoning: Some(series.thinking().is_some()),
        images: Some(true),
        documents: Some(series.version >= (3, 5)),
        audio: Some(false),
    }
}

/// A line of Claude models and its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Series {
    line: Line,
    /// Such as (4, 8).
    version: (u32, u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Opus,
    Sonnet,
    Haiku,
    Fable,
    Mythos,
}

/// How a model takes `thinking`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thinking {
    /// `enabled` with a budget of tokens.
    Budget,
    /// `adaptive`, how much is said by `output_config.effort`.
    Adaptive {
        /// What comes nearest to none.
        least: LeastThinking,
    },
}

/// The least that a model can be told to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeastThinking {
    /// `disabled`: none.
    Disabled,
    /// `between_tools`: short notes between calls.
    BetweenTools,
    /// It always thinks; a low effort is all that can be asked for.
    LowEffort,
}

impl Series {
    /// The series of a model under any vendor's name for it (`claude-opus-4-8`,
    /// `us.anthropic.claude-opus-4-1-20250805-v1:0`, `anthropic/claude-sonnet-5.5`); `None` for
    /// names that say nothing.
    pub(crate) fn of(model: &str) -> Option<Self> {
        let (_, name) = model.split_once("claude-")?;
        let mut line = None;
        let mut numbers = Vec::new();
        for word in name.split(['-', '.', '@', ':']) {
            match word {
                "opus" => line = Some(Line::Opus),
                "sonnet" => line = Some(Line::Sonnet),
                "haiku" => line = Some(Line::Haiku),
                "fable" => line = Some(Line::Fable),
                "mythos" => line = Some(Line::Mythos),
                // Longer numbers are dates.
                number if number.len() <= 2 => numbers.extend(number.parse::<u32>().ok()),
                _ => {}
            }
        }
        let line = line?;
        let version = match numbers.as_slice() {
            [major, minor, ..] => (*major, *minor),
            [major] => (*major, 0),
            // `claude-mythos-preview` came before all of 5.
            [] if line == Line::Mythos => (4, 9),
            [] => return None,
        };
        Some(Self { line, version })
    }

    /// How it takes `thinking`; `None` for models that do not think.
    pub(crate) fn thinking(self) -> Option<Thinking> {
        match self.version {
            (4, 6..) | (5.., _) => {
                let least = match self.line {
                    Line::Sonnet if self.version >= (5, 5) => LeastThinking::BetweenTools,
                    Line::Opus if self.version >= (5, 5) => LeastThinking::LowEffort,
                    Line::Fable | Line::Mythos => LeastThinking::LowEffort,
                    _ => LeastThinking::Disabled,
                };
                Some(Thinking::Adaptive { least })
            }
            (4, _) | (3, 7) => Some(Thinking::Budget),
            _ => None,
        }
    }

    /// Whether a conversation may end with the beginning of the model's own answer (prefill).
    pub(crate) fn takes_prefill(self) -> bool {
        self.version < (4, 6)
    }

    /// Whether it takes instructions in the middle of a conversation (`role: system`).
    pub(crate) fn takes_later_instructions(self) -> bool {
        self.version >= (5, 0) || (self.line == Line::Opus && self.version >= (4, 8))
    }

    /// Whether it takes one of `temperature` and `top_p` but not both.
    pub(crate) fn takes_one_sampling_option(self) -> bool {
        self.version >= (4, 5) || (self.line == Line::Opus && self.version >= (4, 1))
    }

    fn takes_sampling(self) -> bool {
        match self.line {
            Line::Opus => self.version < (4, 7),
            Line::Mythos => false,
            _ => self.version < (5, 0),
        }
    }

    /// `tool_choice` of type `any` or `tool`. Reports about the first Fable and Mythos differ.
    fn takes_forced_tool_choice(self) -> Option<bool> {
        match self.line {
            Line::Opus | Line::Sonnet => Some(self.version < (5, 5)),
            Line::Haiku => Some(true),
            Line::Fable | Line::Mythos => (self.version >= (5, 1)).then_some(false),
        }
    }

    fn has_structured_output(self) -> bool {
        self.version >= (4, 5) || (self.line == Line::Opus && self.version >= (4, 1))
    }

    fn context_window(self) -> u64 {
        if self.version >= (4, 6) {
            1_000_000
        } else {
            200_000
        }
    }

    fn max_output_tokens(self) -> u64 {
        match (self.version, self.line) {
            ((4, 6..) | (5.., _), _) => 128_000,
            ((4, 0..=1), Line::Opus) => 32_000,
            ((4, _) | (3, 7), _) => 64_000,
            ((3, 5), _) => 8_192,
            _ => 4_096,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_series_whoever_serves_it() {
        for (name, line, version) in [
            ("claude-opus-5-5", Line::Opus, (5, 5)),
            ("claude-sonnet-4-5-20250929", Line::Sonnet, (4, 5)),
            ("claude-sonnet-4-20250514", Line::Sonnet, (4, 0)),
            ("claude-sonnet-5", Line::Sonnet, (5, 0)),
            ("claude-3-5-haiku-20241022", Line::Haiku, (3, 5)),
            ("claude-mythos-preview", Line::Mythos, (4, 9)),
            ("anthropic/claude-sonnet-5.5", Line::Sonnet, (5, 5)),
            ("claude-opus-4-1@20250805", Line::Opus, (4, 1)),
            (
                "us.anthropic.claude-opus-4-20250514-v1:0",
                Line::Opus,
                (4, 0),
            ),
        ] {
            assert_eq!(Series::of(name), Some(Series { line, version }), "{name}");
        }
        for unknown in ["claude-next", "claude-opus", "deepseek-v4", "opus-5", ""] {
            assert_eq!(Series::of(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn generations_differ_in_how_they_think() {
        let adaptive = |least| Some(Thinking::Adaptive { least });
        for (name, expected) in [
            ("claude-3-haiku-20240307", None),
            ("claude-3-7-sonnet-20250219", Some(Thinking::Budget)),
            ("claude-haiku-4-5", Some(Thinking::Budget)),
            ("claude-opus-4-6", adaptive(LeastThinking::Disabled)),
            ("claude-opus-5", adaptive(LeastThinking::Disabled)),
            ("claude-haiku-5-5", adaptive(LeastThinking::Disabled)),
            ("claude-sonnet-5-5", adaptive(LeastThinking::BetweenTools)),
            ("claude-opus-5-5", adaptive(LeastThinking::LowEffort)),
            ("claude-fable-5", adaptive(LeastThinking::LowEffort)),
        ] {
            let thinking = Series::of(name).and_then(Series::thinking);
            assert_eq!(thinking, expected, "{name}");
        }
    }

    #[test]
    fn what_the_newest_models_refuse_is_known() {
        let told = |model| {
            let it = capabilities(model);
            (it.forced_tool_choice, it.sampling)
        };
        for model in [
            "claude-opus-5-5",
            "claude-sonnet-5-5",
            "claude-fable-5-1",
            "claude-fable-5-2",
            "claude-mythos-5-1",
        ] {
            assert_eq!(told(model), (Some(false), Some(false)), "{model}");
        }
        assert_eq!(told("claude-haiku-5-5"), (Some(true), Some(false)));
        assert_eq!(told("claude-opus-4-7"), (Some(true), Some(false)));
        assert_eq!(told("claude-sonnet-4-6"), (Some(true), Some(true)));
        assert_eq!(told("claude-fable-5"), (None, Some(false)));
        let prefill = |model| Series::of(model).unwrap().takes_prefill();
        assert!(prefill("claude-haiku-4-5") && !prefill("claude-opus-4-6"));
        let later = |model| Series::of(model).unwrap().takes_later_instructions();
        assert!(later("claude-opus-4-8") && later("claude-haiku-5-5"));
        assert!(!later("claude-sonnet-4-6") && !later("claude-mythos-preview"));
    }

    #[test]
    fn limits_are_those_of_the_generation() {
        let limits = |model| {
            let it = capabilities(model);
            (it.context_window.unwrap(), it.max_output_tokens.unwrap())
        };
        assert_eq!(limits("claude-sonnet-5-5"), (1_000_000, 128_000));
        assert_eq!(limits("claude-haiku-4-5"), (200_000, 64_000));
        assert_eq!(limits("claude-opus-4-1"), (200_000, 32_000));
        assert_eq!(limits("claude-3-5-sonnet-20241022"), (200_000, 8_192));
        assert_eq!(capabilities("kimi-k3"), ModelCapabilities::default());
    }
}
