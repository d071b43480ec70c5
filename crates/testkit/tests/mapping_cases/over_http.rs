//! Complete adapters with a fake server on loopback.

use std::time::Duration;

use switchboard_domain::ChatModel;
use switchboard_providers_common::{RetryPolicy, TransportConfig};
use switchboard_testkit::fake::{Answer, FakeModel};

use crate::wires::{Connection, Wire};

/// Returns transport settings with short delays between attempts.
fn transport() -> TransportConfig {
    TransportConfig {
        retry: RetryPolicy {
            min_delay: Duration::from_millis(1),
            ..RetryPolicy::default()
        },
        ..TransportConfig::default()
    }
}

impl Wire {
    /// Creates the adapter of [its model](Wire::model) for the fake server.
    pub(crate) fn adapter(self, fake: &FakeModel) -> Box<dyn ChatModel> {
        Connection::new(self, &fake.base_url(), transport()).chat_model()
    }

    /// Returns an answer with status 200 and the beginning of a streamed body.
    pub(crate) fn begun(self, body: String) -> Answer {
        let media_type = match self {
            Self::Ollama => "application/x-ndjson",
            _ => "text/event-stream",
        };
        Answer::new(200)
            .header("content-type", media_type)
            .piece(body)
    }
}
