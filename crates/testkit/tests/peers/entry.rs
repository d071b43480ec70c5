//! A model as the configuration describes it.

use std::{fmt, ops::Deref, time::Duration};

use switchboard_providers_common::{RetryPolicy, TransportConfig};
use switchboard_providers_openai::Profile;

use crate::{
    peer::Peer,
    wires::{Connection, Wire},
};

/// The wires that every peer supports. Some peers also support Ollama's.
pub(crate) const HOSTED: [Wire; 4] = [Wire::Anthropic, Wire::Chat, Wire::Responses, Wire::Gemini];

/// The form in which the server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Streamed,
    Whole,
}

impl Form {
    pub(crate) const BOTH: [Self; 2] = [Self::Streamed, Self::Whole];
}

/// A model as a user enters it in the configuration.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) form: Form,
    pub(crate) connection: Connection,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?})", self.provider, self.form)
    }
}

impl Deref for Entry {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl Entry {
    /// Creates an entry for a server that has all wires at its root.
    pub(crate) fn new(peer: &Peer, wire: Wire, form: Form) -> Self {
        // Only Gemini has a separate endpoint for whole answers. For the other wires, the gateway
        // requests whole answers.
        let root = if form == Form::Whole && wire != Wire::Gemini {
            peer.whole_at("")
        } else {
            peer.at("")
        };
        let transport = TransportConfig {
            retry: soon(),
            ..TransportConfig::default()
        };
        let connection = Connection {
            provider: format!("my-{}", wire.name()),
            profile: Profile::generic(),
            streaming: form == Form::Streamed,
            ..Connection::new(wire, &root, transport)
        };
        Self { form, connection }
    }

    /// Creates an entry for a server that has this wire under a path.
    pub(crate) fn under(peer: &Peer, path: &str, wire: Wire, form: Form) -> Self {
        let mut entry = Self::new(peer, wire, form);
        entry.connection.address = if form == Form::Whole && wire != Wire::Gemini {
            peer.whole_at(path)
        } else {
            peer.at(path)
        };
        entry
    }

    /// Creates an entry for every one of these wires, in both forms.
    pub(crate) fn each(peer: &Peer, wires: &[Wire]) -> Vec<Self> {
        let both = |wire: &Wire| Form::BOTH.map(|form| Self::new(peer, *wire, form));
        wires.iter().flat_map(both).collect()
    }

    pub(crate) fn with_retry(mut self, retry: RetryPolicy) -> Self {
        self.connection.transport.retry = retry;
        self
    }

    pub(crate) fn with_key(mut self, key: &str) -> Self {
        key.clone_into(&mut self.connection.key);
        self
    }
}

/// Returns a policy with two further attempts after milliseconds, unless the server requests a
/// delay.
pub(crate) fn soon() -> RetryPolicy {
    RetryPolicy {
        min_delay: Duration::from_millis(5),
        max_delay: Duration::from_millis(20),
        ..RetryPolicy::default()
    }
}

/// Returns a policy with two further attempts after five minutes. A test ends in time only if the
/// delay comes from the server.
pub(crate) fn late() -> RetryPolicy {
    RetryPolicy {
        min_delay: Duration::from_mins(5),
        max_delay: Duration::from_mins(5),
        ..RetryPolicy::default()
    }
}
