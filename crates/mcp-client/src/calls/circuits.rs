//! The circuit breakers of one server: its own, and one for each of its tools.
//!
//! A tool's opens when the tool gives no answer, whatever is the matter; the server's when nothing is
//! answered, whichever tool is called. Only a call that left counts: one that waited in vain for its turn
//! or for the server says nothing about either. A process that ends is not held against the server here:
//! it is started again, more slowly each time (`life.rs`); but it is held, once, against the tools that
//! were being called.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::calls::circuit_breaker::{Breaker, Moment, Outcome, Policy, Refused, Ticket};

/// When calls that get no answer are not made any more, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CircuitOptions {
    /// A tool that gave no answer so many times in a row is not called for a while; 0 calls it always.
    pub tool_failures: u32,
    /// A server that gave no answer so many times in a row, whichever of its tools was called, is not
    /// called for a while; 0 calls it always.
    pub server_failures: u32,
    /// How long the while is. Then one call is let through: its answer ends it, and without one the next
    /// while is twice as long.
    pub pause: Duration,
    /// How long it is at most.
    pub longest_pause: Duration,
}

impl Default for CircuitOptions {
    fn default() -> Self {
        Self {
            tool_failures: 3,
            server_failures: 5,
            pause: Duration::from_secs(10),
            longest_pause: Duration::from_mins(2),
        }
    }
}

impl CircuitOptions {
    fn policy(&self, failures: u32) -> Policy {
        Policy {
            failures,
            pause: self.pause,
            longest: self.longest_pause,
        }
    }
}

/// What is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    Sound,
    /// These tools are not called, in words.
    ToolsOpen(String),
    /// Nothing is called, in words.
    ServerOpen(String),
}

pub(crate) struct Circuits {
    options: CircuitOptions,
    born: Instant,
    inner: Mutex<Inner>,
}

struct Inner {
    server: Circuit,
    /// Of the tools that have failed once.
    tools: HashMap<String, Circuit>,
}

struct Circuit {
    breaker: Breaker,
    /// What the last failure was.
    last: String,
}

/// A call that was let through. Dropped without [`Pass::settle`] it was given up.
#[must_use = "the circuits wait for what becomes of the call"]
pub(crate) struct Pass<'a> {
    circuits: &'a Circuits,
    tool: &'a str,
    /// Of the server and, if it has failed once, of the tool.
    tickets: Option<(Ticket, Option<Ticket>)>,
}

impl Circuits {
    pub(crate) fn new(options: CircuitOptions) -> Self {
        let server = Circuit::new(options.policy(options.server_failures));
        Self {
            options,
            born: Instant::now(),
            inner: Mutex::new(Inner {
                server,
                tools: HashMap::new(),
            }),
        }
    }

    /// Whether a call would be let through, and if not, why.
    pub(crate) fn check(&self, tool: &str) -> Result<(), String> {
        let inner = self.lock();
        let now = self.now(&inner);
        if let Err(refused) = inner.server.breaker.check(now) {
            return Err(inner.server.in_words(None, refused));
        }
        if let Some(circuit) = inner.tools.get(tool)
            && let Err(refused) = circuit.breaker.check(now)
        {
            return Err(circuit.in_words(Some(tool), refused));
        }
        Ok(())
    }

    /// Lets a call through, or says why not.
    pub(crate) fn admit<'a>(&'a self, tool: &'a str) -> Result<Pass<'a>, String> {
        let mut inner = self.lock();
        let now = self.now(&inner);
        // Of two tickets none is kept if the other is not to be had.
        let of_tool = match inner.tools.get_mut(tool) {
            Some(circuit) => match circuit.breaker.admit(now) {
                Ok(ticket) => Some(ticket),
                Err(refused) => return Err(circuit.in_words(Some(tool), refused)),
            },
            None => None,
        };
        match inner.server.breaker.admit(now) {
            Ok(of_server) => Ok(Pass {
                circuits: self,
                tool,
                tickets: Some((of_server, of_tool)),
            }),
            Err(refused) => {
                if let (Some(ticket), Some(circuit)) = (of_tool, inner.tools.get_mut(tool)) {
                    circuit.breaker.settle(&ticket, Outcome::Unknown, now);
                }
                Err(inner.server.in_words(None, refused))
            }
        }
    }

    /// Everything is forgiven, as after a start that a person asked for.
    pub(crate) fn reset(&self) {
        let mut inner = self.lock();
        inner.server = Circuit::new(self.options.policy(self.options.server_failures));
        inner.tools.clear();
    }

    /// The server is another process now. What its tools did is not forgotten.
    pub(crate) fn reset_server(&self) {
        self.lock().server = Circuit::new(self.options.policy(self.options.server_failures));
    }

    pub(crate) fn standing(&self) -> Standing {
        self.lock().standing()
    }

    /// For letting calls through. A closed circuit does not ask what time it is, so mostly no clock is
    /// read.
    fn now(&self, inner: &Inner) -> Moment {
        if inner.tools.is_empty() && inner.server.breaker.is_closed() {
            return Moment::ZERO;
        }
        self.born.elapsed()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn standing(&self) -> Standing {
        if !self.server.breaker.is_closed() {
            return Standing::ServerOpen(format!(
                "its last calls got no answer ({}); a call is let through now and then to see \
                 whether it is back",
                self.server.last
            ));
        }
        let mut open: Vec<(&str, &str)> = self
            .tools
            .iter()
            .filter(|(_, circuit)| !circuit.breaker.is_closed())
            .map(|(tool, circuit)| (tool.as_str(), circuit.last.as_str()))
            .collect();
        open.sort_unstable();
        let words: Vec<String> = open
            .into_iter()
            .map(|(tool, last)| format!("`{tool}` ({last})"))
            .collect();
        if words.is_empty() {
            Standing::Sound
        } else {
            Standing::ToolsOpen(format!(
                "the last calls of these got no answer, and one is let through now and then to see \
                 whether it is back: {}",
                words.join(", ")
            ))
        }
    }
}

impl Circuit {
    fn new(policy: Policy) -> Self {
        Self {
            breaker: Breaker::new(policy),
            last: String::new(),
        }
    }

    fn in_words(&self, tool: Option<&str>, refused: Refused) -> String {
        let whose = match tool {
            Some(tool) => format!("the last calls of `{tool}`"),
            None => "its last calls".to_owned(),
        };
        let when = if refused.for_another.is_zero() {
            "another call is just trying it".to_owned()
        } else {
            // Whole seconds upwards: nobody should come back too early.
            let seconds = refused.for_another.as_millis().div_ceil(1000);
            format!("it is tried again in {seconds} s")
        };
        format!("{whose} got no answer ({}); {when}", self.last)
    }
}

impl Pass<'_> {
    /// Tells what became of the call, for the server and for the tool, and what it was if it got no
    /// answer. Whether what is open changed.
    pub(crate) fn settle(mut self, of_server: Outcome, of_tool: Outcome, what: &str) -> bool {
        self.told(of_server, of_tool, what)
    }

    fn told(&mut self, of_server: Outcome, of_tool: Outcome, what: &str) -> bool {
        let Some((server_ticket, tool_ticket)) = self.tickets.take() else {
            return false;
        };
        // An answer closes a circuit whatever the time.
        let now = match (of_server, of_tool) {
            (Outcome::Answered, Outcome::Answered) => Moment::ZERO,
            _ => self.circuits.born.elapsed(),
        };
        let mut inner = self.circuits.lock();
        let Inner { server, tools } = &mut *inner;
        let was = (
            server.breaker.is_closed(),
            tools
                .get(self.tool)
                .is_none_or(|tool| tool.breaker.is_closed()),
        );
        server.breaker.settle(&server_ticket, of_server, now);
        if of_server == Outcome::NoAnswer {
            what.clone_into(&mut server.last);
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
                what.clone_into(&mut circuit.last);
            }
            // One that began before the first failure is of the first age.
            let ticket = tool_ticket.unwrap_or_default();
            circuit.breaker.settle(&ticket, of_tool, now);
            circuit.breaker.is_closed()
        });
        was != (server.breaker.is_closed(), tool_closed)
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.told(Outcome::Unknown, Outcome::Unknown, "");
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
            longest_pause: Duration::from_mins(1),
        })
    }

    fn call(circuits: &Circuits, tool: &str, outcome: Outcome) -> bool {
        let pass = circuits.admit(tool).map_err(|why| panic!("{why}"));
        pass.is_ok_and(|pass| pass.settle(outcome, outcome, "silence"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_tool_without_answers_is_stopped_and_the_others_go_on() {
        let circuits = circuits();
        assert!(!call(&circuits, "a", NoAnswer));
        assert!(!call(&circuits, "b", Answered));
        assert!(call(&circuits, "a", NoAnswer));
        let refusal = "the last calls of `a` got no answer (silence); it is tried again in 10 s";
        assert_eq!(circuits.check("a").unwrap_err(), refusal);
        assert_eq!(circuits.admit("a").err().as_deref(), Some(refusal));
        assert!(!call(&circuits, "b", Answered));
        let Standing::ToolsOpen(words) = circuits.standing() else {
            panic!("{:?}", circuits.standing());
        };
        assert!(words.ends_with("`a` (silence)"), "{words}");

        advance(Duration::from_secs(10)).await;
        let attempt = circuits.admit("a").ok();
        assert!(
            circuits
                .check("a")
                .unwrap_err()
                .ends_with("another call is just trying it")
        );
        // Given up by its caller, so the next one tries.
        drop(attempt);
        assert!(call(&circuits, "a", Answered));
        assert_eq!(circuits.standing(), Standing::Sound);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_without_answers_is_stopped_whichever_tool_was_called() {
        let circuits = circuits();
        for (tool, changed) in [("a", false), ("b", false), ("c", true)] {
            assert_eq!(call(&circuits, tool, NoAnswer), changed);
        }
        assert_eq!(
            circuits.check("d").unwrap_err(),
            "its last calls got no answer (silence); it is tried again in 10 s"
        );
        assert!(matches!(circuits.standing(), Standing::ServerOpen(_)));
        advance(Duration::from_secs(10)).await;
        assert!(call(&circuits, "d", Answered));
        assert_eq!(circuits.standing(), Standing::Sound);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_one_of_the_two_refuses_is_no_try_of_the_other() {
        let circuits = circuits();
        call(&circuits, "a", NoAnswer);
        call(&circuits, "a", NoAnswer);
        advance(Duration::from_secs(5)).await;
        call(&circuits, "b", NoAnswer);
        // The tool could be tried by now, the server not yet.
        advance(Duration::from_secs(5)).await;
        assert!(circuits.admit("a").is_err());
        advance(Duration::from_secs(5)).await;
        assert!(call(&circuits, "a", Answered));
        assert_eq!(circuits.standing(), Standing::Sound);
    }

    #[tokio::test(start_paused = true)]
    async fn what_says_nothing_changes_nothing_and_a_person_may_forgive() {
        let circuits = circuits();
        for _ in 0..10 {
            assert!(!call(&circuits, "a", Unknown));
        }
        call(&circuits, "a", NoAnswer);
        call(&circuits, "a", NoAnswer);
        assert!(circuits.check("a").is_err());
        circuits.reset();
        assert!(circuits.check("a").is_ok());
        assert_eq!(circuits.standing(), Standing::Sound);
    }
}
