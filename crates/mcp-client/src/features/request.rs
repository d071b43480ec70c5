//! One matter with one server, within its deadline: from the turn to the answer.
//!
//! Everything asked here only reads, so it is asked again where the connection breaks.

use std::{sync::Arc, time::Duration};

use rmcp::{
    model::{ClientRequest, ErrorCode, ErrorData, GetExtensions, ServerPeerInfo, ServerResult},
    service::{PeerRequestOptions, ServiceError},
};
use serde_json::Value;
use switchboard_domain::ToolCallError;
use tokio::{
    sync::SemaphorePermit,
    time::{Instant, sleep, timeout},
};

use crate::{
    calls::{
        attempt::CancelOnDrop,
        call,
        context::Caller,
        deadline::{Deadline, Limits},
    },
    features::error::FeatureError,
    host::McpHost,
    server::state::{Link, Server},
    server_requests::{
        elicitation::{Visited, Visits},
        responder::Known,
        within::Within,
    },
    transport::{
        http::Failure, instrumented_transport::is_unread, invalid_message::invalid_answer_reason,
    },
};

/// Rounds in which a server may ask for something before it answers, as for calls.
const MOST_ROUNDS: usize = 10;
/// How long the reason of a broken connection is waited for.
const POST_MORTEM: Duration = Duration::from_secs(1);
/// The first version with a capability for completions; servers before it may have some and do not say so.
const SAYS_COMPLETIONS: &str = "2025-03-26";

/// What a server has to offer for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Capability {
    Tools,
    Resources,
    Subscriptions,
    Prompts,
    Completions,
}

impl Capability {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Subscriptions => "resources.subscribe",
            Self::Prompts => "prompts",
            Self::Completions => "completions",
        }
    }

    fn is_offered(self, about: &ServerPeerInfo) -> bool {
        let offered = &about.capabilities;
        match self {
            Self::Tools => offered.tools.is_some(),
            Self::Resources => offered.resources.is_some(),
            Self::Subscriptions => {
                let resources = offered.resources.as_ref();
                resources.is_some_and(|resources| resources.subscribe == Some(true))
            }
            Self::Prompts => offered.prompts.is_some(),
            Self::Completions => {
                offered.completions.is_some() || about.protocol_version.as_str() < SAYS_COMPLETIONS
            }
        }
    }

    /// Fails if the server behind this connection says that it has nothing of the kind.
    pub(super) fn require(self, server: &Server, link: &Link) -> Result<(), FeatureError> {
        let about = link.peer.peer_info();
        if about.is_none_or(|about| self.is_offered(&about)) {
            return Ok(());
        }
        Err(self.missing(server))
    }

    pub(super) fn missing(self, server: &Server) -> FeatureError {
        FeatureError::Unsupported {
            server: server.config.name.clone(),
            capability: self.name(),
        }
    }
}

/// A matter with a server. Holds one of its turns.
pub(super) struct Asker<'a> {
    pub(super) server: &'a Arc<Server>,
    deadline: Deadline,
    retries: u32,
    _turn: SemaphorePermit<'a>,
}

/// What came of one attempt, where it is no answer.
pub(super) enum Trouble {
    Refused(ErrorData),
    /// Nothing is wrong with the connection; later it may do better.
    Busy(String),
    /// The connection is no good any more.
    Gone(String),
    /// Another attempt would do no better.
    Unavailable(String),
    /// An odd answer.
    Odd(String),
}

/// The server of this name.
pub(super) fn server<'a>(host: &'a McpHost, name: &str) -> Result<&'a Arc<Server>, FeatureError> {
    let servers = host.shared().servers;
    let found = servers.iter().find(|server| server.config.name == name);
    found.ok_or_else(|| FeatureError::UnknownServer {
        server: name.to_owned(),
        available: servers.iter().map(|s| s.config.name.clone()).collect(),
    })
}

/// How long one matter with a server may take.
pub(super) fn patience(host: &McpHost, server: &Server) -> Duration {
    let configured = server.config.call_timeout;
    configured.unwrap_or(host.shared().options.call_timeout)
}

impl<'a> Asker<'a> {
    /// Finds the server and waits for a turn.
    pub(super) async fn new(host: &'a McpHost, name: &str) -> Result<Asker<'a>, FeatureError> {
        let server = server(host, name)?;
        let limits = Limits {
            total: patience(host, server),
            idle: None,
        };
        let deadline = Deadline::new(Instant::now(), limits);
        let turn = call::turn(server, &deadline).await;
        Ok(Self {
            server,
            retries: host.shared().options.retries,
            _turn: turn.map_err(|error| unavailable(server, error))?,
            deadline,
        })
    }

    /// A connection.
    pub(super) async fn link(&self, broken: Option<&Arc<Link>>) -> Result<Arc<Link>, FeatureError> {
        let link = call::link_within(self.server, &self.deadline, broken).await;
        link.map_err(|error| unavailable(self.server, error))
    }

    /// Asks, and gives the result as JSON: what rmcp read is written again, and what it could not read is
    /// there as it came.
    pub(super) async fn ask(
        &mut self,
        capability: Capability,
        mut request: ClientRequest,
    ) -> Result<Value, FeatureError> {
        let method = request.method().to_owned();
        // What distinguishes it from others of its method: a page by its cursor.
        let params = page_key(&request);
        let caller = Arc::<Caller>::default();
        request.extensions_mut().insert(Arc::clone(&caller));
        let mut broken: Option<Arc<Link>> = None;
        let mut attempts: u32 = 0;
        loop {
            let link = self.link(broken.as_ref()).await?;
            capability.require(self.server, &link)?;
            let known = params.as_ref();
            if let Some(page) = known.and_then(|params| self.server.lists.get(&method, params)) {
                return Ok(page);
            }
            let asked = self.server.lists.age();
            attempts += 1;
            let held = {
                let mut attempt = Box::pin(attempt(self.server, &link, &mut request, &caller));
                let questions = self.server.questions(&caller);
                let alarms = &self.server.alarms;
                self.deadline
                    .hold(alarms, questions, attempt.as_mut())
                    .await
            };
            let trouble = match held {
                Ok(Ok(result)) => {
                    if let Some(params) = params {
                        self.server.lists.keep(&method, params, &result, asked);
                    }
                    return Ok(result);
                }
                Ok(Err(trouble)) => trouble,
                Err(after) => {
                    link.silence.notify_one();
                    return Err(FeatureError::Timeout {
                        server: self.server.config.name.clone(),
                        request: method,
                        after,
                    });
                }
            };
            let again = match &trouble {
                Trouble::Busy(_) => true,
                Trouble::Gone(_) => {
                    broken = Some(link);
                    true
                }
                _ => false,
            };
            let pause = call::backoff(attempts);
            if !again || attempts > self.retries || Instant::now() + pause >= self.deadline.until()
            {
                return Err(trouble.into_error(self.server, capability, &method));
            }
            tracing::debug!(server = self.server.config.name, method, "asked again");
            sleep(pause).await;
        }
    }
}

/// What a page of a list is kept by; `None` for what is not kept.
fn page_key(request: &ClientRequest) -> Option<String> {
    let cursor = match request {
        ClientRequest::ListToolsRequest(request) => request.params.as_ref(),
        ClientRequest::ListPromptsRequest(request) => request.params.as_ref(),
        ClientRequest::ListResourcesRequest(request) => request.params.as_ref(),
        ClientRequest::ListResourceTemplatesRequest(request) => request.params.as_ref(),
        _ => return None,
    };
    let cursor = cursor.and_then(|params| params.cursor.as_deref());
    // No cursor is another one than an empty one.
    Some(cursor.map_or_else(String::new, |cursor| format!("@{cursor}")))
}

/// The errors of a call that has not left.
fn unavailable(server: &Server, error: ToolCallError) -> FeatureError {
    FeatureError::Unavailable {
        server: server.config.name.clone(),
        reason: match error {
            ToolCallError::Unavailable { reason, .. } => reason,
            other => server.redactor.clean(other.to_string()),
        },
    }
}

impl Trouble {
    /// What an error of the connection means. It is told the connection, if it will not recover.
    pub(super) async fn of(server: &Server, link: &Link, error: ServiceError) -> Self {
        match error {
            ServiceError::McpError(error)
                if is_unread(&error) && !server.config.transport.is_stdio() =>
            {
                let reason = format!("{} (code {})", error.message, error.code.0);
                Self::stale(server, link, reason)
            }
            ServiceError::McpError(error) if invalid_answer_reason(&error).is_some() => {
                Self::Odd(error.message.into_owned())
            }
            ServiceError::McpError(error) => Self::Refused(error),
            ServiceError::TransportSend(error) => match Failure::of(&error) {
                Failure::Busy { reason }
                | Failure::Unknown {
                    reason,
                    spoilt: false,
                } => Self::Busy(reason),
                // Its end says why a pipe cannot be written to.
                Failure::Unknown { reason, .. } if server.config.transport.is_stdio() => {
                    Self::Gone(last_word(link, reason).await)
                }
                Failure::NotDone { reason } | Failure::Unknown { reason, .. } => {
                    Self::stale(server, link, reason)
                }
                failure @ (Failure::Unauthorized { .. } | Failure::Login { .. }) => {
                    Self::Unavailable(failure.into_reason())
                }
            },
            ServiceError::TransportClosed => {
                Self::Gone(last_word(link, "it closed the connection".to_owned()).await)
            }
            ServiceError::Cancelled { reason } => {
                let why = reason.map_or_else(String::new, |reason| format!(": {reason}"));
                Self::Odd(format!("it cancelled the request{why}"))
            }
            other => Self::Odd(other.to_string()),
        }
    }

    fn stale(server: &Server, link: &Link, reason: String) -> Self {
        link.stale
            .send_replace(Some(server.redactor.clean(&reason)));
        Self::Gone(reason)
    }

    pub(super) fn into_error(
        self,
        server: &Server,
        capability: Capability,
        method: &str,
    ) -> FeatureError {
        let (name, request) = (server.config.name.clone(), method.to_owned());
        let clean = |reason: String| server.redactor.clean(reason);
        match self {
            Self::Refused(error) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                capability.missing(server)
            }
            Self::Refused(error) => FeatureError::Refused {
                server: name,
                request,
                code: i64::from(error.code.0),
                message: clean(error.message.into_owned()),
            },
            Self::Busy(reason) => FeatureError::Unavailable {
                server: name,
                reason: clean(format!("it takes no requests now ({reason})")),
            },
            Self::Unavailable(reason) => FeatureError::Unavailable {
                server: name,
                reason: clean(reason),
            },
            Self::Gone(reason) => FeatureError::Broken {
                server: name,
                request,
                reason: clean(reason),
            },
            Self::Odd(reason) => FeatureError::Malformed {
                server: name,
                request,
                reason: clean(reason),
            },
        }
    }
}

/// Why the connection ended, if that is said soon.
async fn last_word(link: &Link, otherwise: String) -> String {
    let said = timeout(POST_MORTEM, link.ended()).await;
    said.unwrap_or(otherwise)
}

async fn attempt(
    server: &Server,
    link: &Link,
    request: &mut ClientRequest,
    caller: &Arc<Caller>,
) -> Result<Value, Trouble> {
    tokio::select! {
        // An answer that came before the end counts.
        biased;
        answer = exchange(server, link, request, caller) => answer,
        reason = link.ended() => Err(Trouble::Gone(reason)),
    }
}

/// Asks, and asks again as long as the server wants something first.
async fn exchange(
    server: &Server,
    link: &Link,
    request: &mut ClientRequest,
    caller: &Arc<Caller>,
) -> Result<Value, Trouble> {
    let mut visited = Visited::default();
    for _ in 0..MOST_ROUNDS {
        let error = match send(link, request.clone()).await {
            Ok(result) => {
                let result = serde_json::to_value(result).unwrap_or_default();
                let within = Within::call(caller);
                match server.asks.answer_json(&result, &within).await {
                    None => return Ok(result),
                    Some(Ok(known)) => {
                        tell(request, known).await;
                        continue;
                    }
                    Some(Err(error)) => return Err(Trouble::Refused(error)),
                }
            }
            Err(error) => error,
        };
        let Some(visits) = Visits::of(&error) else {
            return Err(Trouble::of(server, link, error).await);
        };
        let within = Within::call(caller);
        let done = server.asks.visit(visits, &mut visited, &within).await;
        done.map_err(Trouble::Refused)?;
    }
    Err(Trouble::Odd(format!(
        "it wanted something first {MOST_ROUNDS} times"
    )))
}

/// Puts what the server wanted to know into the request that is made again.
async fn tell(request: &mut ClientRequest, known: Known) {
    let (responses, state) = known.into_parts().await;
    match request {
        ClientRequest::ReadResourceRequest(request) => {
            request.params.input_responses = responses;
            request.params.request_state = state;
        }
        ClientRequest::GetPromptRequest(request) => {
            request.params.input_responses = responses;
            request.params.request_state = state;
        }
        // Before anything else a server may not ask. It hears the same again, at most ten times.
        _ => {}
    }
}

/// Sends one request and waits. Dropping the future tells the server that it is cancelled.
pub(crate) async fn send(
    link: &Link,
    request: ClientRequest,
) -> Result<ServerResult, ServiceError> {
    let options = PeerRequestOptions::no_options();
    let handle = link.peer.send_request_with_option(request, options).await?;
    let mut unless_answered = CancelOnDrop {
        peer: &link.peer,
        id: handle.id.clone(),
        answered: false,
        call: link.calls.token(),
    };
    let answer = handle.await_response().await;
    unless_answered.answered = true;
    answer
}
