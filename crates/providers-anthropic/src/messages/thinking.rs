//! How much the model is told to think.

use switchboard_domain::{ChatRequest, ModelCapabilities, ReasoningEffort, Warning, WarningKind};

use super::wire::Thinking;
use crate::rules::{self, Effort, LeastThinking};

/// The least budget that the API takes.
const LEAST_BUDGET: u32 = 1_024;
/// The newest models return thinking without its text unless it is asked for.
const DISPLAY: &str = "summarized";

/// What is said about thinking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Thought {
    pub(crate) thinking: Option<Thinking>,
    /// `output_config.effort`.
    pub(crate) effort: Option<Effort>,
}

impl Thought {
    /// Whether the request asks for thinking, with which the API refuses most of sampling.
    pub(crate) fn is_on(self) -> bool {
        matches!(
            self.thinking,
            Some(Thinking::Adaptive { .. } | Thinking::Enabled { .. })
        )
    }

    /// Whether it asks for thinking with a budget, with which the API refuses a forced tool choice.
    pub(crate) fn has_budget(self) -> bool {
        matches!(self.thinking, Some(Thinking::Enabled { .. }))
    }

    /// The same with an effort of the caller's, as far as the model has it. Without thinking the API
    /// refuses more than `high`.
    pub(crate) fn with_effort(
        mut self,
        wanted: Option<Effort>,
        model: &str,
        warnings: &mut Vec<Warning>,
    ) -> Self {
        let Some(wanted) = wanted else {
            return self;
        };
        let rules = rules::rules(model);
        let off = matches!(
            self.thinking,
            Some(Thinking::Disabled | Thinking::BetweenTools)
        );
        let is_taken = |level: &Effort| {
            *level <= wanted
                && rules.is_none_or(|rules| rules.efforts.contains(level))
                && !(off && *level > Effort::High)
        };
        let level = Effort::ALL.into_iter().rev().find(is_taken);
        if level != Some(wanted) {
            let message = match level {
                Some(level) => format!(
                    "effort `{}` was sent as `{}`, the most that {model} takes in this request",
                    wanted.as_str(),
                    level.as_str()
                ),
                None => format!("{model} takes no effort"),
            };
            warnings.push(Warning::new(WarningKind::OptionDropped, message));
        }
        self.effort = level.or(self.effort);
        self
    }
}

/// Maps [`ChatRequest::reasoning`]; without it nothing is said and the API's default holds.
///
/// `in_a_turn_without_thinking`: the model is in the middle of a turn, and what it thought at its
/// beginning is not in the conversation.
pub(crate) fn thinking(
    request: &ChatRequest,
    model: &str,
    capabilities: &ModelCapabilities,
    max_tokens: u32,
    in_a_turn_without_thinking: bool,
    warnings: &mut Vec<Warning>,
) -> Thought {
    let Some(wanted) = request.reasoning else {
        return Thought::default();
    };
    let mut dropped = |message: String| {
        warnings.push(Warning::new(WarningKind::OptionDropped, message));
        Thought::default()
    };
    let how = match rules::rules(model) {
        Some(rules) => rules.thinking,
        // Newer than what is known here.
        None if model.contains("claude") => Some(rules::Thinking::Adaptive {
            least: LeastThinking::Disabled,
        }),
        // The form that servers which speak this wire took over.
        None => Some(rules::Thinking::Budget),
    };
    let how = how.filter(|_| capabilities.reasoning != Some(false));
    match (how, wanted) {
        (None, ReasoningEffort::None) => Thought::default(),
        (None, _) => dropped(format!("{model} does not think: no thinking was asked for")),
        (Some(rules::Thinking::Adaptive { least }), ReasoningEffort::None) => match least {
            LeastThinking::Disabled => Thought {
                thinking: Some(Thinking::Disabled),
                effort: None,
            },
            LeastThinking::BetweenTools => {
                dropped(format!(
                    "thinking cannot be switched off in {model}: it may note its progress between \
                     calls"
                ));
                Thought {
                    thinking: Some(Thinking::BetweenTools),
                    effort: None,
                }
            }
            LeastThinking::LowEffort => {
                dropped(format!(
                    "thinking cannot be switched off in {model}: the effort is low instead"
                ));
                Thought {
                    thinking: None,
                    effort: Some(Effort::Low),
                }
            }
        },
        (Some(rules::Thinking::Adaptive { .. }), wanted) => Thought {
            thinking: Some(Thinking::Adaptive { display: DISPLAY }),
            effort: Some(effort(wanted)),
        },
        (Some(rules::Thinking::Budget), ReasoningEffort::None) => Thought {
            thinking: Some(Thinking::Disabled),
            effort: None,
        },
        (Some(rules::Thinking::Budget), _) if max_tokens <= LEAST_BUDGET => {
            dropped(format!(
                "no thinking: it takes more than {LEAST_BUDGET} tokens, and the answer may have \
             {max_tokens} in all"
            ))
        }
        (Some(rules::Thinking::Budget), _) if in_a_turn_without_thinking => dropped(
            "no thinking in this answer: what the model thought at the beginning of its turn is not \
             in the conversation, and the API wants it"
                .to_owned(),
        ),
        (Some(rules::Thinking::Budget), wanted) => {
            // Thinking counts toward the limit; half of it is left for the answer.
            let budget = budget(wanted).min(max_tokens / 2).max(LEAST_BUDGET);
            Thought {
                thinking: Some(Thinking::Enabled {
                    budget_tokens: budget,
                }),
                effort: None,
            }
        }
    }
}

fn effort(wanted: ReasoningEffort) -> Effort {
    match wanted {
        ReasoningEffort::None | ReasoningEffort::Low => Effort::Low,
        ReasoningEffort::High => Effort::High,
        // `Medium`, and a level that this adapter does not know yet.
        _ => Effort::Medium,
    }
}

/// Tokens of thinking. The API names no such levels; these are a sixteenth, a quarter and three
/// quarters of the default output limit.
fn budget(wanted: ReasoningEffort) -> u32 {
    match wanted {
        ReasoningEffort::None | ReasoningEffort::Low => 2_000,
        ReasoningEffort::High => 24_000,
        _ => 8_000,
    }
}
