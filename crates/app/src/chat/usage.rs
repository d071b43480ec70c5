//! Tokens and cost of a session.

use std::fmt::Write as _;

use switchboard_domain::{ModelId, Principal, RunStore, SessionId, SessionStoreError, Usage};
use switchboard_orchestration::{RunEvent, RunEventKind, RunReport};

use crate::observe::list_prices;

/// Maximum number of counted runs.
const MAX_RUNS: u32 = 10_000;

/// The sums of the reports of a session's runs.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct SessionUsage {
    pub(crate) runs: u64,
    pub(crate) steps: u64,
    pub(crate) tool_calls: u64,
    /// By model, in the order of first use.
    pub(crate) models: Vec<(ModelId, Usage, Option<f64>)>,
    /// US dollars of all runs with a known price.
    pub(crate) usd: f64,
    /// Number of runs without a known price.
    pub(crate) unpriced: u64,
}

impl SessionUsage {
    /// Reads the reports of a session.
    pub(crate) async fn of(
        store: &dyn RunStore,
        owner: &Principal,
        session: &SessionId,
    ) -> Result<Self, SessionStoreError> {
        let mut runs = store.runs(owner, Some(session), MAX_RUNS).await?;
        runs.reverse();
        let mut usage_sum = Self::default();
        for run in runs {
            let last = run.last_event.saturating_sub(1);
            let events = store.events(owner, &run.id, last, 1).await?;
            let event = events
                .last()
                .and_then(|event| serde_json::from_str::<RunEvent>(&event.json).ok());
            if let Some(RunEvent {
                kind: RunEventKind::RunFinished { report },
                ..
            }) = event
            {
                usage_sum.add(&report);
            }
        }
        Ok(usage_sum)
    }

    pub(crate) fn add(&mut self, report: &RunReport) {
        self.runs += 1;
        self.steps += u64::from(report.steps);
        self.tool_calls += report.tool_calls.len() as u64;
        if !report.usage.is_known() {
            return;
        }
        let cost = list_prices()(&report.model, &report.usage);
        match cost {
            Some(usd) => self.usd += usd,
            None => self.unpriced += 1,
        }
        match self.models.iter_mut().find(|(id, ..)| *id == report.model) {
            Some((_, usage, all)) => {
                usage.add(report.usage);
                *all = all.zip(cost).map(|(all, cost)| all + cost);
            }
            None => self.models.push((report.model.clone(), report.usage, cost)),
        }
    }

    /// Returns the text of `/usage`.
    pub(crate) fn describe(&self) -> String {
        let mut text = format!(
            "{}, {}, {}",
            count(self.runs, "answer"),
            count(self.steps, "model call"),
            count(self.tool_calls, "tool call")
        );
        for (model, usage, cost) in &self.models {
            let _ = write!(text, "\n  {model}: {}", tokens(usage));
            match cost {
                Some(usd) => {
                    let _ = write!(text, ", {}", dollars(*usd));
                }
                None => text.push_str(" (price unknown)"),
            }
        }
        if self.models.is_empty() {
            text.push_str("\n  no model reported its tokens");
        } else if self.unpriced == 0 && self.models.len() > 1 {
            let _ = write!(text, "\n  together {} by list prices", dollars(self.usd));
        }
        text
    }
}

fn tokens(usage: &Usage) -> String {
    let known = |tokens: Option<u64>| tokens.map_or_else(|| "?".to_owned(), |it| it.to_string());
    let mut text = format!(
        "{} tokens in, {} out",
        known(usage.input_tokens),
        known(usage.output_tokens)
    );
    let parts = [
        (usage.cache_read_tokens, "read from a cache"),
        (usage.cache_write_tokens, "written to a cache"),
        (usage.reasoning_tokens, "of them reasoning"),
    ];
    for (tokens, what) in parts {
        if let Some(tokens) = tokens.filter(|&tokens| tokens > 0) {
            let _ = write!(text, ", {tokens} {what}");
        }
    }
    text
}

fn dollars(usd: f64) -> String {
    if usd > 0.0 && usd < 0.01 {
        format!("${usd:.5}")
    } else {
        format!("${usd:.2}")
    }
}

fn count(number: u64, what: &str) -> String {
    let end = if number == 1 { "" } else { "s" };
    format!("{number} {what}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchboard_orchestration::Outcome;

    fn report(model: &str, input: u64, output: u64) -> RunReport {
        RunReport {
            run_id: "r".into(),
            session_id: None,
            model: model.parse().unwrap(),
            answer: String::new(),
            content: Vec::new(),
            outcome: Outcome::Completed,
            finish_reason: None,
            steps: 2,
            usage: Usage {
                input_tokens: Some(input),
                output_tokens: Some(output),
                ..Usage::default()
            },
            tool_calls: Vec::new(),
            warnings: Vec::new(),
            error: None,
        }
    }

    #[test]
    fn what_is_not_priced_is_said_and_not_taken_for_free() {
        let mut usage_sum = SessionUsage::default();
        usage_sum.add(&report("nobody/knows", 10, 20));
        usage_sum.add(&report("nobody/knows", 5, 5));
        assert_eq!(usage_sum.unpriced, 2);
        assert_eq!(
            usage_sum.describe(),
            "2 answers, 4 model calls, 0 tool calls\n  nobody/knows: 15 tokens in, 25 out (price unknown)"
        );
    }

    #[test]
    fn models_are_counted_apart_and_together() {
        let mut usage_sum = SessionUsage::default();
        usage_sum.add(&report("anthropic/claude-sonnet-5-5", 1_000_000, 0));
        usage_sum.add(&report("openai/gpt-4o", 1_000_000, 0));
        let text = usage_sum.describe();
        assert_eq!(usage_sum.models.len(), 2);
        assert!(usage_sum.usd > 0.0 && text.contains("together $"), "{text}");
        assert_eq!(dollars(0.001_234), "$0.00123");
    }

    #[test]
    fn nothing_said_is_not_zero() {
        let mut usage_sum = SessionUsage::default();
        let mut silent = report("a/b", 0, 0);
        silent.usage = Usage::default();
        usage_sum.add(&silent);
        assert!(
            usage_sum
                .describe()
                .ends_with("no model reported its tokens")
        );
    }
}
