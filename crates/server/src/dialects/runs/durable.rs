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
        conversation::{bad_messages, check_nul},
        response::{
            paused_runs::{ClientResults, PausedRuns, not_waiting},
            run_response::RunResponse,
        },
        tools::client_tools::{ClientTools, DeclaredTool},
    },
    hub::{ConversationInput, Hub, StartRequest},
};

/// Decisions about waiting calls of a run.
#[derive(Debug, PartialEq)]
pub(crate) struct Decisions {
    pub(crate) run: String,
    /// The number of the last event that the client received.
    pub(crate) last_seen: u64,
    /// The decisions by call id.
    pub(crate) calls: Vec<(String, ApprovalDecision)>,
}

/// The client's view of its conversation.
pub(crate) trait ClientConversation {
    /// Returns the new message, if the session is known.
    fn new_messages(&self) -> Result<Vec<Arc<Message>>, Problem>;

    /// Returns the whole conversation, if the session is unknown.
    fn all_messages(&self) -> Result<Vec<Arc<Message>>, Problem>;

    /// Returns the last question, if its answer is requested again.
    fn regeneration(&self) -> Result<Option<Regeneration>, Problem> {
        Ok(None)
    }

    /// Returns the results of client tools at the end, by call id.
    fn client_results(&self) -> Result<Vec<(String, ToolOutput)>, Problem> {
        Ok(Vec::new())
    }
}

/// A question whose answer is requested again.
#[derive(Debug)]
pub(crate) struct Regeneration {
    pub(crate) question: Arc<Message>,
    /// The user messages before it, as far as the client has them. `None` marks an unreadable
    /// message.
    pub(crate) before: Vec<Option<Arc<Message>>>,
}

/// The result of a parsed request.
pub(crate) struct DurableRequest<'t, T> {
    pub(crate) session: SessionId,
    pub(crate) settings: RunSettings,
    pub(crate) decisions: Option<Decisions>,
    pub(crate) tools: Vec<DeclaredTool>,
    pub(crate) conversation: &'t T,
}

impl<T: ClientConversation> DurableRequest<'_, T> {
    /// Starts a run in the session, or resumes the waiting run that the request is for. The
    /// response ends when the run waits.
    pub(crate) async fn start(
        self,
        app: App,
        principal: Principal,
        paused_runs: PausedRuns,
    ) -> Result<RunResponse, Problem> {
        let known = app.hub().sessions().get(&principal, &self.session).await?;
        let results = match known {
            Some(_) => self.conversation.client_results()?,
            // Of runs in another process.
            None => Vec::new(),
        };
        if self.decisions.is_some() || !results.is_empty() {
            let (session, decisions) = (self.session, self.decisions);
            return apply_input(app, principal, paused_runs, session, decisions, results).await;
        }
        self.settings.parameters.check()?;
        let regeneration = self.conversation.regeneration()?;
        let messages = match (&known, &regeneration) {
            (None, _) => self.conversation.all_messages()?,
            // The question is in the session and is answered again.
            (Some(_), Some(_)) => Vec::new(),
            // The client's copy of the messages is ignored: the session has them with their
            // provider state.
            (Some(_), None) => self.conversation.new_messages()?,
        };
        let tools = ClientTools::new(&app, self.tools).await?;
        let keep = match regeneration.filter(|_| known.is_some()) {
            None => None,
            Some(regeneration) => {
                let sessions = app.hub().sessions();
                let stored = sessions.messages(&principal, &self.session, 0).await?;
                Some(regeneration.messages_to_keep(&stored)?)
            }
        };
        cancel_open_run(&app, &principal, &self.session).await?;
        let start = StartRequest {
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
        let started = app.hub().start(start).await?;
        let response = RunResponse::of_started(app, principal, &started);
        Ok(response
            .ending_when_waiting()
            .with_client_tools(tools, paused_runs))
    }
}

impl Regeneration {
    /// Returns the number of messages of a session up to and including the question.
    ///
    /// Later messages are removed, so the question must be identified: a client may have the whole
    /// session or only its end.
    fn messages_to_keep(&self, stored: &[Arc<Message>]) -> Result<u64, Problem> {
        let questions: Vec<(u64, &Message)> = (1_u64..)
            .zip(stored)
            .filter(|(_, message)| message.role == Role::User)
            .map(|(count, message)| (count, &**message))
            .collect();
        let is_same = |it: &&(u64, &Message)| *it.1 == *self.question;
        let mut same = questions.iter().filter(is_same);
        let found = match (same.next(), same.next()) {
            (None, _) => return Err(question_not_found()),
            (Some(only), None) => Some(only),
            _ => {
                let mut matches = questions
                    .windows(self.before.len() + 1)
                    .enumerate()
                    .filter(|(_, window)| self.matches(window));
                match (matches.next(), matches.next()) {
                    // The client has the session from its beginning.
                    (Some((0, window)), None) => window.last(),
                    // Several questions match.
                    (Some((0, _)), Some(_)) => None,
                    // The last question loses only its own answer.
                    _ => questions.last().filter(is_same),
                }
            }
        };
        found
            .map(|(count, _)| *count)
            .ok_or_else(question_ambiguous)
    }

    /// Returns whether these messages equal the client's user messages up to the question.
    fn matches(&self, window: &[(u64, &Message)]) -> bool {
        let before = self.before.iter().map(Option::as_deref);
        let all = before.chain([Some(&*self.question)]);
        all.eq(window.iter().map(|(_, message)| Some(*message)))
    }
}

fn question_not_found() -> Problem {
    Problem::conflict(
        "the message to answer again differs from the session's messages: read the session again, \
         or send the question as a new message",
    )
    .at("messages")
}

fn question_ambiguous() -> Problem {
    Problem::conflict(
        "the message to answer again is in the session more than once: send all messages from the \
         beginning of the session up to it, or send the question as a new message",
    )
    .at("messages")
}

/// Ends unfinished runs of the session, because the client sent a new message.
async fn cancel_open_run(
    app: &App,
    principal: &Principal,
    session: &SessionId,
) -> Result<(), Problem> {
    if let Some(open) = app.hub().unfinished_run(principal, session).await? {
        app.hub().cancel(principal, &open.id).await?;
    }
    Ok(())
}

/// Applies the input that a run waits for: decisions, and results of client tools. Returns the
/// following events.
async fn apply_input(
    app: App,
    principal: Principal,
    paused_runs: PausedRuns,
    session: SessionId,
    decisions: Option<Decisions>,
    mut results: Vec<(String, ToolOutput)>,
) -> Result<RunResponse, Problem> {
    let hub = app.hub();
    let run = match &decisions {
        Some(decisions) => decisions.run.clone(),
        None => match hub.unfinished_run(&principal, &session).await? {
            Some(open) => open.id,
            None => return Err(not_waiting()),
        },
    };
    // No client has received later events.
    let last = hub.view(&principal, &run).await?.run.last_event;
    let last_seen = decisions.as_ref().map_or(last, |it| it.last_seen.min(last));
    let (tools, calls) = paused_runs.tools_and_calls(&principal, &run).unzip();
    // Other results are of server tools, and the client received them from the server.
    results.retain(|(id, _)| calls.iter().flatten().any(|call| call == id));
    for (id, output) in &results {
        check_nul(output)
            .map_err(|why| bad_messages(format!("the result of the tool call `{id}`: {why}")))?;
    }
    let results = ClientResults {
        run: run.clone(),
        results,
    };
    // Applied completely even if the client disconnects, because a partial set would leave the run
    // waiting.
    let input = deliver_input(
        hub.clone(),
        principal.clone(),
        paused_runs.clone(),
        results,
        decisions,
    );
    let delivered = tokio::spawn(input).await;
    let (paused_at, decided) = delivered.map_err(|_| Problem::internal())??;
    let reader = hub.reader(&principal, &run, 0).await?;
    let mut response = RunResponse::new(app, principal, run.as_str().into(), Some(session), reader);
    response.last_seen = paused_at.unwrap_or(last_seen);
    response.decided = decided;
    Ok(response
        .ending_when_waiting()
        .with_client_tools(tools, paused_runs))
}

/// Delivers results, then decisions. Returns the last event number of the client if there are only
/// results, and the calls that continue.
async fn deliver_input(
    hub: Hub,
    principal: Principal,
    paused_runs: PausedRuns,
    results: ClientResults,
    decisions: Option<Decisions>,
) -> Result<(Option<u64>, HashSet<String>), Problem> {
    let run = results.run.clone();
    let mut decided = HashSet::new();
    let mut paused_at = None;
    // A decision may arrive before the client finishes its calls.
    if decisions.is_none() || !results.results.is_empty() {
        let paused = paused_runs.take(&principal, &results)?;
        paused_at = decisions.is_none().then_some(paused.last_seen);
        paused.deliver(results).await?;
        decided.extend(paused.calls.into_iter().map(|(_, call)| call));
    }
    for (call, decision) in decisions.into_iter().flat_map(|it| it.calls) {
        match hub.decide(&principal, &run, &call, decision).await {
            Ok(_) => drop(decided.insert(call)),
            // Another client decided, or the run continued. Its events follow.
            Err(problem) if problem.status == StatusCode::CONFLICT => {}
            Err(problem) => return Err(problem),
        }
    }
    Ok((paused_at, decided))
}

/// Rejects texts that a store cannot contain. `field` names the field in the error.
pub(crate) fn check_decision(field: &str, decision: &ApprovalDecision) -> Result<(), String> {
    check_nul(decision).map_err(|why| format!("{field}: {why}"))
}
