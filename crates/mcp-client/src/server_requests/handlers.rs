//! The handlers of requests that servers send.

use std::{fmt, sync::Arc, time::Duration};

use switchboard_domain::{Elicitor, Sampler};

use crate::config::client_features::Root;

/// The handlers of requests that servers send. A capability without a handler is not offered, and
/// its requests are declined.
#[derive(Clone)]
pub struct ClientHandlers {
    /// Asks a person for input.
    pub elicitor: Option<Arc<dyn Elicitor>>,
    /// Calls a model, for servers with [`ServerConfig::sampling`](crate::ServerConfig::sampling).
    pub sampler: Option<Arc<dyn Sampler>>,
    /// The folders that servers may use, unless their configuration sets
    /// [`ServerConfig::roots`](crate::ServerConfig::roots). `None` does not offer roots.
    pub roots: Option<Vec<Root>>,
    /// How long a request may wait for its answer. This time does not count towards the deadline
    /// of the call.
    pub answer_timeout: Duration,
}

impl Default for ClientHandlers {
    /// Returns no handlers and an answer time-out of ten minutes.
    fn default() -> Self {
        Self {
            elicitor: None,
            sampler: None,
            roots: None,
            answer_timeout: Duration::from_mins(10),
        }
    }
}

impl fmt::Debug for ClientHandlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientHandlers")
            .field("elicitor", &self.elicitor.is_some())
            .field("sampler", &self.sampler.is_some())
            .field("roots", &self.roots)
            .field("answer_timeout", &self.answer_timeout)
            .finish()
    }
}
