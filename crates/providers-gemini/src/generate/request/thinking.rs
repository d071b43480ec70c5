//! Maps the reasoning effort to the thinking settings of a model.

use switchboard_domain::{ChatRequest, ModelCapabilities, ReasoningEffort, Warning, WarningKind};

use crate::capabilities::{ModelSeries, ThinkingControl};
use crate::generate::wire::ThinkingConfig;

/// Maps [`ChatRequest::reasoning`] to thinking settings. Returns `None`, so that the model's
/// default applies, if the request sets no reasoning effort or if the model does not think.
pub(crate) fn map_thinking(
    request: &ChatRequest,
    model: &str,
    capabilities: &ModelCapabilities,
    include_thoughts: bool,
    warnings: &mut Vec<Warning>,
) -> Option<ThinkingConfig> {
    let wanted = request.reasoning?;
    let mut dropped = |message: String| {
        warnings.push(Warning::new(WarningKind::OptionDropped, message));
    };
    let how = match ModelSeries::from_model_name(model) {
        Some(series) => series.thinking_control(),
        None => Some(ThinkingControl::NEWEST),
    };
    let Some(how) = how.filter(|_| capabilities.reasoning != Some(false)) else {
        if wanted != ReasoningEffort::None {
            dropped(format!("{model} does not support thinking"));
        }
        return None;
    };
    let off = wanted == ReasoningEffort::None;
    let mut config = ThinkingConfig {
        include_thoughts: (!off && include_thoughts).then_some(true),
        ..ThinkingConfig::default()
    };
    match how {
        ThinkingControl::Levels { least, medium } => {
            if off && least != "MINIMAL" {
                dropped(format!(
                    "thinking cannot be disabled in {model}: the level is low instead"
                ));
            }
            let level = match wanted {
                ReasoningEffort::None => least,
                ReasoningEffort::Low => "LOW",
                ReasoningEffort::High => "HIGH",
                // This arm maps `Medium`, and effort levels that the domain crate may add later.
                _ if medium => "MEDIUM",
                _ => {
                    dropped(format!(
                        "{model} does not support this thinking level: the level is high instead"
                    ));
                    "HIGH"
                }
            };
            config.thinking_level = Some(level);
        }
        ThinkingControl::Budget {
            least,
            most,
            can_be_off,
        } => {
            if off && !can_be_off {
                dropped(format!(
                    "thinking cannot be disabled in {model}: the budget is {least} tokens instead"
                ));
            }
            config.thinking_budget = Some(match wanted {
                ReasoningEffort::None if can_be_off => 0,
                ReasoningEffort::None => least,
                wanted => {
                    // Thoughts count towards the output limit, so half of the limit remains for the
                    // answer.
                    let room = request.max_output_tokens.map_or(most, |limit| limit / 2);
                    thinking_budget(wanted).min(room).clamp(least, most)
                }
            });
        }
    }
    Some(config)
}

/// Returns the thinking budget in tokens for a reasoning effort, with the values of Google's
/// OpenAI-compatible endpoint.
fn thinking_budget(wanted: ReasoningEffort) -> u32 {
    match wanted {
        ReasoningEffort::None | ReasoningEffort::Low => 1_024,
        ReasoningEffort::High => 24_576,
        _ => 8_192,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn sent(model: &str, wanted: ReasoningEffort, limit: Option<u32>) -> (Value, usize) {
        let request = ChatRequest {
            reasoning: Some(wanted),
            max_output_tokens: limit,
            ..ChatRequest::default()
        };
        let capabilities = crate::capabilities(model);
        let mut warnings = Vec::new();
        let config = map_thinking(&request, model, &capabilities, true, &mut warnings);
        (serde_json::to_value(config).unwrap(), warnings.len())
    }

    #[test]
    fn each_generation_is_told_in_its_own_way() {
        use ReasoningEffort::{High, Low, Medium, None};
        let level = |level: &str| json!({"includeThoughts": true, "thinkingLevel": level});
        let budget = |tokens: u32| json!({"includeThoughts": true, "thinkingBudget": tokens});
        for (model, wanted, expected, warnings) in [
            ("gemini-3.8-flash", Low, level("LOW"), 0),
            ("gemini-3.8-flash", Medium, level("MEDIUM"), 0),
            ("gemini-3.8-flash", High, level("HIGH"), 0),
            ("gemini-3.8-flash", None, json!({"thinkingLevel": "LOW"}), 1),
            (
                "gemini-3-flash-preview",
                None,
                json!({"thinkingLevel": "MINIMAL"}),
                0,
            ),
            ("gemini-3-pro-preview", Medium, level("HIGH"), 1),
            ("gemini-3-pro-preview", Low, level("LOW"), 0),
            ("gemma-4-31b-it", Low, level("LOW"), 0),
            ("gemini-2.5-flash", Medium, budget(8_192), 0),
            ("gemini-2.5-flash", None, json!({"thinkingBudget": 0}), 0),
            ("gemini-2.5-pro", None, json!({"thinkingBudget": 128}), 1),
            ("gemini-2.0-flash", High, json!(null), 1),
            ("gemini-2.0-flash", None, json!(null), 0),
            ("some-proxys-model", High, level("HIGH"), 0),
        ] {
            let found = sent(model, wanted, Option::None);
            assert_eq!(found, (expected, warnings), "{model}, {wanted:?}");
        }
    }

    #[test]
    fn a_budget_leaves_room_for_the_answer() {
        let tokens = |model, limit| {
            let (config, _) = sent(model, ReasoningEffort::High, Some(limit));
            config["thinkingBudget"].as_u64().unwrap()
        };
        assert_eq!(tokens("gemini-2.5-flash", 4_000), 2_000);
        assert_eq!(tokens("gemini-2.5-flash-lite", 10), 512);
        assert_eq!(tokens("gemini-2.5-pro", u32::MAX), 24_576);
    }
}
