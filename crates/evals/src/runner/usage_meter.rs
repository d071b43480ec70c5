//! Computes the cost of an evaluated run in US dollars.

use switchboard_domain::{ModelId, Usage};
use switchboard_orchestration::RunEventKind;

/// A meter that adds up the cost of all model responses in a run, by the prices of the models.
pub(crate) struct UsageMeter {
    /// The model that generates the current response and determines its price.
    model: ModelId,
    /// Whether the current response contained text, reasoning or tool calls so far.
    has_content: bool,
    /// The number of responses for which the provider did not report all token counts.
    pub(crate) unmetered: u32,
    /// The total cost in US dollars. `None` if a price or a token count is unknown.
    pub(crate) cost_usd: Option<f64>,
}

impl UsageMeter {
    pub(crate) fn new(model: &ModelId) -> Self {
        Self {
            model: model.clone(),
            has_content: false,
            unmetered: 0,
            cost_usd: Some(0.0),
        }
    }

    /// Adds the cost of a model response if `event` is the end of a response. `price` returns the
    /// cost of a response in US dollars from its model and token counts, or `None` if the cost is
    /// unknown.
    pub(crate) fn add_run_event(
        &mut self,
        event: &RunEventKind,
        price: impl Fn(&ModelId, &Usage) -> Option<f64>,
    ) {
        match event {
            RunEventKind::ModelCallStarted { model, .. } => {
                self.model.clone_from(model);
                self.has_content = false;
            }
            RunEventKind::TextDelta { .. }
            | RunEventKind::ReasoningDelta { .. }
            | RunEventKind::ToolInputStarted { .. }
            | RunEventKind::ProviderBlock { .. } => self.has_content = true,
            RunEventKind::ModelCallFinished { usage, .. } => {
                let cost = compute_response_cost(&self.model, usage, price);
                self.add_response(usage, cost);
            }
            // A failed attempt without content costs nothing. The cost of an attempt with content
            // is unknown unless the model is free, because the tokens of a failed attempt are not
            // reported.
            RunEventKind::ModelCallFailed { .. } | RunEventKind::ModelCallRetried { .. }
                if std::mem::take(&mut self.has_content) =>
            {
                let usage = Usage::default();
                let cost = compute_response_cost(&self.model, &usage, price);
                self.add_response(&usage, cost);
            }
            RunEventKind::HistorySummarised {
                model,
                usage,
                error,
                ..
            } if error.is_none() || usage.is_known() => {
                let cost = compute_response_cost(model, usage, price);
                self.add_response(usage, cost);
            }
            _ => {}
        }
    }

    fn add_response(&mut self, usage: &Usage, cost: Option<f64>) {
        self.unmetered += u32::from(!has_token_counts(usage));
        self.cost_usd = self.cost_usd.zip(cost).map(|(sum, cost)| sum + cost);
    }
}

/// Returns the cost of a response in US dollars, or `None` if a price or token count is unknown. A
/// free model costs 0, even if token counts are unknown.
fn compute_response_cost(
    model: &ModelId,
    usage: &Usage,
    price: impl Fn(&ModelId, &Usage) -> Option<f64>,
) -> Option<f64> {
    if has_token_counts(usage) {
        return price(model, usage);
    }
    let some = Usage {
        input_tokens: Some(1_000_000),
        output_tokens: Some(1_000_000),
        ..Usage::default()
    };
    price(model, &some).filter(|it| *it <= 0.0)
}

/// Returns whether the provider reported the token counts from which the cost is computed.
fn has_token_counts(usage: &Usage) -> bool {
    usage.input_tokens.is_some() && usage.output_tokens.is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn measure(events: Vec<Value>) -> (u32, Option<f64>) {
        let mut meter = UsageMeter::new(&ModelId::new("acme", "one"));
        for event in events {
            let event: RunEventKind = serde_json::from_value(event).unwrap();
            meter.add_run_event(&event, |model, usage| match &*model.name {
                "one" => Some(f64::from(u32::try_from(usage.output_tokens?).unwrap())),
                "free" => Some(0.0),
                _ => None,
            });
        }
        (meter.unmetered, meter.cost_usd)
    }

    fn started(model: &str) -> Value {
        json!({"type": "model_call_started", "step": 1, "model": model, "tools": 0})
    }

    fn finished(usage: &Value) -> Value {
        json!({"type": "model_call_finished", "step": 1, "model": null, "finish_reason": "stop", "finish_raw": null,
            "usage": usage, "tool_choice": {"outcome": "native"}})
    }

    fn failed() -> Value {
        json!({"type": "model_call_failed", "step": 1, "error": {"kind": "overloaded", "message": "later"}})
    }

    #[test]
    fn each_response_has_the_price_of_its_model_if_its_tokens_are_reported() {
        let one = || started("acme/one");
        let text = || json!({"type": "text_delta", "text": "I"});
        let call = json!({"type": "tool_input_started", "id": "a", "name": "find"});
        let retried = json!({"type": "model_call_retried", "step": 1, "attempt": 2, "delay_ms": 5,
            "reason": "cut off"});
        let summary = json!({"type": "history_summarised", "step": 1, "model": "acme/one",
            "usage": {"input_tokens": 2, "output_tokens": 3}});
        let reported = || finished(&json!({"input_tokens": 1, "output_tokens": 5}));
        let partly = || finished(&json!({"input_tokens": 1}));
        let (free, other) = (|| started("acme/free"), || started("acme/other"));
        for (events, expected) in [
            (vec![], (0, Some(0.0))),
            (vec![one(), reported(), free(), reported()], (0, Some(5.0))),
            (vec![other(), reported()], (0, None)),
            (vec![summary, one(), reported()], (0, Some(8.0))),
            (vec![one(), reported(), one(), partly()], (1, None)),
            // A free model costs nothing.
            (vec![free(), finished(&json!({}))], (1, Some(0.0))),
            (vec![other(), finished(&json!({}))], (1, None)),
            // An attempt with content has unknown tokens.
            (vec![one(), call, retried.clone(), reported()], (1, None)),
            (vec![one(), retried, reported()], (0, Some(5.0))),
            (vec![one(), text(), failed()], (1, None)),
            (vec![one(), failed(), one(), reported()], (0, Some(5.0))),
        ] {
            assert_eq!(measure(events.clone()), expected, "{events:?}");
        }
    }
}
