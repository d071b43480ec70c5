//! Selects the thinking mode and the effort of a request.

use switchboard_domain::{ChatRequest, ModelCapabilities, ReasoningEffort, Warning, WarningKind};

use super::wire::Thinking;
use crate::model_rules::{self, Effort, MinimumThinking};

/// The smallest thinking budget that the API accepts, in tokens.
const MIN_BUDGET: u32 = 1_024;
/// Value of `thinking.display` that requests the text of thinking. The newest models omit the text
/// by default.
const DISPLAY: &str = "summarized";

/// The request fields that control how much a model thinks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ThinkingFields {
    pub(crate) thinking: Option<Thinking>,
    /// The value of `output_config.effort`. `None` omits the field.
    pub(crate) effort: Option<Effort>,
}

impl From<Thinking> for ThinkingFields {
    fn from(thinking: Thinking) -> Self {
        Self {
            thinking: Some(thinking),
            effort: None,
        }
    }
}

impl ThinkingFields {
    /// Returns whether thinking is enabled. If it is, the API refuses most sampling parameters.
    pub(crate) fn enables_thinking(self) -> bool {
        matches!(
            self.thinking,
            Some(Thinking::Adaptive { .. } | Thinking::Enabled { .. })
        )
    }

    /// Returns whether thinking is enabled with a budget. If it is, the API refuses a forced tool
    /// choice.
    pub(crate) fn has_budget(self) -> bool {
        matches!(self.thinking, Some(Thinking::Enabled { .. }))
    }

    /// Sets the effort to `configured`, or to the next lower level that the model supports, with a
    /// warning. Does nothing if `configured` is `None`. In a request that turns thinking off, the
    /// highest level is `high`, because the API refuses a higher effort.
    pub(crate) fn with_effort(
        mut self,
        configured: Option<Effort>,
        model: &str,
        warnings: &mut Vec<Warning>,
    ) -> Self {
        let Some(configured) = configured else {
            return self;
        };
        let rules = model_rules::find_rules(model);
        let is_off = matches!(
            self.thinking,
            Some(Thinking::Disabled | Thinking::BetweenTools)
        );
        let is_supported = |level: &Effort| {
            *level <= configured
                && rules.is_none_or(|rules| rules.efforts.contains(level))
                && !(is_off && *level > Effort::High)
        };
        let level = Effort::ALL.into_iter().rev().find(is_supported);
        if level != Some(configured) {
            let message = match level {
                Some(level) => format!(
                    "effort `{}` was sent as `{}`, the highest that {model} accepts in this \
                     request",
                    configured.as_str(),
                    level.as_str()
                ),
                None => format!("{model} does not support effort levels"),
            };
            warnings.push(Warning::new(WarningKind::OptionDropped, message));
        }
        self.effort = level.or(self.effort);
        self
    }
}

/// Maps [`ChatRequest::reasoning`] to thinking fields. A request without a reasoning effort has no
/// thinking fields, so the API's default applies.
///
/// `continues_without_thinking` means that the model continues its last turn, and that the
/// conversation lacks the thinking at the start of that turn. The API then refuses thinking with a
/// budget.
pub(crate) fn map_reasoning_to_thinking(
    request: &ChatRequest,
    model: &str,
    capabilities: &ModelCapabilities,
    max_tokens: u32,
    continues_without_thinking: bool,
    warnings: &mut Vec<Warning>,
) -> ThinkingFields {
    let Some(effort) = request.reasoning else {
        return ThinkingFields::default();
    };
    let mut warn = |message: String| {
        warnings.push(Warning::new(WarningKind::OptionDropped, message));
    };
    let mode = match model_rules::find_rules(model) {
        Some(rules) => rules.thinking,
        // A Claude model that is not in the table is probably newer than the table.
        None if model.contains("claude") => Some(model_rules::Thinking::Adaptive {
            minimum: MinimumThinking::Disabled,
        }),
        // Models of other vendors run on compatible servers, which support thinking with a budget.
        None => Some(model_rules::Thinking::Budget),
    };
    let mode = mode.filter(|_| capabilities.reasoning != Some(false));
    let is_off = effort == ReasoningEffort::None;
    match mode {
        None => {
            if !is_off {
                warn(format!("{model} does not support thinking"));
            }
            ThinkingFields::default()
        }
        Some(model_rules::Thinking::Adaptive { minimum }) if is_off => match minimum {
            MinimumThinking::Disabled => Thinking::Disabled.into(),
            MinimumThinking::BetweenTools => {
                warn(format!(
                    "thinking cannot be disabled in {model}: it may write notes between calls"
                ));
                Thinking::BetweenTools.into()
            }
            MinimumThinking::LowEffort => {
                warn(format!(
                    "thinking cannot be disabled in {model}: the effort is low instead"
                ));
                ThinkingFields {
                    thinking: None,
                    effort: Some(Effort::Low),
                }
            }
        },
        Some(model_rules::Thinking::Adaptive { .. }) => ThinkingFields {
            thinking: Some(Thinking::Adaptive { display: DISPLAY }),
            effort: Some(map_effort(effort)),
        },
        Some(model_rules::Thinking::Budget) if is_off => Thinking::Disabled.into(),
        Some(model_rules::Thinking::Budget) if max_tokens <= MIN_BUDGET => {
            warn(format!(
                "thinking was dropped: it requires more than {MIN_BUDGET} tokens, but max_tokens \
                 is {max_tokens}"
            ));
            ThinkingFields::default()
        }
        Some(model_rules::Thinking::Budget) if continues_without_thinking => {
            warn(
                "thinking was dropped in this answer: the API requires the thinking at the start \
                 of the turn, which is not in the conversation"
                    .to_owned(),
            );
            ThinkingFields::default()
        }
        Some(model_rules::Thinking::Budget) => {
            // Thinking tokens count towards `max_tokens`. At least half of the limit remains for
            // the answer, unless half of the limit is less than the minimum budget.
            let budget_tokens = thinking_budget(effort).min(max_tokens / 2).max(MIN_BUDGET);
            Thinking::Enabled { budget_tokens }.into()
        }
    }
}

fn map_effort(effort: ReasoningEffort) -> Effort {
    match effort {
        ReasoningEffort::None | ReasoningEffort::Low => Effort::Low,
        ReasoningEffort::High => Effort::High,
        // This arm maps `Medium`, and levels that are added to `ReasoningEffort` later.
        _ => Effort::Medium,
    }
}

/// Returns a thinking budget in tokens for a reasoning effort, because the API has no budget
/// levels. A low, medium or high effort gets a sixteenth, a quarter or three quarters of the
/// default output limit of 32,000 tokens.
fn thinking_budget(effort: ReasoningEffort) -> u32 {
    match effort {
        ReasoningEffort::None | ReasoningEffort::Low => 2_000,
        ReasoningEffort::High => 24_000,
        _ => 8_000,
    }
}
