//! Settings of the server `bte`.

use std::time::Duration;

/// Service URLs and limits of the bundled server `bte`.
#[derive(Debug, Clone)]
pub struct BteOptions {
    /// Base URL of a TRAPI service, without `/query`, such as `https://bte.transltr.io/v1`.
    pub url: String,
    /// Base URL of a name resolver, without `/lookup`, such as
    /// `https://name-resolution-sri.renci.org`. With a name resolver, the server has the tool
    /// `lookup_name`, which finds the ids (CURIEs) of things with a name.
    pub name_resolver: Option<String>,
    /// Whether a small bundled data set answers if the service or the name resolver cannot be
    /// reached. Its results begin with a notice. HTTP errors of a service are still errors.
    pub sample_if_offline: bool,
    /// Whether queries add their results to the graph unless `addToGraph` is `false`. Requires
    /// [`with_data_file`](crate::ServerOptions::with_data_file).
    pub add_to_graph: bool,
    /// Time-out of the requests of a tool call, including all attempts. The default is 50 seconds,
    /// because many MCP clients have a time-out of one minute for a tool call.
    pub timeout: Duration,
    /// Maximum size of a response from the service, in bytes. The default is 32 MiB.
    pub max_answer_bytes: usize,
}

impl BteOptions {
    /// Base URL of the public service.
    pub const PUBLIC_SERVICE: &str = "https://bte.transltr.io/v1";
    /// Base URL of the public name resolver.
    pub const PUBLIC_NAME_RESOLVER: &str = "https://name-resolution-sri.renci.org";

    /// Creates options for the service at `url`, with the default limits and without a name
    /// resolver.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            name_resolver: None,
            sample_if_offline: false,
            add_to_graph: false,
            timeout: Duration::from_secs(50),
            max_answer_bytes: 32 << 20,
        }
    }
}
