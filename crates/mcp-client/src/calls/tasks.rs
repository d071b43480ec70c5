//! Calls that become tasks (extension `io.modelcontextprotocol/tasks`, SEP-2663, for 2026-07-28): the server
//! answers `tools/call` with a task, which is asked after until it has ended.
//!
//! It is also listened to: with `subscriptions/listen` for the task's id (`taskIds`), so that its end is heard
//! when it comes and not when it is next asked after. A server may know nothing of that, or send nothing; so
//! the specification has clients ask in any case.

use std::{collections::HashSet, future::pending, pin::pin, time::Duration};

use rmcp::{
    RoleClient,
    model::{
        CancelTaskParams, CancelTaskRequest, ClientCapabilities, ClientRequest, CreateTaskResult,
        CustomRequest, DetailedTask, GetTaskParams, GetTaskRequest, JsonObject, TASKS_EXTENSION_ID,
        UpdateTaskParams, UpdateTaskRequest,
    },
    service::{Peer, PeerRequestOptions, ServiceError},
};
use serde_json::{Value, json};
use switchboard_domain::{ToolCallError, ToolOutput, ToolProgress};
use tokio::{
    sync::broadcast::{self, error::RecvError},
    time::{sleep, timeout},
};
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::features::{apps, request::send};
use crate::{
    calls::{
        attempt::{broken, invalid_answer, refused_with},
        call::Request,
    },
    server::state::{Link, Server},
    server_requests::within::Within,
    tools::convert,
    transport::{http::Failure, invalid_message::invalid_answer_reason},
};

/// How often a task is asked after whose server does not say it.
const INTERVAL: Duration = Duration::from_secs(1);
/// No server is asked more often, whatever it says.
const SHORTEST: Duration = Duration::from_millis(20);
/// Nor more rarely: its answer is the sign of life that a call waits for.
const LONGEST: Duration = Duration::from_secs(20);
/// So many questions in a row may get lost on a connection that is sound.
const MOST_LOST: u32 = 5;
/// News kept for those who do not keep up: they ask after their tasks all the same.
const NEWS: usize = 64;
/// How long telling a server may take that nobody waits for a task any more.
const TO_CANCEL: Duration = Duration::from_secs(1);

/// What servers say of tasks without being asked, for all who wait for one.
#[derive(Clone)]
pub(crate) struct TaskNews(broadcast::Sender<Value>);

impl Default for TaskNews {
    fn default() -> Self {
        Self(broadcast::Sender::new(NEWS))
    }
}

impl TaskNews {
    pub(crate) fn tell(&self, task: &DetailedTask) {
        // Fails when nobody waits for any.
        let _ = self.0.send(serde_json::to_value(task).unwrap_or_default());
    }
}

/// What is offered to servers, and that calls may become tasks. Those of the older era have no use for it.
pub(crate) fn offered(
    mut capabilities: ClientCapabilities,
    shows_apps: bool,
) -> ClientCapabilities {
    if shows_apps {
        apps::offer(&mut capabilities);
    }
    capabilities
        .extensions
        .get_or_insert_default()
        .insert(TASKS_EXTENSION_ID.to_owned(), JsonObject::new());
    capabilities
}

/// Waits for the end of a task that a server made of a call. Dropping the future cancels the task.
///
/// Every answer about it is a sign of life, and what the server says of it is progress.
pub(crate) async fn follow(
    server: &Server,
    link: &Link,
    request: &Request,
    created: CreateTaskResult,
) -> Result<ToolOutput, ToolCallError> {
    let id = created.task.task_id.clone();
    let mut unless_over = CancelTask {
        peer: &link.peer,
        id: id.clone(),
        over: false,
        call: link.calls.token(),
    };
    let mut told = server.tasks.0.subscribe();
    let mut listening = pin!(listen(link, &id));
    let mut news = News::default();
    let mut answered = HashSet::new();
    let mut state = serde_json::to_value(created).unwrap_or_default();
    // The first answer only names the task, however far it is.
    news.tell(request, &state);
    loop {
        state = tokio::select! {
            biased;
            state = heard(&mut told, &id) => state,
            state = &mut listening => state,
            state = async {
                sleep(interval(&state)).await;
                ask_after(server, link, request, &id).await
            } => state?,
        };
        request.deadline.hear();
        news.tell(request, &state);
        match state.get("status").and_then(Value::as_str) {
            Some("completed") => {
                unless_over.over = true;
                return match state.get_mut("result").map(Value::take) {
                    Some(result @ Value::Object(_)) => Ok(convert::output_from_json(result)),
                    _ => Err(broken(server, request, "its task ended without a result")),
                };
            }
            Some("failed") => {
                unless_over.over = true;
                return Err(failed(server, request, &state));
            }
            Some("cancelled") => {
                unless_over.over = true;
                return Err(broken(server, request, "it cancelled the task"));
            }
            Some("input_required") => {
                answer(server, link, request, &id, &state, &mut answered).await?;
            }
            Some("working") => {}
            // A state of a later version: it will end in one of these.
            Some(other) => tracing::debug!(task = id, other, "a task is in a state not known"),
            None => {
                let reason = "its answer about the task is none";
                return Err(broken(server, request, reason));
            }
        }
    }
}

/// Has the server tell of the task as long as this is waited for, which never ends.
async fn listen(link: &Link, id: &str) -> Value {
    let params = json!({"notifications": {"taskIds": [id]}});
    let request = CustomRequest::new("subscriptions/listen", Some(params));
    match send(link, ClientRequest::CustomRequest(request)).await {
        Ok(_) => tracing::debug!(task = id, "the server tells no more of a task"),
        Err(error) => tracing::debug!(task = id, %error, "the server does not tell of a task"),
    }
    pending().await
}

/// The next that is told of the task.
async fn heard(told: &mut broadcast::Receiver<Value>, id: &str) -> Value {
    loop {
        match told.recv().await {
            Ok(task) if task.get("taskId").and_then(Value::as_str) == Some(id) => return task,
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return pending().await,
        }
    }
}

/// `tasks/get`.
async fn ask_after(
    server: &Server,
    link: &Link,
    request: &Request,
    id: &str,
) -> Result<Value, ToolCallError> {
    let mut lost = 0;
    loop {
        let get = GetTaskRequest::new(GetTaskParams::new(id));
        let error = match send(link, ClientRequest::GetTaskRequest(get)).await {
            Ok(state) => return Ok(serde_json::to_value(state).unwrap_or_default()),
            Err(error) => error,
        };
        let reason = match error {
            ServiceError::McpError(error) => {
                if let Some(reason) = invalid_answer_reason(&error) {
                    return Err(invalid_answer(server, request, reason));
                }
                let (message, code) = (error.message, error.code.0);
                let reason = format!("it does not say how its task is: {message} (code {code})");
                return Err(broken(server, request, reason));
            }
            ServiceError::TransportSend(error) => Failure::of(&error).into_reason(),
            // Why is said by the end of the connection, which the call waits for too.
            ServiceError::TransportClosed => link.ended().await,
            other => other.to_string(),
        };
        lost += 1;
        if lost == MOST_LOST || link.is_gone() {
            return Err(broken(server, request, reason));
        }
        tracing::debug!(
            server = server.config.name,
            task = id,
            reason,
            "asked after in vain"
        );
        sleep(INTERVAL).await;
    }
}

/// Answers what the task wants to know and was not told yet: it may go on asking until it has read that.
async fn answer(
    server: &Server,
    link: &Link,
    request: &Request,
    id: &str,
    state: &Value,
    answered: &mut HashSet<String>,
) -> Result<(), ToolCallError> {
    let asked = state.get("inputRequests").and_then(Value::as_object);
    let new: JsonObject = asked
        .into_iter()
        .flatten()
        .filter(|(key, _)| !answered.contains(*key))
        .map(|(key, question)| (key.clone(), question.clone()))
        .collect();
    if new.is_empty() {
        return Ok(());
    }
    answered.extend(new.keys().cloned());
    let wants = json!({"resultType": "input_required", "inputRequests": new});
    let within = Within::call(&request.caller);
    let known = match server.asks.answer_json(&wants, &within).await {
        Some(Ok(known)) => known,
        Some(Err(error)) => {
            let reason = format!("its task wants what it cannot have: {}", error.message);
            return Err(broken(server, request, reason));
        }
        None => return Ok(()),
    };
    let (Some(responses), _) = known.into_parts().await else {
        return Ok(());
    };
    let update = UpdateTaskRequest::new(UpdateTaskParams::new(id, responses));
    match send(link, ClientRequest::UpdateTaskRequest(update)).await {
        Ok(_) => Ok(()),
        Err(error) => {
            let reason = format!("its task did not take an answer: {error}");
            Err(broken(server, request, reason))
        }
    }
}

/// The error that the call would have been answered with.
fn failed(server: &Server, request: &Request, state: &Value) -> ToolCallError {
    let error = state.get("error");
    let said = |key: &str| error.and_then(|error| error.get(key));
    let message = said("message").and_then(Value::as_str);
    let message = message.or_else(|| state.get("statusMessage").and_then(Value::as_str));
    let message = message.unwrap_or("its task failed").to_owned();
    match said("code").and_then(Value::as_i64) {
        Some(code) => refused_with(server, request, code, message),
        None => broken(server, request, message),
    }
}

fn interval(state: &Value) -> Duration {
    let said = state.get("pollIntervalMs").and_then(Value::as_u64);
    said.map_or(INTERVAL, Duration::from_millis)
        .clamp(SHORTEST, LONGEST)
}

/// What a server says of a task, told once.
#[derive(Default)]
struct News {
    told: u32,
    last: Option<String>,
}

impl News {
    fn tell(&mut self, request: &Request, state: &Value) {
        let said = state.get("statusMessage").and_then(Value::as_str);
        let Some(said) = said.filter(|said| self.last.as_deref() != Some(*said)) else {
            return;
        };
        self.told += 1;
        self.last = Some(said.to_owned());
        request.progress.report(ToolProgress {
            // It has no measure; but it must grow.
            progress: f64::from(self.told),
            total: None,
            message: self.last.clone(),
        });
    }
}

/// Tells the server that nobody waits for the task any more.
struct CancelTask<'a> {
    peer: &'a Peer<RoleClient>,
    id: String,
    over: bool,
    /// The connection is not closed before the server was told.
    call: TaskTrackerToken,
}

impl Drop for CancelTask<'_> {
    fn drop(&mut self) {
        if self.over || self.peer.is_transport_closed() {
            return;
        }
        let (peer, call) = (self.peer.clone(), self.call.clone());
        let cancel = CancelTaskRequest::new(CancelTaskParams::new(std::mem::take(&mut self.id)));
        // Outside a runtime nobody is there to send it, nor to keep the connection.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let request = ClientRequest::CancelTaskRequest(cancel);
                let options = PeerRequestOptions::no_options();
                let told = async {
                    let handle = peer.send_request_with_option(request, options).await?;
                    handle.await_response().await
                };
                let _ = timeout(TO_CANCEL, told).await;
                drop(call);
            });
        }
    }
}
