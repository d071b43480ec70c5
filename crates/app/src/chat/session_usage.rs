//! Computes the tokens and the cost of a session for `/usage`.

use std::fmt::Write as _;

use switchboard_domain::{Principal, RunStore, SessionId, SessionStoreError};
use switchboard_orchestration::{
    RunEvent,
    observe::metrics::{Metrics, MetricsSnapshot},
};

use crate::observe::build_cost_function;

/// Maximum number of runs of a session that `/usage` counts. Older runs are ignored.
const MAX_RUNS: u32 = 10_000;
/// Maximum number of run events that one request to the session store returns.
const PAGE: u32 = 1_000;

/// Returns a text with the numbers of answers, model calls and tool calls of a session, and with
/// the tokens and the cost of each model.
pub(super) async fn describe_usage(
    store: &dyn RunStore,
    owner: &Principal,
    session: &SessionId,
) -> Result<String, SessionStoreError> {
    let mut metrics = Metrics::default().with_cost_function(build_cost_function());
    for run in store.list_runs(owner, Some(session), MAX_RUNS).await? {
        let mut after = 0;
        loop {
            let events = store.load_events(owner, &run.id, after, PAGE).await?;
            let Some(last) = events.last() else {
                break;
            };
            after = last.seq;
            for event in &events {
                // Events that another program version stored may not parse. They are not counted.
                if let Ok(event) = serde_json::from_str::<RunEvent>(&event.json) {
                    metrics.count_event(&event);
                }
            }
        }
    }
    Ok(format_usage(&metrics.take_snapshot()))
}

fn format_usage(counted: &MetricsSnapshot) -> String {
    let answers = counted.runs_completed
        + counted.runs_limited
        + counted.runs_failed
        + counted.runs_cancelled;
    let requests = counted.models.iter().map(|model| model.requests.total);
    let calls = counted.tools.iter().map(|tool| tool.calls.total);
    let mut text = format!(
        "{}, {}, {}",
        format_count(answers, "answer"),
        format_count(requests.sum(), "model call"),
        format_count(calls.sum(), "tool call")
    );
    for model in &counted.models {
        let (id, tokens) = (&model.model, &model.tokens);
        let cost = match model.unpriced {
            0 => format!(", ${:.4}", model.cost_usd),
            _ => " (price unknown)".to_owned(),
        };
        let (input, output) = (tokens.input, tokens.output);
        let _ = write!(text, "\n  {id}: {input} tokens in, {output} out{cost}");
    }
    text
}

fn format_count(number: u64, what: &str) -> String {
    let end = if number == 1 { "" } else { "s" };
    format!("{number} {what}{end}")
}
