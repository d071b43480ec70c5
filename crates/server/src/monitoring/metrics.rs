//! Metrics of the server, in a registry that it owns.

use std::time::Duration;

use prometheus_client::{
    encoding::text::encode,
    metrics::{family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};
use switchboard_orchestration::observe::metrics::MetricsCollector;

use crate::hub::Hub;

/// Upper bounds of the buckets for response times, in seconds.
const BOUNDS: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 30.0, 120.0];

/// The labels of a response: method, route and status. The route is the route pattern, not the
/// path.
type ResponseLabels = [(&'static str, String); 3];

/// The metrics of runs, requests and connections.
pub(crate) struct ServerMetrics {
    registry: Registry,
    responses: Family<ResponseLabels, Histogram, fn() -> Histogram>,
    active_runs: Gauge,
    waiting_runs: Gauge,
    pub(crate) open_requests: OpenCount,
    pub(crate) connections: OpenCount,
}

/// A counter of open requests or connections.
#[derive(Debug, Default, Clone)]
pub(crate) struct OpenCount(Gauge);

/// A guard that counts one open request or connection until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenGuard(OpenCount);

impl OpenCount {
    pub(crate) fn open(&self) -> OpenGuard {
        self.0.inc();
        OpenGuard(self.clone())
    }
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.0.0.dec();
    }
}

impl ServerMetrics {
    pub(crate) fn new(runs: MetricsCollector) -> Self {
        let new_histogram: fn() -> Histogram = || Histogram::new(BOUNDS);
        let mut metrics = Self {
            registry: Registry::with_prefix("switchboard"),
            responses: Family::new_with_constructor(new_histogram),
            active_runs: Gauge::default(),
            waiting_runs: Gauge::default(),
            open_requests: OpenCount::default(),
            connections: OpenCount::default(),
        };
        let registry = &mut metrics.registry;
        registry.register_collector(Box::new(runs));
        let (requests, connections) = (&metrics.open_requests.0, &metrics.connections.0);
        for (name, help, gauge) in [
            (
                "runs_active",
                "Active runs of this process",
                &metrics.active_runs,
            ),
            (
                "runs_waiting",
                "Active runs that wait for a person",
                &metrics.waiting_runs,
            ),
            (
                "http_requests_open",
                "Open requests, including streams",
                requests,
            ),
            ("http_connections_open", "Open connections", connections),
        ] {
            registry.register(name, help, gauge.clone());
        }
        registry.register(
            "http_response_seconds",
            "Time until a response started",
            metrics.responses.clone(),
        );
        metrics
    }

    /// Records the method, route, status and response time when a response starts.
    pub(crate) fn record_response(&self, method: &str, route: &str, status: u16, after: Duration) {
        let labels = [
            ("method", known_method(method).to_owned()),
            ("route", route.to_owned()),
            ("status", status.to_string()),
        ];
        let histogram = self.responses.get_or_create(&labels);
        histogram.observe(after.as_secs_f64());
    }

    /// Formats all metrics as `OpenMetrics` 1.0.0 text.
    pub(crate) fn text(&self, hub: &Hub) -> String {
        let (active, waiting) = hub.count_active();
        let count = |runs: usize| i64::try_from(runs).unwrap_or(i64::MAX);
        self.active_runs.set(count(active));
        self.waiting_runs.set(count(waiting));
        let mut text = String::new();
        if let Err(error) = encode(&mut text, &self.registry) {
            tracing::warn!(%error, "failed to encode the metrics");
        }
        text
    }
}

/// Returns the metrics label of an HTTP method. Clients can send any method, so unknown methods
/// share one label.
fn known_method(method: &str) -> &'static str {
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
