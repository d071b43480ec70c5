//! Application handlers for the requests that MCP servers send.

use std::{sync::Arc, time::Duration};

use switchboard_domain::{Elicitor, Sampler};

/// Application handlers for the requests that MCP servers send. If a handler is `None`, the client
/// does not declare its capability to servers, and declines requests that need the handler.
#[derive(Clone, derive_more::Debug)]
pub struct ClientHandlers {
    /// Handler of elicitations, which asks a person for input. `None` declines elicitations.
    #[debug("{}", elicitor.is_some())]
    pub elicitor: Option<Arc<dyn Elicitor>>,
    /// Handler of sampling, which calls a model for servers whose configuration sets
    /// [`ServerConfig::sampling`](crate::ServerConfig::sampling).
    #[debug("{}", sampler.is_some())]
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
