//! Maps a request's model options and its reasoning setting.

use serde_json::{Number, Value};
use switchboard_domain::{
    ChatRequest, JsonObject, ModelCapabilities, ModelId, ReasoningEffort, Warning, WarningKind,
};

use switchboard_providers_common::body_fields::STREAM;

use super::wire::Think;

const OPTIONS: &str = "options";

/// Type of value that is sent in the request field `think`. Servers until 2026 refused levels for
/// every model except gpt-oss ("think value \"high\" is not supported for this model"). For a model
/// that does not reason, servers refuse levels and `true`, and accept `false`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThinkForm {
    /// The reasoning setting is sent as a level: `low`, `medium` or `high`.
    #[default]
    Levels,
    /// The reasoning setting is sent as a switch: `true` or `false`.
    Switch,
    /// The reasoning setting is not sent, because the model does not reason.
    Never,
}

/// Returns two objects: the value of the request field `options`, and those fields of the caller's
/// `extra` that do not belong in `options`.
pub(crate) fn map_options(
    request: &ChatRequest,
    warnings: &mut Vec<Warning>,
) -> (JsonObject, JsonObject) {
    let sampling = &request.sampling;
    let mut options = JsonObject::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            options.insert(name.to_owned(), value);
        }
    };
    let number = |value: Option<f64>| value.and_then(Number::from_f64).map(Value::Number);
    put("num_predict", request.max_output_tokens.map(Value::from));
    put("temperature", number(sampling.temperature));
    put("top_p", number(sampling.top_p));
    put("seed", sampling.seed.map(Value::from));
    let stop = &sampling.stop;
    put("stop", (!stop.is_empty()).then(|| stop.clone().into()));
    let mut extra = JsonObject::new();
    for (name, value) in &request.extra {
        match (name.as_str(), value) {
            (STREAM, _) => {
                let message =
                    "`stream` in the extra fields was ignored: the setting for streaming decides";
                warnings.push(Warning::new(WarningKind::OptionDropped, message));
            }
            (OPTIONS, Value::Object(given)) => options.extend(given.clone()),
            (_, value) => {
                extra.insert(name.clone(), value.clone());
            }
        }
    }
    (options, extra)
}

/// Maps the reasoning setting to the request field `think`. `is_constrained` is whether `format`
/// constrains the answer to a schema.
///
/// Reasoning models think by default. Text that they write under a grammar may then be reported as
/// thoughts, with an empty answer (HarperFast/harper#1805, server 0.30;
/// vectorize-io/hindsight#1099, 0.20). Thinking is therefore disabled for a constrained answer,
/// unless the caller enables it. Models without reasoning accept `false`, too.
pub(crate) fn map_thinking(
    request: &ChatRequest,
    model: &ModelId,
    capabilities: &ModelCapabilities,
    form: ThinkForm,
    is_constrained: bool,
    warnings: &mut Vec<Warning>,
) -> Option<Think> {
    // gpt-oss ignores the switch: "Passing true/false is ignored for that model"
    // (docs/capabilities/thinking).
    let only_levels = is_gpt_oss(&model.name);
    let never = form == ThinkForm::Never || capabilities.reasoning == Some(false);
    let Some(effort) = request.reasoning else {
        return (is_constrained && !never && !only_levels).then_some(Think::Switch(false));
    };
    let mut dropped = |message: String| {
        warnings.push(Warning::new(WarningKind::OptionDropped, message));
    };
    let level = match effort {
        ReasoningEffort::None => None,
        ReasoningEffort::Low => Some("low"),
        ReasoningEffort::High => Some("high"),
        // This arm maps `Medium`, and levels that were added to the domain later.
        _ => Some("medium"),
    };
    if never {
        if level.is_some() {
            dropped(format!("{} does not support thinking", model.name));
        }
        return None;
    }
    match (level, form) {
        (None, _) if only_levels => {
            dropped(format!(
                "thinking cannot be disabled in {}: the level is low instead",
                model.name
            ));
            Some(Think::Level("low"))
        }
        (None, _) => Some(Think::Switch(false)),
        (Some(level), ThinkForm::Levels) => Some(Think::Level(level)),
        (Some(level), _) if only_levels => Some(Think::Level(level)),
        (Some(level), _) => {
            if level != "medium" {
                dropped(format!(
                    "{} does not support thinking levels: thinking is enabled without the level \
                     `{level}`",
                    model.name
                ));
            }
            Some(Think::Switch(true))
        }
    }
}

fn is_gpt_oss(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    name.to_ascii_lowercase().starts_with("gpt-oss")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn asking(effort: ReasoningEffort, name: &str, form: ThinkForm) -> (Option<Think>, usize) {
        let request = ChatRequest {
            reasoning: Some(effort),
            ..ChatRequest::default()
        };
        let mut warnings = Vec::new();
        let model = ModelId::new("ollama", name);
        let unknown = ModelCapabilities::default();
        let said = map_thinking(&request, &model, &unknown, form, false, &mut warnings);
        (said, warnings.len())
    }

    #[test]
    fn the_reasoning_effort_is_sent_in_the_models_form() {
        use ReasoningEffort::{High, Medium, None as Off};
        use ThinkForm::{Levels, Never, Switch};
        let on = Some(Think::Switch(true));
        for (effort, model, form, expected) in [
            (High, "qwen3:8b", Levels, (Some(Think::Level("high")), 0)),
            (High, "qwen3:8b", Switch, (on, 1)),
            (Medium, "qwen3:8b", Switch, (on, 0)),
            (High, "llama3.2", Never, (None, 1)),
            (Off, "llama3.2", Never, (None, 0)),
            (Off, "qwen3:8b", Levels, (Some(Think::Switch(false)), 0)),
            (Off, "gpt-oss:20b", Levels, (Some(Think::Level("low")), 1)),
            (
                High,
                "openai/gpt-oss:20b",
                Switch,
                (Some(Think::Level("high")), 0),
            ),
        ] {
            assert_eq!(asking(effort, model, form), expected, "{effort:?} {model}");
        }
    }

    #[test]
    fn a_constrained_answer_has_no_thinking_unless_requested() {
        let off = Some(Think::Switch(false));
        let known_not_to = ModelCapabilities {
            reasoning: Some(false),
            ..ModelCapabilities::default()
        };
        let unknown = ModelCapabilities::default();
        let (levels, never) = (ThinkForm::Levels, ThinkForm::Never);
        for (name, capabilities, form, is_constrained, expected) in [
            ("qwen3:8b", &unknown, levels, true, off),
            ("qwen3:8b", &unknown, levels, false, None),
            ("qwen3:8b", &unknown, never, true, None),
            ("llama3.2", &known_not_to, levels, true, None),
            ("gpt-oss:20b", &unknown, levels, true, None),
        ] {
            let model = ModelId::new("ollama", name);
            let mut warnings = Vec::new();
            let request = ChatRequest::default();
            let said = map_thinking(
                &request,
                &model,
                capabilities,
                form,
                is_constrained,
                &mut warnings,
            );
            assert_eq!(said, expected, "{name} {form:?} {is_constrained}");
            assert!(warnings.is_empty());
        }
    }

    #[test]
    fn options_of_the_caller_are_merged_and_take_precedence() {
        let mut request = ChatRequest {
            max_output_tokens: Some(100),
            ..ChatRequest::default()
        };
        request.sampling.temperature = Some(0.5);
        request.sampling.top_p = Some(f64::NAN);
        let extra = json!({
            "options": {"num_ctx": 8192, "temperature": 0},
            "keep_alive": "10m", "stream": false,
        });
        request.extra = extra.as_object().unwrap().clone();
        let mut warnings = Vec::new();
        let (options, rest) = map_options(&request, &mut warnings);
        assert_eq!(
            Value::Object(options),
            json!({"num_predict": 100, "temperature": 0, "num_ctx": 8192})
        );
        assert_eq!(Value::Object(rest), json!({"keep_alive": "10m"}));
        assert_eq!(warnings.len(), 1);
    }
}
