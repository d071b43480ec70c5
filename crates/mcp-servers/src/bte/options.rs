//! How the server `bte` is started.

use std::time::Duration;

/// Which `BioThings` Explorer the server `bte` asks, and how patiently.
#[derive(Debug, Clone)]
pub struct BteOptions {
    pub(super) url: String,
    pub(super) name_resolver: Option<String>,
    pub(super) timeout: Duration,
    pub(super) max_answer_bytes: usize,
}

impl BteOptions {
    /// The base URL of a TRAPI service, without `/query`, such as `https://bte.transltr.io/v1`.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            name_resolver: None,
            timeout: Duration::from_secs(50),
            max_answer_bytes: 32 << 20,
        }
    }

    /// The base URL of a Name Resolver of the same family of services, without `/lookup`, such as
    /// `https://name-lookup.transltr.io`. With it there is a tool that finds the CURIEs of a name, which
    /// models otherwise know by heart or make up.
    #[must_use]
    pub fn with_name_resolver(mut self, url: impl Into<String>) -> Self {
        self.name_resolver = Some(url.into());
        self
    }

    /// How long a call of a tool may take, all attempts and pauses included; 50 seconds by default,
    /// which is below the minute that many MCP clients wait.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How large one answer of the service may be, in bytes; 32 MiB by default.
    #[must_use]
    pub fn with_max_answer_bytes(mut self, bytes: usize) -> Self {
        self.max_answer_bytes = bytes;
        self
    }
}
