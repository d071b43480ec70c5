//! The circuit breakers of one server: one for the server and one for each of its tools.
//!
//! A breaker stops calls to a target that did not answer several times in a row. The breaker of a
//! tool counts calls of that tool without an answer, the breaker of the server calls of any tool.
//! Only calls that were sent count. The end of a process does not count for the server, because the
//! supervisor restarts it, but it counts once for each tool that was being called.
//!
//! An open breaker rejects calls until a pause is over, and then admits one call as a probe. An
//! answer to any call closes the breaker. If the probe has no answer, the pause doubles. If the
//! probe was cancelled, the next call is the probe.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

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

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The target answered, possibly with an error.
    Answered,
    /// The call timed out, or the connection broke.
    NoAnswer,
    /// The call was cancelled, or was not sent.
    Unknown,
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
    breakers: Mutex<Breakers>,
}

#[derive(Default)]
struct Breakers {
    server: Breaker,
    /// The breakers of tools that were called.
    tools: HashMap<String, Breaker>,
}

#[derive(Default)]
struct Breaker {
    /// Number of consecutive calls without an answer while the breaker is closed.
    failures: u32,
    /// The reason of the last failure.
    last_failure: String,
    /// `None` while the breaker is closed.
    open: Option<Open>,
}

struct Open {
    until: Instant,
    pause: Duration,
    /// Whether a probe was admitted.
    is_probed: bool,
}

/// An admitted call. Without [`CallAdmission::record`] it counts as cancelled.
#[must_use = "the circuits need the outcome of the call"]
pub(crate) struct CallAdmission<'a> {
    circuits: &'a Circuits,
    tool: &'a str,
    /// Whether the call probes the server, and the tool. `None` after the outcome was recorded.
    probes: Option<(bool, bool)>,
}

impl Circuits {
    pub(crate) fn new(options: CircuitOptions) -> Self {
        Self {
            options,
            breakers: Mutex::default(),
        }
    }

    /// Returns the reason if a call would be rejected.
    pub(crate) fn check(&self, tool: &str) -> Result<(), String> {
        self.lock().check(tool)
    }

    /// Admits a call, or returns the reason of the rejection.
    pub(crate) fn admit<'a>(&'a self, tool: &'a str) -> Result<CallAdmission<'a>, String> {
        let mut breakers = self.lock();
        breakers.check(tool)?;
        let of_tool = breakers.tools.entry(tool.to_owned()).or_default().probe();
        Ok(CallAdmission {
            circuits: self,
            tool,
            probes: Some((breakers.server.probe(), of_tool)),
        })
    }

    /// Closes all breakers, after a restart that a person requested.
    pub(crate) fn reset(&self) {
        *self.lock() = Breakers::default();
    }

    /// Closes the breaker of the server, after a restart. The breakers of its tools stay.
    pub(crate) fn reset_server(&self) {
        self.lock().server = Breaker::default();
    }

    pub(crate) fn status(&self) -> CircuitStatus {
        let breakers = self.lock();
        if breakers.server.open.is_some() {
            return CircuitStatus::ServerOpen(format!(
                "its last calls had no answer ({}); it is called again after a pause",
                breakers.server.last_failure
            ));
        }
        let open = breakers.tools.iter().filter(|(_, it)| it.open.is_some());
        let mut open: Vec<String> = open
            .map(|(tool, breaker)| format!("`{tool}` ({})", breaker.last_failure))
            .collect();
        if open.is_empty() {
            return CircuitStatus::Closed;
        }
        open.sort_unstable();
        CircuitStatus::ToolsOpen(format!(
            "tools whose last calls had no answer are called again after a pause: {}",
            open.join(", ")
        ))
    }

    fn lock(&self) -> MutexGuard<'_, Breakers> {
        self.breakers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Breakers {
    fn check(&self, tool: &str) -> Result<(), String> {
        self.server.check("its last calls")?;
        match self.tools.get(tool) {
            Some(breaker) => breaker.check(&format!("the last calls of `{tool}`")),
            None => Ok(()),
        }
    }
}

impl Breaker {
    /// Returns the reason if the breaker rejects a call. `calls` names the calls without an answer.
    fn check(&self, calls: &str) -> Result<(), String> {
        let Some(open) = &self.open else {
            return Ok(());
        };
        let rest = open.until.saturating_duration_since(Instant::now());
        let retry = if open.is_probed {
            "another call probes it now".to_owned()
        } else if rest.is_zero() {
            return Ok(());
        } else {
            // Rounded up, so that a caller does not retry too early.
            format!("retry in {} s", rest.as_millis().div_ceil(1000))
        };
        let reason = &self.last_failure;
        Err(format!("{calls} had no answer ({reason}); {retry}"))
    }

    /// Admits a call. Returns whether it is a probe.
    fn probe(&mut self) -> bool {
        if let Some(open) = &mut self.open {
            open.is_probed = true;
        }
        self.open.is_some()
    }

    /// Records the outcome of a call. Returns whether the breaker opened or closed.
    fn record(
        &mut self,
        outcome: Outcome,
        is_probe: bool,
        reason: &str,
        max_failures: u32,
        options: &CircuitOptions,
    ) -> bool {
        let was_open = self.open.is_some();
        if outcome == Outcome::NoAnswer {
            reason.clone_into(&mut self.last_failure);
        }
        match (outcome, &mut self.open) {
            (Outcome::Answered, _) => (self.failures, self.open) = (0, None),
            (Outcome::NoAnswer, None) => {
                self.failures = self.failures.saturating_add(1);
                if max_failures > 0 && self.failures >= max_failures {
                    self.open(options.pause, options.max_pause);
                }
            }
            (Outcome::NoAnswer, Some(open)) if is_probe => {
                let pause = open.pause.saturating_mul(2);
                self.open(pause, options.max_pause);
            }
            (Outcome::Unknown, Some(open)) if is_probe => open.is_probed = false,
            // A call from before the opening, or a call without an outcome.
            (Outcome::NoAnswer | Outcome::Unknown, _) => {}
        }
        was_open != self.open.is_some()
    }

    fn open(&mut self, pause: Duration, max_pause: Duration) {
        let pause = pause.min(max_pause);
        self.open = Some(Open {
            until: Instant::now() + pause,
            pause,
            is_probed: false,
        });
    }
}

impl CallAdmission<'_> {
    /// Records the outcomes for the server and for the tool, and the reason of a failure. Returns
    /// whether a breaker opened or closed.
    pub(crate) fn record(mut self, of_server: Outcome, of_tool: Outcome, reason: &str) -> bool {
        self.record_once(of_server, of_tool, reason)
    }

    fn record_once(&mut self, of_server: Outcome, of_tool: Outcome, reason: &str) -> bool {
        let Some((probes_server, probes_tool)) = self.probes.take() else {
            return false;
        };
        let options = &self.circuits.options;
        let mut breakers = self.circuits.lock();
        let server = &mut breakers.server;
        let max = options.server_failures;
        let server_changed = server.record(of_server, probes_server, reason, max, options);
        // Removed by a reset during the call.
        let Some(tool) = breakers.tools.get_mut(self.tool) else {
            return server_changed;
        };
        let max = options.tool_failures;
        tool.record(of_tool, probes_tool, reason, max, options) || server_changed
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
            max_pause: Duration::from_secs(30),
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
        let rejection = circuits.check("a").unwrap_err();
        assert!(rejection.ends_with("another call probes it now"));
        // The probe is cancelled, so the next call is the probe.
        drop(probe);
        assert!(call(&circuits, "a", Answered));
        assert_eq!(circuits.status(), CircuitStatus::Closed);
    }

    #[tokio::test(start_paused = true)]
    async fn each_failed_probe_doubles_the_pause_up_to_the_maximum() {
        let circuits = circuits();
        call(&circuits, "a", NoAnswer);
        let late = circuits.admit("a").ok();
        call(&circuits, "a", NoAnswer);
        // A failure of a call from before the opening does not count.
        assert!(!late.unwrap().record(Unknown, NoAnswer, "late"));
        for pause in [10, 20, 30, 30] {
            let rejection = circuits.check("a").unwrap_err();
            assert!(rejection.ends_with(&format!("retry in {pause} s")));
            advance(Duration::from_secs(pause)).await;
            let probe = circuits.admit("a").ok().unwrap();
            assert!(!probe.record(Unknown, NoAnswer, "silence"));
        }
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
