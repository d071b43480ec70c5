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
    let tools: Vec<_> = tools.collect();
    let calls = tools.iter().map(|(labels, tool)| (*labels, &tool.calls));
    encode_calls(
        encoder,
        "tool_calls",
        "Tool calls",
        &calls.collect::<Vec<_>>(),
    )?;
    let latencies = tools.iter().map(|(labels, tool)| (*labels, &tool.latency));
    encode_histograms(
        encoder,
        "tool_call_duration_seconds",
        "Duration of executed tool calls.",
        latencies,
    )
}

fn encode_models(encoder: &mut DescriptorEncoder<'_>, snapshot: &Snapshot) -> fmt::Result {
    let models = snapshot.models.iter().map(|model| {
        let id = &model.model;
        ([("provider", &*id.provider), ("model", &*id.name)], model)
    });
    let models: Vec<(Labels<'_>, _)> = models.collect();
    let requests = models.iter().flat_map(|(labels, model)| {
        let counts = [
            ("successful", model.requests.successful),
            ("failed", model.requests.failed),
            ("cancelled", model.requests.cancelled),
        ];
        counts.map(|(result, count)| ((*labels, [("result", result)]), count))
    });
    encode_counters(
        encoder,
        "model_requests",
        "Model calls by result.",
        requests,
    )?;
    let tokens = models.iter().flat_map(|(labels, model)| {
        let counts = [
            ("input", model.tokens.input),
            ("output", model.tokens.output),
            ("cache_read", model.tokens.cache_read),
            ("cache_write", model.tokens.cache_write),
            ("reasoning", model.tokens.reasoning),
        ];
        counts.map(|(kind, count)| ((*labels, [("type", kind)]), count))
    });
    encode_counters(
        encoder,
        "model_tokens",
        "Tokens. Input includes cache tokens, output includes reasoning tokens.",
        tokens,
    )?;
    let costs = models
        .iter()
        .map(|(labels, model)| (*labels, model.cost_usd));
    encode_counters(
        encoder,
        "model_cost_dollars",
        "Cost of model calls with a known price, in US dollars.",
        costs,
    )?;
    let unpriced = models
        .iter()
        .map(|(labels, model)| (*labels, model.unpriced));
    encode_counters(
        encoder,
        "model_unpriced_requests",
        "Model answers with an unknown price.",
        unpriced,
    )?;
    let calls = models
        .iter()
        .map(|(labels, model)| (*labels, &model.tool_calls));
    encode_calls(
        encoder,
        "model_tool_calls",
        "Tool calls that the model requested",
        &calls.collect::<Vec<_>>(),
    )?;
    let latencies = models
        .iter()
        .map(|(labels, model)| (*labels, &model.latency));
    encode_histograms(
        encoder,
        "model_request_duration_seconds",
        "Time from a model request to the end of its answer.",
        latencies,
    )
}

/// Encodes the counts of tool calls as four metric families that share the prefix `name`.
fn encode_calls<'a>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    calls: &[(Labels<'a>, &'a CallCounts)],
) -> fmt::Result {
    let results = calls.iter().flat_map(|(labels, calls)| {
        let counts = [
            ("successful", calls.successful),
            ("failed", calls.failed),
            ("hallucinated", calls.hallucinated),
            ("not_executed", calls.not_executed),
        ];
        counts.map(|(result, count)| ((*labels, [("result", result)]), count))
    });
    encode_counters(encoder, name, &format!("{help} by result."), results)?;
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
