//! The task that owns a server: starts it, watches it, starts it again, ends it.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rmcp::{
    RoleClient,
    model::{ServerNotification, ServerPeerInfo, SubscriptionFilter},
    service::{Peer, Subscription},
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    backoff::jittered,
    error::{Reason, StartError},
    features::{list_cache::ListKind, request::send},
    host::HostOptions,
    server::{
        connect::{Connected, connect},
        gate::Gate,
        hang_detection,
        process::ServerProcess,
        state::{CLOSED, Link, Server},
    },
    tools::list::{Tools, list},
};

/// A server that was there for so long is taken to be sound: it has all its restarts again.
const SOUND_AFTER: Duration = Duration::from_mins(1);
/// The longest pause between two starts while restarts are left.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How often a server is tried that worked once and has used up its restarts: it may be down for
/// longer, and nobody should have to notice that it is back.
const LATER: Duration = Duration::from_mins(1);
/// How long what a server said before it ended may take to be read.
const LAST_ANSWER: Duration = Duration::from_millis(200);
/// How long a server that closed its output may take to end.
const TO_EXIT: Duration = Duration::from_millis(500);
/// How long telling a server may take that nobody waits for its answers any more.
const TO_CANCEL: Duration = Duration::from_millis(500);
/// How long a connection may take to be closed, such as a session to be deleted.
const TO_CLOSE: Duration = Duration::from_secs(1);
/// Changes of a list mostly come several at once; they are answered together.
const SEVERAL_CHANGES: Duration = Duration::from_millis(50);
/// The same, where the list changes all the time.
const MANY_CHANGES: Duration = Duration::from_secs(5);
/// How long to wait before a broken subscription is made again.
const RESUBSCRIBE: Duration = Duration::from_secs(10);
/// The same, where making it fails again and again.
const RARELY: Duration = Duration::from_mins(10);

const AS_ASKED: &str = "it is started again, as asked";

/// How one life of a server ended.
enum End {
    /// The host is closed.
    Stopped,
    /// It did not come up.
    NotStarted(StartError),
    /// It was ready, and went away.
    Lost { reason: Reason, lasted: Duration },
    /// A new start was asked for.
    Again,
}

/// Runs until the host is closed.
pub(crate) async fn run(
    server: Arc<Server>,
    options: Arc<HostOptions>,
    gate: Arc<Gate>,
    stop: CancellationToken,
) {
    let is_process = server.config.transport.is_stdio();
    let mut worked_once = false;
    let mut failures: u32 = 0;
    loop {
        let mut process = None;
        let end = Box::pin(live(&server, &options, &mut process, &gate, &stop)).await;
        let waits_for_person = matches!(
            &end,
            End::NotStarted(
                StartError::Unauthorized { .. }
                    | StartError::Login {
                        needs_person: true,
                        ..
                    }
            )
        );
        let reason = match end {
            End::Stopped => {
                put_away(process, &options).await;
                server.stopped();
                return;
            }
            End::Again => {
                failures = 0;
                server.starting(Reason::of(AS_ASKED));
                put_away(process, &options).await;
                // By now no call of the life before is left that could count.
                server.circuits.reset();
                continue;
            }
            End::NotStarted(error) => Reason {
                lacks_program: matches!(error, StartError::NoExecutable { .. }),
                cause: server.redactor.clean(error.to_string()),
                last_words: if error.has_last_words() {
                    server.stderr.last_words()
                } else {
                    Vec::new()
                },
            },
            End::Lost { reason, lasted } => {
                worked_once = true;
                // A process that comes up and dies at once is in a loop; an HTTP server that takes
                // the handshake is there.
                if lasted >= SOUND_AFTER || !is_process {
                    failures = 0;
                }
                reason
            }
        };
        failures = failures.saturating_add(1);
        let next = if waits_for_person {
            server.blocked(reason);
            worked_once.then_some(LATER)
        } else if worked_once && failures <= options.restarts {
            server.starting(Reason {
                cause: format!(
                    "it is started again ({failures} of {}): {}",
                    options.restarts, reason.cause
                ),
                ..reason
            });
            Some(pause(&options, failures, is_process))
        } else {
            server.failed(reason);
            (worked_once && options.restarts > 0).then_some(LATER)
        };
        put_away(process, &options).await;
        let due = async {
            match next {
                Some(pause) => sleep(jittered(pause)).await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => {
                server.stopped();
                return;
            }
            () = server.again.notified() => {
                failures = 0;
                server.circuits.reset();
                server.starting(Reason::of(AS_ASKED));
            }
            () = due => {}
        }
    }
}

/// Its standard input is closed by now, or is with the process.
async fn put_away(process: Option<ServerProcess>, options: &HostOptions) {
    if let Some(process) = process {
        process.end(options.grace).await;
    }
}

fn pause(options: &HostOptions, failures: u32, is_process: bool) -> Duration {
    if failures == 1 && !is_process {
        return Duration::ZERO;
    }
    let doubled = 2_u32.saturating_pow(failures.saturating_sub(1).min(16));
    options
        .restart_delay
        .saturating_mul(doubled)
        .min(LONGEST_PAUSE)
}

/// From its start to its end. What is left of its process is in `process` afterwards.
async fn live(
    server: &Server,
    options: &HostOptions,
    process: &mut Option<ServerProcess>,
    gate: &Gate,
    stop: &CancellationToken,
) -> End {
    server.stderr.clear();
    let limit = server.config.connect_timeout;
    let listing = AtomicBool::new(false);
    let started = tokio::select! {
        biased;
        () = stop.cancelled() => return End::Stopped,
        () = server.again.notified() => return End::Again,
        // Its time begins when it may start.
        started = gate.pass(async { timeout(limit, start(server, process, &listing)).await }) => started,
    };
    match started {
        Ok(Ok((connected, tools))) => watch(server, options, connected, tools, process, stop).await,
        Ok(Err(error)) => End::NotStarted(error),
        Err(_) => End::NotStarted(StartError::TimedOut {
            after: limit,
            waiting_for: if listing.load(Ordering::Relaxed) {
                "it has not listed its tools"
            } else {
                "it has not answered the handshake"
            },
        }),
    }
}

async fn start(
    server: &Server,
    process: &mut Option<ServerProcess>,
    listing: &AtomicBool,
) -> Result<(Connected, Tools), StartError> {
    let connected = connect(server, process).await?;
    listing.store(true, Ordering::Relaxed);
    let listed = tokio::select! {
        biased;
        listed = list(server, connected.service.peer()) => listed,
        how = ended(process) => {
            return Err(StartError::Exited { how });
        }
    };
    match listed {
        Ok(tools) => Ok((connected, tools)),
        Err(reason) => {
            // A closed pipe is mostly the first sign of an exit, which says more.
            if let Ok(how) = timeout(LAST_ANSWER, ended(process)).await {
                return Err(StartError::Exited { how });
            }
            Err(StartError::Listing { reason })
        }
    }
}

/// While it is ready.
async fn watch(
    server: &Server,
    options: &HostOptions,
    connected: Connected,
    tools: Tools,
    process: &mut Option<ServerProcess>,
    stop: &CancellationToken,
) -> End {
    let ready_at = Instant::now();
    let Connected {
        service,
        tools_changed,
        direct,
    } = connected;
    let link = Arc::new(Link::new(service.peer().clone(), direct));
    let close = service.cancellation_token();
    let mut closed = std::pin::pin!(service.waiting());
    server.ready(link.clone(), tools);
    let lost = |how: String| End::Lost {
        reason: Reason {
            last_words: server.stderr.last_words(),
            ..Reason::of(server.redactor.clean(how))
        },
        lasted: ready_at.elapsed(),
    };
    let quit = CancellationToken::new();
    let mut subscribed = std::pin::pin!(subscribe(server, &link, &tools_changed, &quit));
    let (end, is_closed) = tokio::select! {
        biased;
        () = stop.cancelled() => (End::Stopped, false),
        () = server.again.notified() => (End::Again, false),
        _ = &mut closed => {
            // The pipe closes before the exit is known. A process that goes on without it is of no
            // use, and is ended with the rest.
            let how = match timeout(TO_EXIT, ended(process)).await {
                Ok(how) => how,
                Err(_) => "it closed the connection".to_owned(),
            };
            (lost(how), true)
        }
        how = ended(process) => {
            // What it said last may still be in the pipe; and a grandchild may hold the pipe open.
            let is_closed = timeout(LAST_ANSWER, &mut closed).await.is_ok();
            (lost(how), is_closed)
        }
        reason = link.stale() => (lost(format!("the connection is made again: {reason}")), false),
        how = hang_detection::hangs(server, &link, options.probing) => {
            // What its tools did not answer is still held against them.
            server.circuits.reset_server();
            (lost(how), false)
        }
        () = follow_changes(server, &link.peer, &tools_changed) => (End::Stopped, false),
        () = follow_lists(server) => (End::Stopped, false),
        () = &mut subscribed => (End::Stopped, false),
    };
    link.ended.send_replace(Some(match &end {
        End::Lost { reason, .. } => reason.to_string(),
        End::Again => AS_ASKED.to_owned(),
        End::Stopped | End::NotStarted(_) => CLOSED.to_owned(),
    }));
    if !is_closed {
        // A server may not leave before it has done what it was asked to, so that is cancelled first.
        link.calls.close();
        quit.cancel();
        let cancelled = async { tokio::join!(subscribed, link.calls.wait()) };
        let _ = timeout(TO_CANCEL, cancelled).await;
        close.cancel();
        let _ = timeout(TO_CLOSE, closed).await;
    }
    end
}

/// How its process ended; for ever if it has none.
async fn ended(process: &mut Option<ServerProcess>) -> String {
    match process {
        Some(process) => process.ended().await,
        None => pending().await,
    }
}

/// Lists the tools anew whenever they changed. Never ends.
async fn follow_changes(server: &Server, peer: &Peer<RoleClient>, changed: &Notify) {
    let mut pause = SEVERAL_CHANGES;
    let mut last: Option<Instant> = None;
    loop {
        tokio::select! {
            () = changed.notified() => {}
            // Its list is not good any more, and somebody looked at it.
            () = server.relist.notified() => {}
        }
        // A server that tells of changes all the time is asked ever more rarely.
        pause = match last {
            Some(last) if last.elapsed() < 2 * pause => (2 * pause).min(MANY_CHANGES),
            _ => SEVERAL_CHANGES,
        };
        sleep(pause).await;
        last = Some(Instant::now());
        match timeout(server.config.connect_timeout, list(server, peer)).await {
            Ok(Ok(tools)) => server.relisted(tools),
            Ok(Err(reason)) => server.not_relisted(format!(
                "its tools changed, but it did not list them: {reason}"
            )),
            Err(_) => server
                .not_relisted("its tools changed, but it did not list them in time".to_owned()),
        }
    }
}

/// Tells of lists that changed and are read when somebody wants them. Never ends.
async fn follow_lists(server: &Server) {
    let mut pause = SEVERAL_CHANGES;
    let mut last: Option<Instant> = None;
    loop {
        server.lists.heard().await;
        // As above: what a server tells all the time must not drown what others tell.
        pause = match last {
            Some(last) if last.elapsed() < 2 * pause => (2 * pause).min(MANY_CHANGES),
            _ => SEVERAL_CHANGES,
        };
        sleep(pause).await;
        last = Some(Instant::now());
        for which in server.lists.take_changed() {
            server.list_changed(which);
        }
    }
}

/// Since 2026-07-28 a server tells of changes only whoever subscribed; before, it tells without
/// being asked. Ends after `quit`, when the server knows that nobody listens any more.
async fn subscribe(server: &Server, link: &Link, changed: &Notify, quit: &CancellationToken) {
    let Some(filter) = link.peer.peer_info().and_then(|about| told_of(&about)) else {
        return quit.cancelled().await;
    };
    let mut missed = false;
    let mut pause = RESUBSCRIBE;
    while !quit.is_cancelled() {
        // Not given up half-way: what is dropped here may not be cancelled before the connection
        // is closed, and some servers then wait for the end of the subscription.
        match link.peer.listen(filter.clone()).await {
            Ok(subscription) => {
                if missed {
                    // Something may have changed while nobody listened.
                    changed.notify_one();
                    server.lists.all_changed();
                }
                pause = RESUBSCRIBE;
                listen(server, link, subscription, changed, quit).await;
            }
            Err(error) => {
                tracing::debug!(server = server.config.name, %error, "no subscription");
                pause = (pause * 2).min(RARELY);
            }
        }
        missed = true;
        tokio::select! {
            () = quit.cancelled() => {}
            () = sleep(jittered(pause)) => {}
        }
    }
}

/// The changes that a server of the newer era says it tells of.
fn told_of(about: &ServerPeerInfo) -> Option<SubscriptionFilter> {
    if about.protocol_version.has_initialize() {
        return None;
    }
    let all = SubscriptionFilter::builder()
        .tools_list_changed()
        .prompts_list_changed()
        .resources_list_changed();
    let told = all.build().supported_by(&about.capabilities);
    (told != SubscriptionFilter::new()).then_some(told)
}

async fn listen(
    server: &Server,
    link: &Link,
    mut subscription: Subscription,
    changed: &Notify,
    quit: &CancellationToken,
) {
    use ServerNotification::{PromptListChangedNotification, ResourceListChangedNotification};
    loop {
        tokio::select! {
            biased;
            () = quit.cancelled() => {
                let _ = subscription.cancel().await;
                // Some servers do not leave while they end a subscription, and cannot end it once their
                // input is closed. Whoever answers what came after it is done with it.
                if server.config.transport.is_stdio() {
                    let _ = Box::pin(send(link, hang_detection::ping(link))).await;
                }
                return;
            }
            next = subscription.next() => match next {
                Ok(Some(PromptListChangedNotification(_))) => {
                    server.lists.changed(ListKind::Prompts);
                }
                Ok(Some(ResourceListChangedNotification(_))) => {
                    server.lists.changed(ListKind::Resources);
                }
                Ok(Some(_)) => {
                    server.lists.changed(ListKind::Tools);
                    changed.notify_one();
                }
                Ok(None) | Err(_) => return,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_half_a_minute_and_http_is_tried_again_at_once() {
        let options = HostOptions::default();
        let pauses =
            |is_process| [1, 2, 3, 7, 1000].map(|n| pause(&options, n, is_process).as_millis());
        assert_eq!(pauses(true), [500, 1000, 2000, 30_000, 30_000]);
        assert_eq!(pauses(false), [0, 1000, 2000, 30_000, 30_000]);
    }
}
