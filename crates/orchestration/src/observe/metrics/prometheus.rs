//! Export of the metrics to a Prometheus registry.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeCounterValue, EncodeLabelSet, NoLabelSet},
    metrics::MetricType,
};

use super::{
    BOUNDS_MS, Histogram, Metrics, MetricsSnapshot, ModelMetrics, ToolCallCounts, ToolMetrics,
};

type Labels<'a> = [(&'static str, &'a str); 2];
/// Value of a Prometheus label, such as `failed`, and the function that returns the count for it.
type LabelledCount<T> = (&'static str, fn(&T) -> u64);
/// Suffix of a metric name, description for its help text, and function that counts a subset of the
/// tool calls, such as the cached ones.
type ToolCallSubset = (&'static str, &'static str, fn(&ToolCallCounts) -> u64);

const CALL_RESULTS: [LabelledCount<ToolCallCounts>; 4] = [
    ("successful", |calls| calls.successful),
    ("failed", |calls| calls.failed),
    ("hallucinated", |calls| calls.hallucinated),
    ("not_executed", |calls| calls.not_executed),
];
const REQUEST_RESULTS: [LabelledCount<ModelMetrics>; 3] = [
    ("successful", |model| model.requests.successful),
    ("failed", |model| model.requests.failed),
    ("cancelled", |model| model.requests.cancelled),
];
const TOKEN_TYPES: [LabelledCount<ModelMetrics>; 5] = [
    ("input", |model| model.tokens.input),
    ("output", |model| model.tokens.output),
    ("cache_read", |model| model.tokens.cache_read),
    ("cache_write", |model| model.tokens.cache_write),
    ("reasoning", |model| model.tokens.reasoning),
];

/// Prometheus collector that encodes the current counts of [`Metrics`].
///
/// The metric names have no prefix, because the registry adds one. Durations are in seconds and
/// costs in US dollars.
#[derive(Debug, Clone, Default)]
pub struct MetricsCollector(pub Arc<Mutex<Metrics>>);

impl Collector for MetricsCollector {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let metrics = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = metrics.take_snapshot();
        drop(metrics);
        let mut encoder = MetricsEncoder(encoder);
        encoder.encode_runs(&snapshot)?;
        encoder.encode_tools(&snapshot.tools)?;
        encoder.encode_models(&snapshot.models)
    }
}

struct MetricsEncoder<'e>(DescriptorEncoder<'e>);

impl MetricsEncoder<'_> {
    fn encode_runs(&mut self, snapshot: &MetricsSnapshot) -> fmt::Result {
        self.0
            .encode_descriptor("runs_started", "Started runs.", None, MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, f64>(&snapshot.runs_started, None)?;
        let counts = [
            ("completed", snapshot.runs_completed),
            ("limited", snapshot.runs_limited),
            ("failed", snapshot.runs_failed),
            ("cancelled", snapshot.runs_cancelled),
        ];
        let samples = counts.map(|(outcome, count)| ([("outcome", outcome)], count));
        self.encode_counters("runs", "Ended runs by outcome.", samples)
    }

    fn encode_tools(&mut self, tools: &[ToolMetrics]) -> fmt::Result {
        let tools = tools.iter().map(|tool| {
            let server = tool.server.as_deref().unwrap_or_default();
            ([("server", server), ("tool", tool.tool.as_str())], tool)
        });
        let tools: Vec<(Labels<'_>, _)> = tools.collect();
        let calls = tools.iter().map(|(labels, tool)| (*labels, &tool.calls));
        self.encode_tool_calls("tool_calls", "Tool calls", &calls.collect::<Vec<_>>())?;
        self.encode_histograms(
            "tool_call_duration_seconds",
            "Duration of executed tool calls.",
            tools.iter().map(|(labels, tool)| (*labels, &tool.latency)),
        )
    }

    fn encode_models(&mut self, models: &[ModelMetrics]) -> fmt::Result {
        let models = models.iter().map(|model| {
            let id = &model.model;
            ([("provider", &*id.provider), ("model", &*id.name)], model)
        });
        let models: Vec<(Labels<'_>, _)> = models.collect();
        let help = "Model calls by result.";
        self.encode_labelled_counters("model_requests", help, "result", &models, REQUEST_RESULTS)?;
        let help = "Tokens. Input includes cache tokens, output includes reasoning tokens.";
        self.encode_labelled_counters("model_tokens", help, "type", &models, TOKEN_TYPES)?;
        let costs = models
            .iter()
            .map(|(labels, model)| (*labels, model.cost_usd));
        let help = "Cost of model calls with a known price, in US dollars.";
        self.encode_counters("model_cost_dollars", help, costs)?;
        let unpriced = models
            .iter()
            .map(|(labels, model)| (*labels, model.unpriced));
        let help = "Model answers with an unknown price.";
        self.encode_counters("model_unpriced_requests", help, unpriced)?;
        let calls = models
            .iter()
            .map(|(labels, model)| (*labels, &model.tool_calls));
        let help = "Tool calls that the model requested";
        self.encode_tool_calls("model_tool_calls", help, &calls.collect::<Vec<_>>())?;
        self.encode_histograms(
            "model_request_duration_seconds",
            "Time from a model request to the end of its answer.",
            models
                .iter()
                .map(|(labels, model)| (*labels, &model.latency)),
        )
    }

    /// Encodes the counts of tool calls as four metric families. The family `name` counts the calls
    /// by result. The families `{name}_unnecessary`, `{name}_useful` and `{name}_cached` count only
    /// the unnecessary, useful and cached calls.
    fn encode_tool_calls(
        &mut self,
        name: &str,
        help: &str,
        calls: &[(Labels<'_>, &ToolCallCounts)],
    ) -> fmt::Result {
        let by_result = format!("{help} by result.");
        self.encode_labelled_counters(name, &by_result, "result", calls, CALL_RESULTS)?;
        let subsets: [ToolCallSubset; 3] = [
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
            self.encode_counters(&name, &format!("{help} {description}."), samples)?;
        }
        Ok(())
    }

    /// Encodes the counts of tools or models as one metric family. The label `label`, such as
    /// `result`, distinguishes the counts of one tool or model.
    fn encode_labelled_counters<T, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        label: &'static str,
        items: &[(Labels<'_>, &T)],
        counts: [LabelledCount<T>; N],
    ) -> fmt::Result {
        let samples = items.iter().flat_map(|(labels, item)| {
            counts.map(|(value, count)| ((*labels, [(label, value)]), count(item)))
        });
        self.encode_counters(name, help, samples)
    }

    fn encode_counters<L: EncodeLabelSet, V: EncodeCounterValue>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (L, V)>,
    ) -> fmt::Result {
        let counter = MetricType::Counter;
        let mut family = self.0.encode_descriptor(name, help, None, counter)?;
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
        &mut self,
        name: &str,
        help: &str,
        histograms: impl Iterator<Item = (Labels<'a>, &'a Histogram)>,
    ) -> fmt::Result {
        let seconds = |ms: u64| ms as f64 / 1_000.0;
        let histogram = MetricType::Histogram;
        let mut family = self.0.encode_descriptor(name, help, None, histogram)?;
        for (labels, histogram) in histograms {
            let bounds = BOUNDS_MS.iter().map(|bound| seconds(*bound));
            let bounds = bounds.chain([f64::INFINITY]);
            let buckets: Vec<_> = bounds.zip(histogram.buckets).collect();
            let (sum, count) = (seconds(histogram.sum_ms), histogram.count);
            family
                .encode_family(&labels)?
                .encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
        }
        Ok(())
    }
}
