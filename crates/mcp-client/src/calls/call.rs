//! One call of one tool, with its deadline, from the turn to the answer.
//!
//! It is made again, within the same deadline, where that repeats nothing: it did not leave, the server
//! turned it away, or its connection broke and the tool says of itself that it is read-only or idempotent.
//! Every attempt passes the circuits of the server and of the tool, whoever made it.

use std::{pin::pin, sync::Arc, time::Duration};

use switchboard_domain::{ProgressSink, SharedObject, ToolCallError, ToolOutput, ToolRetry};
use tokio::{
    sync::SemaphorePermit,
    time::{Instant, sleep, timeout_at},
};

use crate::{
    backoff::jittered,
    calls::{
        attempt::{Attempt, attempt},
        circuit_breaker::Outcome,
        context::Caller,
        deadline::Deadline,
    },
    server::{
        state::{Link, Server},
        status::ServerState,
    },
    server_requests::alone::Turn,
    tools::list::{Found, own_name},
};

/// How long to wait before the second attempt of a call that may be made again; before each further one
/// twice as long. Up to a half of it is left out by chance.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(100);

/// What to call.
pub(crate) struct Request {
    pub(crate) tool: Found,
    pub(crate) caller: Arc<Caller>,
    pub(crate) input: SharedObject,
    pub(crate) deadline: Deadline,
    /// How many times it may be made again.
    pub(crate) retries: u32,
    pub(crate) progress: ProgressSink,
}

impl Request {
    /// The tool's own name.
    pub(crate) fn tool(&self) -> &str {
        own_name(&self.tool.definition)
    }

    /// Whether the tool says that a repetition changes nothing more.
    fn is_repeatable(&self) -> bool {
        let says = &self.tool.definition.annotations;
        says.read_only == Some(true) || says.idempotent == Some(true)
    }
}

/// Calls, within the deadline whatever happens.
pub(crate) async fn call(
    server: &Server,
    mut request: Request,
) -> Result<ToolOutput, ToolCallError> {
    let unavailable = |reason: String| ToolCallError::Unavailable {
        server: server.config.name.clone(),
        reason: server.redactor.clean(reason),
    };
    let definition = request.tool.definition.clone();
    let tool = own_name(&definition);
    let mut deadline = request.deadline.clone();
    // Nobody waits for a turn to be told that there is none.
    server.circuits.check(tool).map_err(unavailable)?;
    let _turns = match turns_now(server, &request.caller) {
        Some(turns) => turns,
        None => Box::pin(turns(server, &request.caller, &deadline)).await?,
    };
    let told = request.progress.clone();
    request.progress = deadline.listening(request.progress);
    let mut broken: Option<Arc<Link>> = None;
    // Why the attempts before failed, if anything may have come of them.
    let mut before: Option<ToolCallError> = None;
    let mut attempts: u32 = 0;
    loop {
        let link = match link_within(server, &deadline, broken.as_ref()).await {
            Ok(link) => link,
            Err(error) => return Err(before.unwrap_or(error)),
        };
        let pass = match server.circuits.admit(tool) {
            Ok(pass) => pass,
            Err(why) => return Err(before.unwrap_or_else(|| unavailable(why))),
        };
        attempts += 1;
        if attempts > 1 {
            deadline.hear();
        }
        let attempt = {
            // Pinned here, and not given away: it is too big to be moved about.
            let attempt = pin!(attempt(server, &link, &request));
            deadline
                .hold(&server.alarms, server.questions(&request.caller), attempt)
                .await
        };
        let (error, pause) = match attempt {
            Ok(Attempt::Answered(Ok(output))) => {
                if pass.settle(Outcome::Answered, Outcome::Answered, "") {
                    server.reassess();
                }
                let output = output.with_checked_depth();
                return Ok(match &request.tool.promise {
                    Some(promise) => promise.hold(output),
                    None => output,
                });
            }
            Ok(Attempt::Answered(Err(error))) => {
                let (of_server, of_tool) = outcome(&error, &link, tool);
                if pass.settle(of_server, of_tool, &what(&error)) {
                    server.reassess();
                }
                let broke = matches!(error, ToolCallError::Broken { .. }) && link.is_gone();
                if !(broke && request.is_repeatable()) {
                    return Err(error);
                }
                broken = Some(link);
                (error, backoff(attempts))
            }
            Ok(Attempt::NotSent { reason }) => {
                drop(pass);
                link.stale
                    .send_replace(Some(server.redactor.clean(&reason)));
                broken = Some(link);
                // The first time, another connection is mostly all that it takes.
                let pause = match attempts {
                    1 => Duration::ZERO,
                    more => backoff(more - 1),
                };
                (unavailable(reason), pause)
            }
            Ok(Attempt::Busy { reason }) => {
                drop(pass);
                let reason = format!("it wants fewer requests ({reason})");
                (unavailable(reason), backoff(attempts))
            }
            Err(after) => {
                let error = timed_out(server, tool, after);
                if pass.settle(Outcome::NoAnswer, Outcome::NoAnswer, &what(&error)) {
                    server.reassess();
                }
                link.silence.notify_one();
                return Err(error);
            }
        };
        let retry = retry(attempts + 1, &error);
        let error = before.take().unwrap_or(error);
        if attempts > request.retries || Instant::now() + pause >= deadline.until() {
            return Err(error);
        }
        tracing::debug!(server = server.config.name, tool, %error, "a call is made again");
        told.retrying(retry);
        if !error.did_not_run() {
            before = Some(error);
        }
        sleep(pause).await;
    }
}

/// The turns that a call needs, if there are some now: among those of tools that ask, and of its server.
fn turns_now<'a>(
    server: &'a Server,
    caller: &Arc<Caller>,
) -> Option<(Turn<'a>, SemaphorePermit<'a>)> {
    let permit = server.turn.try_acquire().ok()?;
    // Last, since the call is over with it.
    Some((server.asks.take_turn(caller)?, permit))
}

/// The same where they have to be waited for. Who waits among those who ask takes no place from others.
async fn turns<'a>(
    server: &'a Server,
    caller: &Arc<Caller>,
    deadline: &Deadline,
) -> Result<(Turn<'a>, SemaphorePermit<'a>), ToolCallError> {
    let among_those_who_ask = turn_to_be_asked(server, caller, deadline).await?;
    Ok((among_those_who_ask, turn(server, deadline).await?))
}

/// A turn that has to be waited for.
pub(crate) async fn turn<'a>(
    server: &'a Server,
    deadline: &Deadline,
) -> Result<SemaphorePermit<'a>, ToolCallError> {
    let turn = timeout_at(deadline.if_silent(), server.turn.acquire()).await;
    deadline.hear();
    if let Ok(Ok(turn)) = turn {
        return Ok(turn);
    }
    let most = match server.turns {
        1 => "one call".to_owned(),
        turns => format!("{turns} calls"),
    };
    let patience = deadline.patience();
    Err(ToolCallError::Unavailable {
        server: server.config.name.clone(),
        reason: format!(
            "it takes {most} at a time, and those before did not end within {patience:?}"
        ),
    })
}

/// The same for a tool that asks, where it could not be told whose question it is.
async fn turn_to_be_asked<'a>(
    server: &'a Server,
    caller: &Arc<Caller>,
    deadline: &Deadline,
) -> Result<Turn<'a>, ToolCallError> {
    let turn = timeout_at(deadline.if_silent(), server.asks.turn_of(caller)).await;
    deadline.hear();
    turn.map_err(|_| {
        let (tool, patience) = (caller.tool().unwrap_or_default(), deadline.patience());
        ToolCallError::Unavailable {
            server: server.config.name.clone(),
            reason: format!(
                "`{tool}` may ask the person something, and it does not say whom, so it runs for one person at \
                 a time; the call of another one did not end within {patience:?}"
            ),
        }
    })
}

pub(crate) fn backoff(attempts: u32) -> Duration {
    jittered(BETWEEN_ATTEMPTS * 2_u32.saturating_pow(attempts.saturating_sub(1).min(6)))
}

/// What an error says about the server, and about the tool.
fn outcome(error: &ToolCallError, link: &Link, tool: &str) -> (Outcome, Outcome) {
    match error {
        ToolCallError::Refused { .. } | ToolCallError::InvalidAnswer { .. } => {
            (Outcome::Answered, Outcome::Answered)
        }
        // That the connection is gone is its own matter; but this tool may have done it.
        ToolCallError::Broken { .. } if link.ended.borrow().is_some() => {
            let of_tool = if link.blame(tool) {
                Outcome::NoAnswer
            } else {
                Outcome::Unknown
            };
            (Outcome::Unknown, of_tool)
        }
        ToolCallError::Broken { .. } | ToolCallError::Timeout { .. } => {
            (Outcome::NoAnswer, Outcome::NoAnswer)
        }
        _ => (Outcome::Unknown, Outcome::Unknown),
    }
}

fn retry(attempt: u32, error: &ToolCallError) -> ToolRetry {
    let reason = what(error);
    ToolRetry { attempt, reason }
}

fn timed_out(server: &Server, tool: &str, after: Duration) -> ToolCallError {
    ToolCallError::Timeout {
        server: server.config.name.clone(),
        tool: tool.to_owned(),
        after,
    }
}

/// The error without the names, which stand around it.
fn what(error: &ToolCallError) -> String {
    match error {
        ToolCallError::Timeout { after, .. } => format!("nothing within {after:?}"),
        ToolCallError::Broken { reason, .. } | ToolCallError::Unavailable { reason, .. } => {
            reason.clone()
        }
        other => other.to_string(),
    }
}

/// A connection, if there is one as soon as the deadline asks for.
pub(crate) async fn link_within(
    server: &Server,
    deadline: &Deadline,
    broken: Option<&Arc<Link>>,
) -> Result<Arc<Link>, ToolCallError> {
    // Mostly there is, and nobody has to wait.
    if broken.is_none()
        && let Some(link) = server.sound_link()
    {
        return Ok(link);
    }
    // In a box, as everything is that calls seldom come to: the rest is moved about for every call.
    let ready = Box::pin(ready_link(server, broken));
    let ready = timeout_at(deadline.if_silent(), ready).await;
    deadline.hear();
    ready.map_err(|_| {
        let (patience, why_not) = (deadline.patience(), server.now().why_not());
        ToolCallError::Unavailable {
            server: server.config.name.clone(),
            reason: format!("not ready within {patience:?}: {why_not}"),
        }
    })?
}

/// A connection that is alive as far as is known, other than `broken`.
async fn ready_link(
    server: &Server,
    broken: Option<&Arc<Link>>,
) -> Result<Arc<Link>, ToolCallError> {
    if let Some(broken) = broken {
        server.replaced(broken).await;
    }
    loop {
        server.settled().await;
        let now = server.now();
        match &now.link {
            // Its task has not yet said so.
            Some(link) if link.ended.borrow().is_some() => server.replaced(link).await,
            Some(link) => return Ok(link.clone()),
            None if now.state == ServerState::Starting => {}
            None => return Err(server.unavailable(&now)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size<A, B, F: Future>(_: impl Fn(A, B) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn a_call_is_not_moved_about_in_vain() {
        // It is moved into the box of the port with every call. What is rmcp's own in it is in a box.
        let size = size(|server: &'static Server, request| call(server, request));
        assert!(size < 4000, "{size} bytes");
    }
}
