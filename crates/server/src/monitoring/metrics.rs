//! Collects metrics of runs, requests and connections.

use std::{sync::Arc, time::Duration};

use prometheus_client::{
    encoding::text::encode,
    metrics::{family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};
use switchboard_orchestration::observe::metrics::MetricsCollector;

use crate::hub::RunHub;

/// Upper bounds of the buckets for response times, in seconds.
const BOUNDS: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 30.0, 120.0];

/// The labels of a response: method, route and status. The route is the route pattern, not the
/// path.
type ResponseLabels = [(&'static str, String); 3];

/// The names and descriptions of the gauges. Their values are set when the metrics are read.
const GAUGES: [(&str, &str); 4] = [
    ("runs_active", "Active runs of this process"),
    ("runs_waiting", "Active runs that wait for a person"),
    ("http_requests_open", "Open requests, including streams"),
    ("http_connections_open", "Open connections"),
];

/// The Prometheus metrics of runs, requests and connections.
pub(crate) struct ServerMetrics {
    registry: Registry,
    responses: Family<ResponseLabels, Histogram, fn() -> Histogram>,
    gauges: [Gauge; GAUGES.len()],
    /// A counter of open requests. Every open request holds a clone, so the strong count minus one
    /// is the number of open requests.
    pub(crate) open_requests: Arc<()>,
    /// A counter of open connections. Every open connection holds a clone, so the strong count
    /// minus one is the number of open connections.
    pub(crate) connections: Arc<()>,
}

impl ServerMetrics {
    pub(crate) fn new(runs: MetricsCollector) -> Self {
        let new_histogram: fn() -> Histogram = || Histogram::new(BOUNDS);
        let responses = Family::new_with_constructor(new_histogram);
        let mut registry = Registry::with_prefix("switchboard");
        registry.register_collector(Box::new(runs));
        let gauges = GAUGES.map(|(name, help)| {
            let gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            gauge
        });
        let about = "Time until a response started";
        registry.register("http_response_seconds", about, responses.clone());
        Self {
            registry,
            responses,
            gauges,
            open_requests: Arc::default(),
            connections: Arc::default(),
        }
    }

    /// Records the time until a response started (`after`), by method, route pattern and status.
    pub(crate) fn record_response(&self, method: &str, route: &str, status: u16, after: Duration) {
        let labels = [
            ("method", http_method_label(method).to_owned()),
            ("route", route.to_owned()),
            ("status", status.to_string()),
        ];
        let histogram = self.responses.get_or_create(&labels);
        histogram.observe(after.as_secs_f64());
    }

    /// Formats all metrics as `OpenMetrics` 1.0.0 text.
    pub(crate) fn format_metrics(&self, hub: &RunHub) -> String {
        let (active, waiting) = hub.count_active_runs();
        let open = |counter: &Arc<()>| Arc::strong_count(counter) - 1;
        let (requests, connections) = (open(&self.open_requests), open(&self.connections));
        let counts = [active, waiting, requests, connections];
        for (gauge, count) in self.gauges.iter().zip(counts) {
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        let mut text = String::new();
        if let Err(error) = encode(&mut text, &self.registry) {
            tracing::warn!(%error, "failed to encode the metrics");
        }
        text
    }
}

/// Returns the metrics label of an HTTP method. Clients can send any method, so unknown methods
/// share one label.
fn http_method_label(method: &str) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    let found = KNOWN.into_iter().find(|known| *known == method);
    found.unwrap_or("other")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_methods_share_a_label() {
        let metrics = ServerMetrics::new(MetricsCollector::default());
        for method in ["GET", "M1", "M2", "get"] {
            metrics.record_response(method, "/recipes", 200, Duration::ZERO);
        }
        let mut text = String::new();
        encode(&mut text, &metrics.registry).unwrap();
        for (method, count) in [("GET", 1), ("other", 3)] {
            let sample = format!(
                "switchboard_http_response_seconds_count{{method=\"{method}\",\
                 route=\"/recipes\",status=\"200\"}} {count}\n"
            );
            assert!(text.contains(&sample), "{text}");
        }
    }
}
