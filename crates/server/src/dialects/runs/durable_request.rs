//! Durable runs of AI SDK and AG-UI clients. They belong to a session and continue without their
//! client.

use std::{collections::HashSet, sync::Arc};

use axum::http::StatusCode;
use switchboard_domain::{
    ApprovalDecision, Message, Principal, Role, SessionId, ToolHost, ToolOutput,
};

use crate::{
    App, Problem, RunSettings,
    dialects::{
        conversation::{invalid_messages, reject_nul_character},
        response::{
            paused_runs::{ClientToolResults, PausedRuns, no_waiting_run_error},
            run_response::RunResponse,
        },
        tools::client_tools::{ClientTools, DeclaredTool},
    },
    hub::{ConversationInput, RunHub, RunStartRequest, spawn_and_await},
};

/// Approval decisions of a client about tool calls of one run.
#[derive(Debug, PartialEq)]
pub(crate) struct ClientApprovalDecisions {
    pub(crate) run: String,
    /// The sequence number of the last event that the client received.
    pub(crate) last_seen: u64,
    /// Pairs of a tool call id and the approval decision about the tool call.
    pub(crate) calls: Vec<(String, ApprovalDecision)>,
}

/// The messages of a client request. They may be only a part of the session's messages.
pub(crate) trait ClientConversation {
    /// Returns the new user message. The server calls this method if the session exists.
    fn new_messages(&self) -> Result<Vec<Arc<Message>>, Problem>;

    /// Returns all messages. The server calls this method if the session does not exist yet.
    fn all_messages(&self) -> Result<Vec<Arc<Message>>, Problem>;

    /// Returns the last question if the client requests another answer to it, otherwise `None`.
    fn regeneration_request(&self) -> Result<Option<RegenerationRequest>, Problem> {
        Ok(None)
    }

    /// Returns the results of client tools at the end of the messages, each with its call id.
    fn client_tool_results(&self) -> Result<Vec<(String, ToolOutput)>, Problem> {
        Ok(Vec::new())
    }
}

/// A question to which the client requests another answer.
#[derive(Debug)]
pub(crate) struct RegenerationRequest {
    pub(crate) question: Arc<Message>,
    /// The client's user messages before the question. `None` stands for an invalid message.
    pub(crate) before: Vec<Option<Arc<Message>>>,
}

/// A parsed request of an AI SDK or AG-UI client, whose run is durable.
pub(crate) struct DurableRequest<'t, T> {
    pub(crate) session: SessionId,
    pub(crate) settings: RunSettings,
    pub(crate) decisions: Option<ClientApprovalDecisions>,
    pub(crate) tools: Vec<DeclaredTool>,
    pub(crate) conversation: &'t T,
}

impl<T: ClientConversation> DurableRequest<'_, T> {
    /// Starts a run in the session, or resumes the run that waits for the decisions or results in
    /// the request. The response ends when the run waits for an approval decision or a client's
    /// result.
    pub(crate) async fn start_or_resume_run(
        self,
        app: App,
        principal: Principal,
        paused_runs: PausedRuns,
    ) -> Result<RunResponse, Problem> {
        let is_known = app.hub().has_session(&principal, &self.session).await?;
        let results = if is_known {
            self.conversation.client_tool_results()?
        } else {
            // No run waits in a session that does not exist yet, so the tool results in the request
            // belong to earlier answers and are ignored.
            Vec::new()
        };
        if self.decisions.is_some() || !results.is_empty() {
            let (session, decisions) = (self.session, self.decisions);
            return resume_waiting_run(app, principal, paused_runs, session, decisions, results)
                .await;
        }
        self.settings.parameters.validate_parameters()?;
        let regeneration = self.conversation.regeneration_request()?;
        let messages = match &regeneration {
            _ if !is_known => self.conversation.all_messages()?,
            // A regeneration adds no message, because the session already contains the question.
            Some(_) => Vec::new(),
            // Of the client's messages, only new ones are used. The session already contains the
            // earlier ones with their reasoning, which is lost in the conversion of the client's
            // messages.
            None => self.conversation.new_messages()?,
        };
        let tools = ClientTools::new(&app, self.tools).await?;
        let keep = match regeneration.filter(|_| is_known) {
            None => None,
            Some(regeneration) => {
                let sessions = app.hub().session_store();
                let stored = sessions.load_messages(&principal, &self.session, 0).await?;
                Some(regeneration.count_messages_to_keep(&stored)?)
            }
        };
        // The client sent a new message, so the unfinished run of the session is cancelled.
        let hub = app.hub();
        if let Some(open) = hub.find_unfinished_run(&principal, &self.session).await? {
            hub.cancel_run(&principal, &open.id).await?;
        }
        let start = RunStartRequest {
            principal: principal.clone(),
            settings: self.settings,
            conversation: ConversationInput::Session {
                id: Some(self.session),
                create: true,
                keep,
                messages,
            },
            client_tools: tools.clone().map(|tools| tools as Arc<dyn ToolHost>),
            answer_form: None,
        };
        let started = hub.start_run(start).await?;
        let response = RunResponse::from_started_run(app, principal, &started);
        let response = response.end_when_run_waits();
        Ok(response.with_client_tools(tools, paused_runs))
    }
}

impl RegenerationRequest {
    /// Returns how many stored messages to keep: all up to and including the question.
    ///
    /// Later messages are deleted, so the question must be unambiguous. The client may send the
    /// whole session or only its end.
    fn count_messages_to_keep(&self, stored: &[Arc<Message>]) -> Result<u64, Problem> {
        let questions: Vec<(u64, &Message)> = (1_u64..)
            .zip(stored)
            .filter(|(_, message)| message.role == Role::User)
            .map(|(count, message)| (count, &**message))
            .collect();
        let is_same = |it: &&(u64, &Message)| *it.1 == *self.question;
        let mut same = questions.iter().filter(is_same);
        let found = match (same.next(), same.next()) {
            (None, _) => return Err(question_not_found_error()),
            (Some(only), None) => Some(only),
            _ => {
                let mut matches = questions
                    .windows(self.before.len() + 1)
                    .enumerate()
                    .filter(|(_, window)| self.matches_stored_questions(window));
                match (matches.next(), matches.next()) {
                    // Only one sequence of stored questions equals the client's questions, and it
                    // begins at the first question of the session. The question is therefore
                    // unambiguous.
                    (Some((0, window)), None) => window.last(),
                    // Several sequences of stored questions equal the client's questions, so the
                    // question is ambiguous.
                    (Some((0, _)), Some(_)) => None,
                    // The client may have sent only the end of the session. Then only the answer to
                    // the last stored question can be replaced without losing other messages.
                    _ => questions.last().filter(is_same),
                }
            }
        };
        let count = found.map(|(count, _)| *count);
        count.ok_or_else(ambiguous_question_error)
    }

    /// Returns whether the stored user messages in `window` equal the client's earlier user
    /// messages, followed by the question.
    fn matches_stored_questions(&self, window: &[(u64, &Message)]) -> bool {
        let before = self.before.iter().map(Option::as_deref);
        let all = before.chain([Some(&*self.question)]);
        all.eq(window.iter().map(|(_, message)| Some(*message)))
    }
}

fn question_not_found_error() -> Problem {
    Problem::state_conflict(
        "the message to regenerate is not in the session: read the session again, or send the \
         question as a new message",
    )
    .with_invalid_field("messages")
}

fn ambiguous_question_error() -> Problem {
    Problem::state_conflict(
        "the message to regenerate occurs more than once in the session: send all messages from \
         the beginning of the session up to this message, or send the question as a new message",
    )
    .with_invalid_field("messages")
}

/// Passes approval decisions and results of client tools to the run that waits for them. Returns a
/// response with the events after the last one that the client received.
async fn resume_waiting_run(
    app: App,
    principal: Principal,
    paused_runs: PausedRuns,
    session: SessionId,
    decisions: Option<ClientApprovalDecisions>,
    mut results: Vec<(String, ToolOutput)>,
) -> Result<RunResponse, Problem> {
    let hub = app.hub();
    let run = match &decisions {
        Some(decisions) => decisions.run.clone(),
        None => match hub.find_unfinished_run(&principal, &session).await? {
            Some(open) => open.id,
            None => return Err(no_waiting_run_error()),
        },
    };
    // A client may send any event number, so numbers after the run's last event are limited to it.
    let last = hub.run_view(&principal, &run).await?.run.last_event;
    let last_seen = decisions.as_ref().map_or(last, |it| it.last_seen.min(last));
    let (tools, calls) = paused_runs.client_tools_and_calls(&principal, &run).unzip();
    // Only results of waiting client tools are new. The client repeats results of server tools.
    results.retain(|(id, _)| calls.iter().flatten().any(|call| call == id));
    for (id, output) in &results {
        reject_nul_character(output).map_err(|why| {
            invalid_messages(format!("the result of the tool call `{id}`: {why}"))
        })?;
    }
    let results = ClientToolResults {
        run: run.clone(),
        results,
    };
    // The delivery runs in a task, so that it continues if the client disconnects. After a partial
    // delivery, the run would continue to wait.
    let (hub_copy, owner, paused) = (hub.clone(), principal.clone(), paused_runs.clone());
    let delivery = deliver_results_and_decisions(hub_copy, owner, paused, results, decisions);
    let (paused_at, decided) = spawn_and_await(delivery).await?;
    let reader = hub.event_reader(&principal, &run, 0).await?;
    let mut response = RunResponse::new(app, principal, run.as_str().into(), Some(session), reader);
    response.last_seen = paused_at.unwrap_or(last_seen);
    response.decided = decided;
    let response = response.end_when_run_waits();
    Ok(response.with_client_tools(tools, paused_runs))
}

/// Delivers the client's tool results and then its approval decisions to a run. Returns the number
/// of the last event in the client's previous response, or `None` if the client sent decisions.
/// Also returns the ids of the tool calls that got a result or a decision.
async fn deliver_results_and_decisions(
    hub: RunHub,
    principal: Principal,
    paused_runs: PausedRuns,
    results: ClientToolResults,
    decisions: Option<ClientApprovalDecisions>,
) -> Result<(Option<u64>, HashSet<String>), Problem> {
    let run = results.run.clone();
    let mut decided = HashSet::new();
    let mut paused_at = None;
    // If the client sends only approval decisions, the run remains in `paused_runs`.
    if decisions.is_none() || !results.results.is_empty() {
        let paused = paused_runs.take_paused_run(&principal, &results)?;
        paused_at = decisions.is_none().then_some(paused.last_seen);
        paused.deliver_results(results).await?;
        decided.extend(paused.calls.into_iter().map(|(_, call)| call));
    }
    for (call, decision) in decisions.into_iter().flat_map(|it| it.calls) {
        match hub.decide_call(&principal, &run, &call, decision).await {
            Ok(_) => drop(decided.insert(call)),
            // Another client decided first, or the run already continued. This is not an error,
            // because the response contains the events of the run.
            Err(problem) if problem.status == StatusCode::CONFLICT => {}
            Err(problem) => return Err(problem),
        }
    }
    Ok((paused_at, decided))
}
