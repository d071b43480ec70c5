//! Settings of the server `bte`.

use std::time::Duration;

/// Service addresses and limits of the server `bte`.
#[derive(Debug, Clone)]
pub struct BteOptions {
    pub(crate) url: String,
    pub(crate) name_resolver: Option<String>,
    pub(crate) timeout: Duration,
    pub(crate) max_answer_bytes: usize,
}

impl BteOptions {
    /// Creates options with the base URL of a TRAPI service, without `/query`, such as
    /// `https://bte.transltr.io/v1`.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            name_resolver: None,
            timeout: Duration::from_secs(50),
            max_answer_bytes: 32 << 20,
        }
    }

    /// Sets the base URL of a name resolver, without `/lookup`, such as
    /// `https://name-lookup.transltr.io`. It adds a tool that finds the CURIEs of a name.
    #[must_use]
    pub fn with_name_resolver(mut self, url: impl Into<String>) -> Self {
        self.name_resolver = Some(url.into());
        self
    }

    /// Sets the time-out of a call with all attempts. The default is 50 seconds, because many MCP
    /// clients wait for one minute.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the maximum size of a response of the service, in bytes. The default is 32 MiB.
    #[must_use]
    pub fn with_max_answer_bytes(mut self, bytes: usize) -> Self {
        self.max_answer_bytes = bytes;
        self
    }
}
