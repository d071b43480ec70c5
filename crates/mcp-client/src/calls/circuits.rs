//! The circuit breakers of one server: one for the server and one for each of its tools.
//!
//! The breaker of a tool counts calls of that tool without an answer, the breaker of the server
//! calls of any tool. Only calls that were sent count. The end of a process does not count for the
//! server, because the supervisor restarts it, but it counts once for each tool that was being
//! called.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::calls::circuit_breaker::{Admission, Breaker, Outcome, Policy, Rejected};

/// When a tool or a server that does not answer is not called, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CircuitOptions {
    /// Number of consecutive calls of a tool without an answer that open its breaker. 0 disables
    /// it.
    pub tool_failures: u32,
    /// Number of consecutive calls of any tool without an answer that open the breaker of the
    /// server. 0 disables it.
    pub server_failures: u32,
    /// The first pause of an open breaker. After it one call is admitted as a probe. Without an
    /// answer the pause doubles.
    pub pause: Duration,
    /// The longest pause.
    pub max_pause: Duration,
}

impl Default for CircuitOptions {
    fn default() -> Self {
        Self {
            tool_failures: 3,
            server_failures: 5,
            pause: Duration::from_secs(10),
            max_pause: Duration::from_mins(2),
        }
    }
}

impl CircuitOptions {
    fn policy(&self, failures: u32) -> Policy {
        Policy {
            failures,
            pause: self.pause,
            max_pause: self.max_pause,
        }
    }
}

/// Which breakers are open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CircuitStatus {
    Closed,
    /// Breakers of tools, with a description.
    ToolsOpen(String),
    /// The breaker of the server, with a description.
    ServerOpen(String),
}

pub(crate) struct Circuits {
    options: CircuitOptions,
    created: Instant,
    inner: Mutex<Inner>,
}

struct Inner {
    server: Circuit,
    /// The circuits of tools that have failed once.
    tools: HashMap<String, Circuit>,
}

struct Circuit {
    breaker: Breaker,
    /// The reason of the last failure.
    last_failure: String,
}

/// An admitted call. Without [`CallAdmission::record`] it counts as cancelled.
#[must_use = "the circuits need the outcome of the call"]
pub(crate) struct CallAdmission<'a> {
    circuits: &'a Circuits,
    tool: &'a str,
    /// The admissions by the server and, if it has failed once, by the tool.
    admissions: Option<(Admission, Option<Admission>)>,
}

impl Circuits {
    pub(crate) fn new(options: CircuitOptions) -> Self {
        let server = Circuit::new(options.policy(options.server_failures));
        Self {
            options,
            created: Instant::now(),
            inner: Mutex::new(Inner {
                server,
                tools: HashMap::new(),
            }),
        }
    }

    /// Returns the reason if a call would be rejected.
    pub(crate) fn check(&self, tool: &str) -> Result<(), String> {
        let inner = self.lock();
        let now = self.created.elapsed();
        if let Err(rejected) = inner.server.breaker.check(now) {
            return Err(inner.server.rejection(None, rejected));
        }
        if let Some(circuit) = inner.tools.get(tool)
            && let Err(rejected) = circuit.breaker.check(now)
        {
            return Err(circuit.rejection(Some(tool), rejected));
        }
        Ok(())
    }

    /// Admits a call, or returns the reason of the rejection.
    pub(crate) fn admit<'a>(&'a self, tool: &'a str) -> Result<CallAdmission<'a>, String> {
        let mut inner = self.lock();
        let now = self.created.elapsed();
        // If one breaker rejects the call, the admission by the other is returned.
        let of_tool = match inner.tools.get_mut(tool) {
            Some(circuit) => match circuit.breaker.admit(now) {
                Ok(admission) => Some(admission),
                Err(rejected) => return Err(circuit.rejection(Some(tool), rejected)),
            },
            None => None,
        };
        match inner.server.breaker.admit(now) {
            Ok(of_server) => Ok(CallAdmission {
                circuits: self,
                tool,
                admissions: Some((of_server, of_tool)),
            }),
            Err(rejected) => {
                if let (Some(admission), Some(circuit)) = (of_tool, inner.tools.get_mut(tool)) {
                    circuit.breaker.record(&admission, Outcome::Unknown, now);
                }
                Err(inner.server.rejection(None, rejected))
            }
        }
    }

    /// Closes all breakers, after a restart that a person requested.
    pub(crate) fn reset(&self) {
        let mut inner = self.lock();
        inner.server = Circuit::new(self.options.policy(self.options.server_failures));
        inner.tools.clear();
    }

    /// Closes the breaker of the server, after a restart. The breakers of its tools stay.
    pub(crate) fn reset_server(&self) {
        self.lock().server = Circuit::new(self.options.policy(self.options.server_failures));
    }

    pub(crate) fn status(&self) -> CircuitStatus {
        self.lock().status()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn status(&self) -> CircuitStatus {
        if !self.server.breaker.is_closed() {
            return CircuitStatus::ServerOpen(format!(
                "its last calls had no answer ({}); it is called again after a pause",
                self.server.last_failure
            ));
        }
        let mut open: Vec<(&str, &str)> = self
            .tools
            .iter()
            .filter(|(_, circuit)| !circuit.breaker.is_closed())
            .map(|(tool, circuit)| (tool.as_str(), circuit.last_failure.as_str()))
            .collect();
        open.sort_unstable();
        let descriptions: Vec<String> = open
            .into_iter()
            .map(|(tool, last)| format!("`{tool}` ({last})"))
            .collect();
        if descriptions.is_empty() {
            CircuitStatus::Closed
        } else {
            CircuitStatus::ToolsOpen(format!(
                "tools whose last calls had no answer are called again after a pause: {}",
                descriptions.join(", ")
            ))
        }
    }
}

impl Circuit {
    fn new(policy: Policy) -> Self {
        Self {
            breaker: Breaker::new(policy),
            last_failure: String::new(),
        }
    }

    fn rejection(&self, tool: Option<&str>, rejected: Rejected) -> String {
        let calls = match tool {
            Some(tool) => format!("the last calls of `{tool}`"),
            None => "its last calls".to_owned(),
        };
        let retry = if rejected.retry_after.is_zero() {
            "another call probes it now".to_owned()
        } else {
            // Rounded up, so that a caller does not retry too early.
            let seconds = rejected.retry_after.as_millis().div_ceil(1000);
            format!("retry in {seconds} s")
        };
        format!("{calls} had no answer ({}); {retry}", self.last_failure)
    }
}

impl CallAdmission<'_> {
    /// Records the outcomes for the server and for the tool, and the reason of a failure. Returns
    /// whether a breaker opened or closed.
    pub(crate) fn record(mut self, of_server: Outcome, of_tool: Outcome, reason: &str) -> bool {
        self.record_once(of_server, of_tool, reason)
    }

    fn record_once(&mut self, of_server: Outcome, of_tool: Outcome, reason: &str) -> bool {
        let Some((server_admission, tool_admission)) = self.admissions.take() else {
            return false;
        };
        let now = self.circuits.created.elapsed();
        let mut inner = self.circuits.lock();
        let Inner { server, tools } = &mut *inner;
        let was = (
            server.breaker.is_closed(),
            tools
                .get(self.tool)
                .is_none_or(|tool| tool.breaker.is_closed()),
        );
        server.breaker.record(&server_admission, of_server, now);
        if of_server == Outcome::NoAnswer {
            reason.clone_into(&mut server.last_failure);
        }
        let circuit = match (tools.get_mut(self.tool), of_tool) {
            (None, Outcome::NoAnswer) => {
                let options = &self.circuits.options;
                let new = Circuit::new(options.policy(options.tool_failures));
                Some(tools.entry(self.tool.to_owned()).or_insert(new))
            }
            (known, _) => known,
        };
        let tool_closed = circuit.is_none_or(|circuit| {
            if of_tool == Outcome::NoAnswer {
                reason.clone_into(&mut circuit.last_failure);
            }
            let admission = tool_admission.unwrap_or_default();
            circuit.breaker.record(&admission, of_tool, now);
            circuit.breaker.is_closed()
        });
        was != (server.breaker.is_closed(), tool_closed)
    }
}

impl Drop for CallAdmission<'_> {
    fn drop(&mut self) {
        self.record_once(Outcome::Unknown, Outcome::Unknown, "");
    }
}

#[cfg(test)]
mod tests {
    use Outcome::{Answered, NoAnswer, Unknown};
    use tokio::time::advance;

    use super::*;

    fn circuits() -> Circuits {
        Circuits::new(CircuitOptions {
            tool_failures: 2,
            server_failures: 3,
            pause: Duration::from_secs(10),
            max_pause: Duration::from_mins(1),
        })
    }

    fn call(circuits: &Circuits, tool: &str, outcome: Outcome) -> bool {
        let admission = circuits.admit(tool).map_err(|why| panic!("{why}"));
        admission.is_ok_and(|admission| admission.record(outcome, outcome, "silence"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_tool_that_does_not_answer_is_blocked_and_others_are_not() {
        let circuits = circuits();
        assert!(!call(&circuits, "a", NoAnswer));
        assert!(!call(&circuits, "b", Answered));
        assert!(call(&circuits, "a", NoAnswer));
        let rejection = "the last calls of `a` had no answer (silence); retry in 10 s";
        assert_eq!(circuits.check("a").unwrap_err(), rejection);
        assert_eq!(circuits.admit("a").err().as_deref(), Some(rejection));
        assert!(!call(&circuits, "b", Answered));
        let CircuitStatus::ToolsOpen(description) = circuits.status() else {
            panic!("{:?}", circuits.status());
        };
        assert!(description.ends_with("`a` (silence)"), "{description}");

        advance(Duration::from_secs(10)).await;
        let probe = circuits.admit("a").ok();
        assert!(
            circuits
                .check("a")
                .unwrap_err()
                .ends_with("another call probes it now")
        );
        // The probe is cancelled, so the next call is the probe.
        drop(probe);
        assert!(call(&circuits, "a", Answered));
        assert_eq!(circuits.status(), CircuitStatus::Closed);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_answer_is_blocked_for_all_tools() {
        let circuits = circuits();
        for (tool, changed) in [("a", false), ("b", false), ("c", true)] {
            assert_eq!(call(&circuits, tool, NoAnswer), changed);
        }
        assert_eq!(
            circuits.check("d").unwrap_err(),
            "its last calls had no answer (silence); retry in 10 s"
        );
        assert!(matches!(circuits.status(), CircuitStatus::ServerOpen(_)));
        advance(Duration::from_secs(10)).await;
        assert!(call(&circuits, "d", Answered));
        assert_eq!(circuits.status(), CircuitStatus::Closed);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_one_breaker_rejects_is_not_a_probe_of_the_other() {
        let circuits = circuits();
        call(&circuits, "a", NoAnswer);
        call(&circuits, "a", NoAnswer);
        advance(Duration::from_secs(5)).await;
        call(&circuits, "b", NoAnswer);
        // The pause of the tool is over, the pause of the server is not.
        advance(Duration::from_secs(5)).await;
        assert!(circuits.admit("a").is_err());
        advance(Duration::from_secs(5)).await;
        assert!(call(&circuits, "a", Answered));
        assert_eq!(circuits.status(), CircuitStatus::Closed);
    }

    #[tokio::test(start_paused = true)]
    async fn unknown_outcomes_change_nothing_and_a_reset_closes_all() {
        let circuits = circuits();
        for _ in 0..10 {
            assert!(!call(&circuits, "a", Unknown));
        }
        call(&circuits, "a", NoAnswer);
        call(&circuits, "a", NoAnswer);
        assert!(circuits.check("a").is_err());
        circuits.reset();
        assert!(circuits.check("a").is_ok());
        assert_eq!(circuits.status(), CircuitStatus::Closed);
    }
}
