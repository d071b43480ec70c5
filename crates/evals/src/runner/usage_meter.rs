//! What the calls of a model in one run cost.

use switchboard_domain::{ModelId, Usage};
use switchboard_orchestration::RunEventKind;

/// Adds up what each answer cost, by the model that gave it.
pub(crate) struct Meter {
    /// The model that is being asked.
    model: ModelId,
    /// It has said something of its answer.
    is_heard: bool,
    unmetered: u32,
    cost_usd: Option<f64>,
}

impl Meter {
    pub(crate) fn new(model: &ModelId) -> Self {
        Self {
            model: model.clone(),
            is_heard: false,
            unmetered: 0,
            cost_usd: Some(0.0),
        }
    }

    /// Takes in what happened. `price` is what an answer of a model with these tokens cost.
    pub(crate) fn take(
        &mut self,
        event: &RunEventKind,
        price: impl Fn(&ModelId, &Usage) -> Option<f64>,
    ) {
        match event {
            RunEventKind::ModelCallStarted { model, .. } => {
                self.model.clone_from(model);
                self.is_heard = false;
            }
            RunEventKind::TextDelta { .. }
            | RunEventKind::ReasoningDelta { .. }
            | RunEventKind::ToolInputStarted { .. }
            | RunEventKind::ProviderBlock { .. } => self.is_heard = true,
            RunEventKind::ModelCallFinished { usage, .. } => {
                let cost = cost(&self.model, usage, price);
                self.add(usage, cost);
            }
            // What was never answered costs nothing; of what broke off nobody tells the tokens.
            RunEventKind::ModelCallFailed { .. } | RunEventKind::ModelCallRetried { .. }
                if std::mem::take(&mut self.is_heard) =>
            {
                let usage = Usage::default();
                let cost = cost(&self.model, &usage, price);
                self.add(&usage, cost);
            }
            RunEventKind::HistorySummarised {
                model,
                usage,
                error,
                ..
            } if error.is_none() || usage.is_known() => {
                let cost = cost(model, usage, price);
                self.add(usage, cost);
            }
            _ => {}
        }
    }

    fn add(&mut self, usage: &Usage, cost: Option<f64>) {
        self.unmetered += u32::from(!is_told(usage));
        self.cost_usd = self.cost_usd.zip(cost).map(|(sum, cost)| sum + cost);
    }

    /// Answers of whose tokens not all were told.
    pub(crate) fn unmetered(&self) -> u32 {
        self.unmetered
    }

    /// US dollars of all answers, if the price and the tokens of each are known.
    pub(crate) fn cost_usd(&self) -> Option<f64> {
        self.cost_usd
    }
}

/// What an answer cost. A model that is free costs nothing, whatever its tokens were.
fn cost(
    model: &ModelId,
    usage: &Usage,
    price: impl Fn(&ModelId, &Usage) -> Option<f64>,
) -> Option<f64> {
    if is_told(usage) {
        return price(model, usage);
    }
    let some = Usage {
        input_tokens: Some(1_000_000),
        output_tokens: Some(1_000_000),
        ..Usage::default()
    };
    price(model, &some).filter(|it| *it <= 0.0)
}

/// Whether a provider told what an answer is paid by.
fn is_told(usage: &Usage) -> bool {
    usage.input_tokens.is_some() && usage.output_tokens.is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn met(events: Vec<Value>) -> (u32, Option<f64>) {
        let mut meter = Meter::new(&ModelId::new("acme", "one"));
        for event in events {
            let event: RunEventKind = serde_json::from_value(event).unwrap();
            meter.take(&event, |model, usage| match &*model.name {
                "one" => Some(f64::from(u32::try_from(usage.output_tokens?).unwrap())),
                "free" => Some(0.0),
                _ => None,
            });
        }
        (meter.unmetered(), meter.cost_usd())
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
    fn an_attempt_that_broke_off_and_was_repeated_has_tokens_that_nobody_reported() {
        let begun = json!({"type": "tool_input_started", "id": "a", "name": "find"});
        let retried = json!({"type": "model_call_retried", "step": 1, "attempt": 2, "delay_ms": 5,
            "reason": "cut off"});
        let told = finished(&json!({"input_tokens": 1, "output_tokens": 5}));
        let heard = vec![started("acme/one"), begun, retried.clone(), told.clone()];
        assert_eq!(met(heard), (1, None));
        // The failed attempt had not begun to answer.
        let silent = vec![started("acme/one"), retried, told];
        assert_eq!(met(silent), (0, Some(5.0)));
    }

    #[test]
    fn each_answer_has_the_price_of_its_own_model() {
        let told = finished(&json!({"input_tokens": 1, "output_tokens": 5}));
        let one = vec![
            started("acme/one"),
            told.clone(),
            started("acme/free"),
            told.clone(),
        ];
        assert_eq!(met(one), (0, Some(5.0)));
        assert_eq!(met(vec![started("acme/other"), told.clone()]), (0, None));
        let summary = json!({"type": "history_summarised", "step": 1, "model": "acme/one",
            "usage": {"input_tokens": 2, "output_tokens": 3}});
        assert_eq!(
            met(vec![summary, started("acme/one"), told]),
            (0, Some(8.0))
        );
        assert_eq!(met(Vec::new()), (0, Some(0.0)));
    }

    #[test]
    fn tokens_that_were_told_in_part_have_no_price() {
        let told = finished(&json!({"input_tokens": 1, "output_tokens": 5}));
        let partly = finished(&json!({"input_tokens": 1}));
        let events = vec![started("acme/one"), told, started("acme/one"), partly];
        assert_eq!(met(events), (1, None));
        // Unless there is nothing to pay.
        let silent = finished(&json!({}));
        assert_eq!(
            met(vec![started("acme/free"), silent.clone()]),
            (1, Some(0.0))
        );
        assert_eq!(met(vec![started("acme/other"), silent]), (1, None));
    }

    #[test]
    fn an_answer_that_broke_off_has_tokens_that_nobody_told() {
        let told = finished(&json!({"input_tokens": 1, "output_tokens": 5}));
        let text = json!({"type": "text_delta", "text": "I"});
        let broke_off = vec![started("acme/one"), text, failed()];
        assert_eq!(met(broke_off), (1, None));
        let tried_again = vec![started("acme/one"), failed(), started("acme/one"), told];
        assert_eq!(met(tried_again), (0, Some(5.0)));
    }
}
