//! Options of an MCP host: limits, time-outs, handlers and stores.

use std::{sync::Arc, time::Duration};

use crate::{
    auth::settings::AuthOptions,
    config::DEFAULT_CALL_TIMEOUT,
    server_requests::handlers::ClientHandlers,
    tools::tool_pinning::{fingerprint::ToolPins, store::ToolPinFile},
};

/// Default of [`HostOptions::max_call_time`], the maximum total time of a call that reports
/// progress.
const DEFAULT_MAX_CALL_TIME: Duration = Duration::from_mins(10);

/// Options that apply to all servers of an MCP host.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// Maximum number of consecutive restarts of a server that was ready. Further attempts follow
    /// about once per minute. 0 disables all restarts. The count is reset after a stdio server has
    /// run for a minute, and after each successful connection to an HTTP server. A server that was
    /// never ready is not restarted, because its configuration is usually wrong.
    pub restarts: u32,
    /// Delay before the first restart of a server, without jitter. It doubles before each further
    /// restart, up to 30 seconds. The first reconnection to an HTTP server has no delay.
    pub restart_delay: Duration,
    /// Times that the processes of a stdio server have to exit, after which they are killed.
    pub grace: ShutdownGracePeriods,
    /// Default time limit of a call. It applies if neither the caller nor the configuration of the
    /// server or tool sets a limit
    /// ([`ServerConfig::call_timeout`](crate::ServerConfig::call_timeout)). Each progress report
    /// restarts this limit, until [`max_call_time`](Self::max_call_time) is reached.
    pub call_timeout: Duration,
    /// Maximum total time of a call whose time limit is [`call_timeout`](Self::call_timeout).
    /// Progress reports restart `call_timeout`, but not this limit. A value below `call_timeout`
    /// has the effect of `call_timeout`.
    pub max_call_time: Duration,
    /// Maximum number of retries of a call that the server did not process, or of a call to a
    /// read-only or idempotent tool whose connection broke. All attempts share the call's deadline.
    pub retries: u32,
    /// Token store and OAuth login options for HTTP servers.
    pub auth: AuthOptions,
    /// Limits of the circuit breakers, which temporarily reject calls to a tool or server after
    /// several unanswered calls.
    pub circuits: CircuitOptions,
    /// Pinned tool definitions from earlier runs. A tool whose definition differs from its pin is
    /// listed in [`McpHost::changed_tools`](crate::McpHost::changed_tools).
    pub tool_pins: ToolPins,
    /// File for the tool pins that the host stores in this run. The application loads them for the
    /// next run ([`ToolPinFile::load`]) and passes them in `tool_pins`. With `None`, no pins are
    /// stored.
    pub tool_pin_store: Option<Arc<ToolPinFile>>,
    /// Handlers of the requests that servers send during a call: sampling and elicitation.
    pub client_handlers: ClientHandlers,
    /// Whether the application can display pages of MCP Apps. Some servers list different tools to
    /// such applications.
    pub supports_apps: bool,
    /// Limits of the hang detection, which restarts a stdio server after several unanswered pings.
    pub hang_detection: HangDetection,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self {
            restarts: 5,
            restart_delay: Duration::from_millis(500),
            grace: ShutdownGracePeriods::default(),
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

/// Limits after which a stdio server that does not answer is restarted.
///
/// After a call timed out, the host sends pings until one is answered or the limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HangDetection {
    /// Time limit of one ping.
    pub ping_timeout: Duration,
    /// Number of consecutive unanswered pings after which the server is restarted. A ping counts
    /// only if no call of the server is running. 0 disables the restart.
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

/// Times that the processes of a stdio server have to exit before they are killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShutdownGracePeriods {
    /// Time to exit after the standard input of the server was closed. MCP requires a client to
    /// close it first to stop a stdio server.
    pub after_stdin: Duration,
    /// Time to exit after `SIGTERM` was sent to the process group. Not used on Windows.
    pub after_term: Duration,
}

impl Default for ShutdownGracePeriods {
    fn default() -> Self {
        Self {
            after_stdin: Duration::from_secs(1),
            after_term: Duration::from_secs(1),
        }
    }
}

/// Limits of the circuit breakers. A breaker temporarily rejects calls to a tool or server that
/// does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CircuitOptions {
    /// Number of consecutive unanswered calls of one tool after which its circuit breaker opens. 0
    /// disables the breakers of tools.
    pub tool_failures: u32,
    /// Number of consecutive unanswered calls of any tools after which the circuit breaker of the
    /// server opens. 0 disables this breaker.
    pub server_failures: u32,
    /// Time for which an open circuit breaker rejects calls. Then it admits one call as a probe. If
    /// the probe gets no answer, the pause doubles.
    pub pause: Duration,
    /// Maximum of the pause, which doubles after each failed probe.
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
