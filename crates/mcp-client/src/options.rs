//! The options of a host.

use std::{sync::Arc, time::Duration};

use crate::{
    auth::settings::AuthOptions,
    config::DEFAULT_CALL_TIMEOUT,
    server_requests::handlers::ClientHandlers,
    tools::tool_pinning::{fingerprint::ToolPins, store::ToolPinFile},
};

/// The default of [`HostOptions::max_call_time`].
const DEFAULT_MAX_CALL_TIME: Duration = Duration::from_mins(10);

/// The options of a host.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// Maximum number of consecutive restarts of a server that was ready. 0 disables restarts. The
    /// count is reset when a server runs for a minute. A server that was never ready is not
    /// restarted, because its configuration is mostly the cause.
    pub restarts: u32,
    /// The nominal delay before the first restart. It doubles before each further restart, up to 30
    /// seconds. The first reconnection to an HTTP server does not wait.
    pub restart_delay: Duration,
    /// How long a process may take to end.
    pub grace: Grace,
    /// The time limit of a call without a deadline, on servers without
    /// [`ServerConfig::call_timeout`](crate::ServerConfig::call_timeout). Progress restarts it, up
    /// to [`max_call_time`](Self::max_call_time).
    pub call_timeout: Duration,
    /// The total time limit of such a call, at least `call_timeout`.
    pub max_call_time: Duration,
    /// Maximum number of further attempts of a call that was not processed, or whose connection
    /// broke and whose tool is read-only or idempotent. All attempts share the call's deadline.
    pub retries: u32,
    /// The token store of HTTP servers, and the login.
    pub auth: AuthOptions,
    /// When tools and servers without answers are not called.
    pub circuits: CircuitOptions,
    /// The tool pins of earlier runs. A tool that differs is one of
    /// [`McpHost::changed_tools`](crate::McpHost::changed_tools).
    pub tool_pins: ToolPins,
    /// The store for the tool pins of later runs. `None` stores nothing.
    pub tool_pin_store: Option<Arc<ToolPinFile>>,
    /// The handlers of requests that servers send.
    pub client_handlers: ClientHandlers,
    /// Whether the application can display pages of MCP Apps. Some servers then have other tools.
    pub supports_apps: bool,
    /// When a process that does not answer is restarted.
    pub hang_detection: HangDetection,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self {
            restarts: 5,
            restart_delay: Duration::from_millis(500),
            grace: Grace::default(),
            call_timeout: DEFAULT_CALL_TIMEOUT,
            max_call_time: DEFAULT_MAX_CALL_TIME,
            retries: 2,
            auth: AuthOptions::default(),
            circuits: CircuitOptions::default(),
            tool_pins: ToolPins::default(),
            tool_pin_store: None,
            client_handlers: ClientHandlers::default(),
            supports_apps: false,
            hang_detection: HangDetection::default(),
        }
    }
}

/// When a stdio server that does not answer is restarted.
///
/// After a call timed out, the host sends pings. Any answer ends the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HangDetection {
    /// The time limit of a ping.
    pub ping_timeout: Duration,
    /// Number of consecutive pings without an answer, each while no call runs, after which the
    /// server is restarted. 0 disables the check.
    pub max_failed_pings: u32,
}

impl Default for HangDetection {
    fn default() -> Self {
        Self {
            ping_timeout: Duration::from_secs(5),
            max_failed_pings: 3,
        }
    }
}

/// How long the processes of a server may take to end before they are killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grace {
    /// The time after their standard input was closed, which is how MCP stops a server.
    pub after_stdin: Duration,
    /// The time after `SIGTERM` to the process group (not on Windows).
    pub after_term: Duration,
}

impl Default for Grace {
    fn default() -> Self {
        Self {
            after_stdin: Duration::from_secs(1),
            after_term: Duration::from_secs(1),
        }
    }
}

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
