//! What is counted of requests, in Prometheus' text form beside what is counted of runs.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::hub::Hub;

/// Upper bounds of the histogram of times to the first byte, in seconds.
const BOUNDS: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 30.0, 120.0];

/// Requests and connections, counted.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    requests: Mutex<BTreeMap<Sort, Tally>>,
    pub(crate) open_requests: Gauge,
    pub(crate) connections: Gauge,
}

/// How many there are of something now.
#[derive(Debug, Default)]
pub(crate) struct Gauge(Arc<AtomicUsize>);

/// One of them, until it is dropped, however that comes.
#[derive(Debug)]
pub(crate) struct Counted(Arc<AtomicUsize>);

impl Gauge {
    pub(crate) fn one_more(&self) -> Counted {
        self.0.fetch_add(1, Ordering::Relaxed);
        Counted(Arc::clone(&self.0))
    }

    fn now(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What is counted together. The route is the pattern, not the address: there are few.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Sort {
    method: &'static str,
    route: String,
    status: u16,
}

#[derive(Debug, Default)]
struct Tally {
    count: u64,
    seconds: f64,
    within: [u64; BOUNDS.len()],
}

/// A client may send any word as a method; these are few.
fn known(method: &str) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    let found = KNOWN.into_iter().find(|known| *known == method);
    found.unwrap_or("other")
}

impl Counts {
    /// A request that was answered: when its answer began.
    pub(crate) fn answered(&self, method: &str, route: &str, status: u16, after: Duration) {
        let sort = Sort {
            method: known(method),
            route: route.to_owned(),
            status,
        };
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let tally = requests.entry(sort).or_default();
        tally.count += 1;
        let seconds = after.as_secs_f64();
        tally.seconds += seconds;
        for (within, bound) in tally.within.iter_mut().zip(BOUNDS) {
            *within += u64::from(seconds <= bound);
        }
    }

    /// Everything, in Prometheus' text form.
    pub(crate) fn text(&self, hub: &Hub) -> String {
        let mut text = hub.counts().prometheus();
        let (under_way, asking) = hub.under_way();
        gauge(
            &mut text,
            "runs_active",
            "Runs that are under way in this process.",
            under_way,
        );
        gauge(
            &mut text,
            "runs_asking",
            "Of these, runs that wait for a person.",
            asking,
        );
        gauge(
            &mut text,
            "http_requests_open",
            "Requests that are open, streams among them.",
            self.open_requests.now(),
        );
        gauge(
            &mut text,
            "http_connections_open",
            "Connections that are open.",
            self.connections.now(),
        );
        let name = "switchboard_http_response_seconds";
        let _ = writeln!(
            text,
            "# HELP {name} Time until an answer began.\n# TYPE {name} histogram"
        );
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        for (sort, tally) in &*requests {
            let Sort {
                method,
                route,
                status,
            } = sort;
            let labels = format!("method=\"{method}\",route=\"{route}\",status=\"{status}\"");
            for (bound, within) in BOUNDS.iter().zip(tally.within) {
                let _ = writeln!(text, "{name}_bucket{{{labels},le=\"{bound}\"}} {within}");
            }
            let Tally { count, seconds, .. } = tally;
            let _ = writeln!(text, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}");
            let _ = writeln!(text, "{name}_sum{{{labels}}} {seconds}");
            let _ = writeln!(text, "{name}_count{{{labels}}} {count}");
        }
        text
    }
}

fn gauge(text: &mut String, name: &str, help: &str, value: usize) {
    let name = format!("switchboard_{name}");
    let _ = writeln!(
        text,
        "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_clients_make_up_are_counted_together() {
        let counts = Counts::default();
        for method in ["GET", "M1", "M2", "get"] {
            counts.answered(method, "/recipes", 200, Duration::ZERO);
        }
        let requests = counts.requests.lock().unwrap();
        let counted: Vec<_> = requests
            .iter()
            .map(|(sort, tally)| (sort.method, tally.count))
            .collect();
        assert_eq!(counted, [("GET", 1), ("other", 3)]);
    }
}
