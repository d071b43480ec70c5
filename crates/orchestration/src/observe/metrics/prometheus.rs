//! Metrics for a Prometheus registry.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeCounterValue, EncodeLabelSet, NoLabelSet},
    metrics::MetricType,
};

use super::{BOUNDS_MS, CallCounts, Histogram, Metrics, Snapshot};

type Labels<'a> = [(&'static str, &'a str); 2];
/// Name, description and count of a subset of tool calls.
type Subset = (&'static str, &'static str, fn(&CallCounts) -> u64);

/// A collector that encodes the current counts of [`Metrics`].
///
/// The metric names have no prefix; the registry adds one. Durations are in seconds and costs in US
/// dollars.
#[derive(Debug, Clone, Default)]
pub struct MetricsCollector(pub Arc<Mutex<Metrics>>);

impl Collector for MetricsCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let metrics = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = metrics.snapshot();
        drop(metrics);
        encode_runs(&mut encoder, &snapshot)?;
        encode_tools(&mut encoder, &snapshot)?;
        encode_models(&mut encoder, &snapshot)
    }
}

fn encode_runs(encoder: &mut DescriptorEncoder<'_>, snapshot: &Snapshot) -> fmt::Result {
    encoder
        .encode_descriptor("runs_started", "Started runs.", None, MetricType::Counter)?
        .encode_counter::<NoLabelSet, _, f64>(&snapshot.runs_started, None)?;
    let counts = [
        ("completed", snapshot.runs_completed),
        ("limited", snapshot.runs_limited),
        ("failed", snapshot.runs_failed),
        ("cancelled", snapshot.runs_cancelled),
    ];
    let samples = counts.map(|(outcome, count)| ([("outcome", outcome)], count));
    encode_counters(encoder, "runs", "Ended runs by outcome.", samples)
}

fn encode_tools(encoder: &mut DescriptorEncoder<'_>, snapshot: &Snapshot) -> fmt::Result {
    let tools = snapshot.tools.iter().map(|tool| {
        let server = tool.server.as_deref().unwrap_or_default();
        ([("server", server), ("tool", tool.tool.as_str())], tool)
    });
    let tools: Vec<(Labels<'_>, _)> = tools.collect();
    let calls: Vec<_> = tools
        .iter()
        .map(|(labels, tool)| (*labels, &tool.calls))
        .collect();
    encode_calls(encoder, "tool_calls", "Tool calls", &calls)?;
    encode_histograms(
        encoder,
        "tool_call_duration_seconds",
        "Duration of executed tool calls.",
        tools.iter().map(|(labels, tool)| (*labels, &tool.latency)),
    )
}

fn encode_models(encoder: &mut DescriptorEncoder<'_>, snapshot: &Snapshot) -> fmt::Result {
    let models = snapshot.models.iter().map(|model| {
        let id = &model.model;
        ([("provider", &*id.provider), ("model", &*id.name)], model)
    });
    let models: Vec<(Labels<'_>, _)> = models.collect();
    let name = "model_requests";
    encode_split(
        encoder,
        name,
        "Model calls by result.",
        "result",
        &models,
        |model| {
            [
                ("successful", model.requests.successful),
                ("failed", model.requests.failed),
                ("cancelled", model.requests.cancelled),
            ]
        },
    )?;
    let help = "Tokens. Input includes cache tokens, output includes reasoning tokens.";
    encode_split(encoder, "model_tokens", help, "type", &models, |model| {
        [
            ("input", model.tokens.input),
            ("output", model.tokens.output),
            ("cache_read", model.tokens.cache_read),
            ("cache_write", model.tokens.cache_write),
            ("reasoning", model.tokens.reasoning),
        ]
    })?;
    encode_counters(
        encoder,
        "model_cost_dollars",
        "Cost of model calls with a known price, in US dollars.",
        models
            .iter()
            .map(|(labels, model)| (*labels, model.cost_usd)),
    )?;
    encode_counters(
        encoder,
        "model_unpriced_requests",
        "Model answers with an unknown price.",
        models
            .iter()
            .map(|(labels, model)| (*labels, model.unpriced)),
    )?;
    let calls: Vec<_> = models
        .iter()
        .map(|(labels, model)| (*labels, &model.tool_calls))
        .collect();
    let help = "Tool calls that the model requested";
    encode_calls(encoder, "model_tool_calls", help, &calls)?;
    encode_histograms(
        encoder,
        "model_request_duration_seconds",
        "Time from a model request to the end of its answer.",
        models
            .iter()
            .map(|(labels, model)| (*labels, &model.latency)),
    )
}

/// Encodes the counts of tool calls as four metric families that share the prefix `name`.
fn encode_calls(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    calls: &[(Labels<'_>, &CallCounts)],
) -> fmt::Result {
    let by_result = format!("{help} by result.");
    encode_split(encoder, name, &by_result, "result", calls, |calls| {
        [
            ("successful", calls.successful),
            ("failed", calls.failed),
            ("hallucinated", calls.hallucinated),
            ("not_executed", calls.not_executed),
        ]
    })?;
    let subsets: [Subset; 3] = [
        ("unnecessary", "that repeated an earlier call", |calls| {
            calls.unnecessary
        }),
        ("useful", "that were successful and necessary", |calls| {
            calls.useful
        }),
        ("cached", "with a cached result", |calls| calls.cached),
    ];
    for (subset, description, count) in subsets {
        let samples = calls.iter().map(|(labels, calls)| (*labels, count(calls)));
        let name = format!("{name}_{subset}");
        encode_counters(encoder, &name, &format!("{help} {description}."), samples)?;
    }
    Ok(())
}

/// Encodes several counts of each item as one metric family with the further label `label`.
fn encode_split<T, const N: usize>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    label: &'static str,
    items: &[(Labels<'_>, &T)],
    counts: impl Fn(&T) -> [(&'static str, u64); N],
) -> fmt::Result {
    let samples = items.iter().flat_map(|(labels, item)| {
        let counts = counts(item).into_iter();
        counts.map(move |(value, count)| ((*labels, [(label, value)]), count))
    });
    encode_counters(encoder, name, help, samples)
}

fn encode_counters<L: EncodeLabelSet, V: EncodeCounterValue>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    samples: impl IntoIterator<Item = (L, V)>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, value) in samples {
        family
            .encode_family(&labels)?
            .encode_counter::<NoLabelSet, _, f64>(&value, None)?;
    }
    Ok(())
}

#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds are far below 2^52"
)]
fn encode_histograms<'a>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    histograms: impl Iterator<Item = (Labels<'a>, &'a Histogram)>,
) -> fmt::Result {
    let seconds = |ms: u64| ms as f64 / 1_000.0;
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
    for (labels, histogram) in histograms {
        let bounds = BOUNDS_MS.iter().map(|bound| seconds(*bound));
        let bounds = bounds.chain([f64::INFINITY]);
        let buckets: Vec<_> = bounds.zip(histogram.buckets).collect();
        family
            .encode_family(&labels)?
            .encode_histogram::<NoLabelSet>(
                seconds(histogram.sum_ms),
                histogram.count,
                &buckets,
                None,
            )?;
    }
    Ok(())
}
