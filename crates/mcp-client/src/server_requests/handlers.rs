//! Application handlers for the requests that MCP servers send.

use std::{fmt, sync::Arc, time::Duration};

use switchboard_domain::{Elicitor, Sampler};

/// Application handlers for the requests that MCP servers send. The client does not declare
/// capabilities without a handler, and declines requests for them.
#[derive(Clone)]
pub struct ClientHandlers {
    /// Handler of elicitations, which asks a person for input. `None` declines elicitations.
    pub elicitor: Option<Arc<dyn Elicitor>>,
    /// Handler of sampling, which calls a model for servers whose configuration sets
    /// [`ServerConfig::sampling`](crate::ServerConfig::sampling).
    pub sampler: Option<Arc<dyn Sampler>>,
    /// Time limit for a person or a model to answer a request of a server. The deadline of the tool
    /// call is paused during this time.
    pub answer_timeout: Duration,
}

impl Default for ClientHandlers {
    /// Returns a value without handlers, and with a time limit of ten minutes for answers.
    fn default() -> Self {
        Self {
            elicitor: None,
            sampler: None,
            answer_timeout: Duration::from_mins(10),
        }
    }
}

impl fmt::Debug for ClientHandlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientHandlers")
            .field("elicitor", &self.elicitor.is_some())
            .field("sampler", &self.sampler.is_some())
            .field("answer_timeout", &self.answer_timeout)
            .finish()
    }
}
