//! The supervisor: a task that owns one server and starts, watches, restarts and stops it.

mod hang_detection;
mod subscription;

use std::{
    future::pending,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rmcp::{RoleClient, service::Peer};
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use self::subscription::subscribe;
use crate::{
    options::HostOptions,
    primitives::backoff::Backoff,
    primitives::error::{StartError, StatusReason, last_stderr_lines},
    server::{
        connect::{EXIT_TIMEOUT, LAST_OUTPUT_TIMEOUT, Service, connect},
        connection::Connection,
        process::ServerProcess,
        state::{CLOSED, Server},
        status::ServerState,
    },
    tools::{catalog::ServerTools, list::list_tools},
};

/// Time that a server process must run before its restart count is reset.
const STABLE_UPTIME: Duration = Duration::from_mins(1);
/// Maximum delay before a server is restarted, without jitter.
const MAX_RESTART_DELAY: Duration = Duration::from_secs(30);
/// Interval of restart attempts after the maximum number of restarts, so that a repaired server is
/// used again.
const RETRY_INTERVAL: Duration = Duration::from_mins(1);
/// Time limit to cancel the running requests of a connection before it is closed.
const CANCEL_TIMEOUT: Duration = Duration::from_millis(500);
/// Time limit to close a connection. Closing may include a request to delete an HTTP session.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Minimum pause before a changed tool list is read. Servers often report several changes in a row.
const MIN_RELIST_PAUSE: Duration = Duration::from_millis(50);
/// Maximum pause before a changed tool list is read, for a list that changes continuously.
const MAX_RELIST_PAUSE: Duration = Duration::from_secs(5);
/// Maximum time that a starting server delays the start of other servers. Starting a program needs
/// CPU time, but waiting for its answer does not.
const STARTUP_PERMIT_TIME: Duration = Duration::from_millis(500);

const RESTART_REQUESTED: &str = "restarting on request";

/// Reason why one run of a server ended. It determines whether and when the supervisor restarts the
/// server.
enum ExitReason {
    /// The host was closed, so the server was stopped and is not restarted.
    HostClosed,
    /// The server did not start: its process, handshake or list of tools failed.
    NotStarted(StartError),
    /// The server was ready, but then exited or lost its connection.
    Lost {
        reason: StatusReason,
        uptime: Duration,
    },
    /// A person requested a restart of the server.
    RestartRequested,
}

/// Runs a server, and restarts it after failures, until the host is closed.
pub(crate) async fn supervise_server(
    server: Arc<Server>,
    options: Arc<HostOptions>,
    startup: Arc<Semaphore>,
    stop: CancellationToken,
) {
    let is_process = server.config.transport.is_stdio();
    let new_backoff = || Backoff::new(options.restart_delay, MAX_RESTART_DELAY);
    let mut backoff = new_backoff();
    let mut was_ready = false;
    let mut failures: u32 = 0;
    loop {
        let mut process = None;
        let run = run_server_once(&server, &options, &mut process, &startup, &stop);
        let exit = Box::pin(run).await;
        let needs_person =
            matches!(&exit, ExitReason::NotStarted(error) if error.needs_user_action());
        let reason = match exit {
            ExitReason::HostClosed => {
                end_process(process, &options).await;
                server.set_disconnected(ServerState::Stopped, None);
                return;
            }
            ExitReason::RestartRequested => {
                failures = 0;
                server.set_starting(StatusReason::new(RESTART_REQUESTED));
                end_process(process, &options).await;
                // The breakers are reset after all calls of the old process have ended, because
                // these calls would count as failures.
                server.circuits.reset_all_breakers();
                continue;
            }
            ExitReason::NotStarted(error) => {
                let cause = server.redact(error.to_string());
                if error.includes_stderr() {
                    build_status_reason(&server, cause)
                } else {
                    StatusReason::new(cause)
                }
            }
            ExitReason::Lost { reason, uptime } => {
                was_ready = true;
                // A process that exits soon after every start is in a crash loop, so the count of
                // its failures is not reset. For an HTTP server, one successful handshake resets
                // the count.
                if uptime >= STABLE_UPTIME || !is_process {
                    failures = 0;
                }
                reason
            }
        };
        if failures == 0 {
            backoff = new_backoff();
        }
        failures = failures.saturating_add(1);
        let retry_interval = || Backoff::new(RETRY_INTERVAL, RETRY_INTERVAL).next_delay();
        let delay = if needs_person {
            server.set_disconnected(ServerState::Blocked, Some(reason));
            was_ready.then(retry_interval)
        } else if was_ready && failures <= options.restarts {
            let attempt = format!("attempt {failures} of {}", options.restarts);
            server.set_starting(StatusReason {
                cause: format!("restarting ({attempt}): {}", reason.cause),
                ..reason
            });
            let delay = backoff.next_delay();
            // An HTTP session may just have expired, so the first reconnection has no delay.
            let waits = failures > 1 || is_process;
            Some(if waits { delay } else { Duration::ZERO })
        } else {
            server.set_disconnected(ServerState::Failed, Some(reason));
            (was_ready && options.restarts > 0).then(retry_interval)
        };
        end_process(process, &options).await;
        let due = async {
            match delay {
                Some(delay) => sleep(delay).await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => {
                server.set_disconnected(ServerState::Stopped, None);
                return;
            }
            () = server.restart_requested.notified() => {
                failures = 0;
                server.circuits.reset_all_breakers();
                server.set_starting(StatusReason::new(RESTART_REQUESTED));
            }
            () = due => {}
        }
    }
}

/// Ends a server process whose standard input is already closed, within the grace periods.
async fn end_process(process: Option<ServerProcess>, options: &HostOptions) {
    if let Some(process) = process {
        process.stop_gracefully(options.grace).await;
    }
}

/// Runs a server once, from its start to its exit. Stores its process in `process`.
async fn run_server_once(
    server: &Arc<Server>,
    options: &HostOptions,
    process: &mut Option<ServerProcess>,
    startup: &Semaphore,
    stop: &CancellationToken,
) -> ExitReason {
    server.stderr.clear();
    let limit = server.config.connect_timeout;
    let is_listing = AtomicBool::new(false);
    let start = async { timeout(limit, start_server(server, process, &is_listing)).await };
    let started = tokio::select! {
        biased;
        () = stop.cancelled() => return ExitReason::HostClosed,
        () = server.restart_requested.notified() => return ExitReason::RestartRequested,
        started = run_with_startup_permit(startup, start) => started,
    };
    match started {
        Ok(Ok((service, tools))) => {
            Box::pin(watch_server(server, options, service, tools, process, stop)).await
        }
        Ok(Err(error)) => ExitReason::NotStarted(error),
        Err(_) => ExitReason::NotStarted(StartError::TimedOut {
            after: limit,
            waiting_for: if is_listing.load(Ordering::Relaxed) {
                "still waiting for the tool list"
            } else {
                "still waiting for the answer to the handshake"
            },
        }),
    }
}

/// Runs `start` with a startup permit, which is released after at most [`STARTUP_PERMIT_TIME`].
async fn run_with_startup_permit<F: Future>(startup: &Semaphore, start: F) -> F::Output {
    // Acquiring fails only for a closed semaphore, and this one is never closed.
    let permit = startup.acquire().await;
    let mut start = pin!(start);
    if let Ok(output) = timeout(STARTUP_PERMIT_TIME, &mut start).await {
        return output;
    }
    drop(permit);
    start.await
}

async fn start_server(
    server: &Arc<Server>,
    process: &mut Option<ServerProcess>,
    is_listing: &AtomicBool,
) -> Result<(Service, ServerTools), StartError> {
    let service = connect(server, process).await?;
    is_listing.store(true, Ordering::Relaxed);
    let tools = tokio::select! {
        biased;
        tools = list_tools(&server.config, &server.redactor, service.peer()) => tools,
        status = wait_for_process_exit(process) => return Err(StartError::Exited { status }),
    };
    match tools {
        Ok(tools) => Ok((service, tools)),
        Err(reason) => {
            // The request for the tools failed. If the process exits soon afterwards, its exit
            // status explains the failure better than the failed request.
            if let Ok(status) = timeout(LAST_OUTPUT_TIMEOUT, wait_for_process_exit(process)).await {
                return Err(StartError::Exited { status });
            }
            Err(StartError::Listing { reason })
        }
    }
}

/// Watches a ready server until it exits, loses its connection or must be stopped. Then closes the
/// connection and returns the reason.
async fn watch_server(
    server: &Server,
    options: &HostOptions,
    service: Service,
    tools: ServerTools,
    process: &mut Option<ServerProcess>,
    stop: &CancellationToken,
) -> ExitReason {
    let ready_at = Instant::now();
    let connection = Arc::new(Connection::new(service.peer().clone()));
    let close = service.cancellation_token();
    let mut closed = pin!(service.waiting());
    server.set_ready(connection.clone(), tools);
    let lost = |cause: String| ExitReason::Lost {
        reason: build_status_reason(server, server.redact(cause)),
        uptime: ready_at.elapsed(),
    };
    let unsubscribe = CancellationToken::new();
    let mut subscription = pin!(subscribe(server, &connection, &unsubscribe));
    let (exit, is_closed) = tokio::select! {
        biased;
        () = stop.cancelled() => (ExitReason::HostClosed, false),
        () = server.restart_requested.notified() => (ExitReason::RestartRequested, false),
        _ = &mut closed => {
            // The connection has closed. If the server is a process, its exit status is often known
            // only shortly afterwards.
            let status = timeout(EXIT_TIMEOUT, wait_for_process_exit(process)).await;
            (lost(status.unwrap_or_else(|_| "the server closed the connection".to_owned())), true)
        }
        status = wait_for_process_exit(process) => {
            // The process has exited, but its last output may still be in the pipe. The wait for
            // the end of the connection is limited, because a child process of the server may keep
            // the pipe open.
            let is_closed = timeout(LAST_OUTPUT_TIMEOUT, &mut closed).await.is_ok();
            (lost(status), is_closed)
        }
        reason = connection.wait_until_stale() => {
            (lost(format!("reconnecting: {reason}")), false)
        }
        reason = hang_detection::wait_for_hang(server, &connection, options.hang_detection) => {
            // The supervisor restarts the server because it hangs. This resets the breaker of the
            // server, but not the breakers of its tools.
            server.circuits.reset_server_breaker();
            (lost(reason), false)
        }
        () = relist_tools_on_change(server, &connection.peer) => (ExitReason::HostClosed, false),
        () = publish_list_changes(server) => (ExitReason::HostClosed, false),
        () = &mut subscription => (ExitReason::HostClosed, false),
    };
    connection.mark_ended(match &exit {
        ExitReason::Lost { reason, .. } => reason.to_string(),
        ExitReason::RestartRequested => RESTART_REQUESTED.to_owned(),
        ExitReason::HostClosed | ExitReason::NotStarted(_) => CLOSED.to_owned(),
    });
    if !is_closed {
        // Some servers exit only after their running requests have ended, so the requests are
        // cancelled first.
        connection.requests.close();
        unsubscribe.cancel();
        let cancelled = async { tokio::join!(subscription, connection.requests.wait()) };
        let _ = timeout(CANCEL_TIMEOUT, cancelled).await;
        close.cancel();
        let _ = timeout(CLOSE_TIMEOUT, closed).await;
    }
    exit
}

/// Creates a status reason from a cause and the last lines of the server's standard error.
fn build_status_reason(server: &Server, cause: String) -> StatusReason {
    let stderr_lines = last_stderr_lines(&server.stderr.to_vec()).to_vec();
    StatusReason {
        cause,
        stderr_lines,
    }
}

/// Waits for the exit of the process and describes it. Never returns for an HTTP server.
async fn wait_for_process_exit(process: &mut Option<ServerProcess>) -> String {
    match process {
        Some(process) => process.wait_for_exit().await,
        None => pending().await,
    }
}

/// Rate limit for repeated `tools/list` requests, for example after the server reported changes.
#[derive(Default)]
struct RelistDebounce {
    pause: Duration,
    last: Option<Instant>,
}

impl RelistDebounce {
    /// Waits before the next `tools/list` request. Frequent changes make the pause longer.
    async fn wait_before_relist(&mut self) {
        self.pause = match self.last {
            Some(last) if last.elapsed() < 2 * self.pause => (2 * self.pause).min(MAX_RELIST_PAUSE),
            _ => MIN_RELIST_PAUSE,
        };
        sleep(self.pause).await;
        self.last = Some(Instant::now());
    }
}

/// Lists the tools again after each change that the server reports. Never returns.
async fn relist_tools_on_change(server: &Server, peer: &Peer<RoleClient>) {
    let mut debounce = RelistDebounce::default();
    loop {
        server.relist_requested.notified().await;
        debounce.wait_before_relist().await;
        let tools = list_tools(&server.config, &server.redactor, peer);
        let listed = timeout(server.config.connect_timeout, tools).await;
        match listed.unwrap_or_else(|_| Err("timed out".to_owned())) {
            Ok(tools) => server.set_tools(tools),
            Err(reason) => server.set_tools_outdated(format!(
                "the tools changed, but listing them failed: {reason}"
            )),
        }
    }
}

/// Publishes changes of the prompt and resource lists, which are read on demand. Never returns.
async fn publish_list_changes(server: &Server) {
    let mut debounce = RelistDebounce::default();
    loop {
        server.list_cache.changed.notified().await;
        debounce.wait_before_relist().await;
        for list in server.list_cache.take_changed_lists() {
            server.publish_list_change(list);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        cell::Cell,
        future::{pending, ready},
    };

    use futures_util::future::join_all;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn starts_run_in_parallel_up_to_the_limit() {
        let startup = Semaphore::new(3);
        let (running, max) = (Cell::new(0_u32), Cell::new(0_u32));
        let starts = (0..10).map(|_| {
            run_with_startup_permit(&startup, async {
                running.set(running.get() + 1);
                max.set(max.get().max(running.get()));
                // sleep: the clock is paused; the duration of a start.
                sleep(Duration::from_millis(100)).await;
                running.set(running.get() - 1);
            })
        });
        join_all(starts).await;
        assert_eq!(max.get(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn silent_servers_delay_other_starts_only_for_a_moment() {
        let startup = Semaphore::new(16);
        let silent = (0..32).map(|_| run_with_startup_permit(&startup, pending::<()>()));
        let mut silent = pin!(join_all(silent));
        let started = Instant::now();
        tokio::select! {
            biased;
            _ = &mut silent => unreachable!("they never answer"),
            () = run_with_startup_permit(&startup, ready(())) => {}
        }
        assert_eq!(started.elapsed(), 2 * STARTUP_PERMIT_TIME);
    }
}
