//! Durable runs in a session, which continue without their client: those of the AI SDK and AG-UI.

use std::{collections::HashSet, sync::Arc};

use axum::http::StatusCode;
use serde_json::Value;
use switchboard_domain::{ApprovalDecision, Message, Principal, Role, SessionId, ToolOutput};

use crate::dialects::{
    tools::client_tools::ClientTools,
    conversation::{bad_messages, check_nul},
    response::run_response::RunResponse,
    response::paused_runs::{Results, PausedRuns, too_late},
};
use crate::{
    App, Problem, Wish,
    hub::{Hub, Start, Talk},
    read::check_id,
};

/// Decisions about waiting calls of a run.
#[derive(Debug, PartialEq)]
pub(crate) struct Decisions {
    pub(crate) run: String,
    /// The number of the last event that the client received.
    pub(crate) seen: u64,
    /// The decisions by call id.
    pub(crate) said: Vec<(String, ApprovalDecision)>,
}

/// The client's view of its conversation.
pub(crate) trait ClientConversation {
    /// The new message, if the session is known.
    fn newest(&self) -> Result<Vec<Arc<Message>>, Problem>;

    /// The whole conversation, if the session is unknown.
    fn conversation(&self) -> Result<Vec<Arc<Message>>, Problem>;

    /// The last question, if its answer is requested again.
    fn again(&self) -> Result<Option<Regeneration>, Problem> {
        Ok(None)
    }

    /// The results of client tools at the end, by call id.
    fn results(&self) -> Result<Vec<(String, ToolOutput)>, Problem> {
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
    pub(crate) wish: Wish,
    pub(crate) words: Option<Decisions>,
    /// The client tools: names, descriptions, schemas.
    pub(crate) tools: Vec<(String, String, Value)>,
    pub(crate) talk: &'t T,
}

impl<T: ClientConversation> DurableRequest<'_, T> {
    /// Begins a run in the session, or resumes the waiting run that the request is for. The
    /// response ends when the run waits.
    pub(crate) async fn begin(
        self,
        app: App,
        principal: Principal,
        waiting: PausedRuns,
    ) -> Result<RunResponse<()>, Problem> {
        let known = app.hub().sessions().get(&principal, &self.session).await?;
        let results = match known {
            Some(_) => self.talk.results()?,
            // Of runs in another process.
            None => Vec::new(),
        };
        if self.words.is_some() || !results.is_empty() {
            let answers = RunInput {
                session: self.session,
                words: self.words,
                results,
            };
            return answers.go_on(app, principal, waiting).await;
        }
        self.wish.parameters.check()?;
        let again = self.talk.again()?;
        let messages = match (&known, &again) {
            (None, _) => self.talk.conversation()?,
            // The question is in the session and is answered again.
            (Some(_), Some(_)) => Vec::new(),
            // The client's copy of the messages is ignored: the session has them with their
            // provider state.
            (Some(_), None) => self.talk.newest()?,
        };
        let tools = ClientTools::new(&app, self.tools).await?;
        let keep = match again.filter(|_| known.is_some()) {
            None => None,
            Some(again) => {
                let said = app.hub().sessions();
                let said = said.messages(&principal, &self.session, 0).await?;
                Some(again.behind(&said)?)
            }
        };
        end_what_is_open(&app, &principal, &self.session).await?;
        let start = Start {
            principal: principal.clone(),
            wish: self.wish,
            talk: Talk::Session {
                id: Some(self.session),
                create: true,
                keep,
                messages,
            },
            shape: tools.as_ref().map(ClientTools::shape),
        };
        let started = app.hub().start(start).await?;
        let telling = RunResponse::of(app, principal, &started, ());
        Ok(telling.until_waiting().with_client(tools, waiting))
    }
}

impl Regeneration {
    /// Returns the position after the question in a session.
    ///
    /// Later messages are removed, so the question must be identified: a client may have the whole
    /// session or only its end.
    fn behind(&self, said: &[Arc<Message>]) -> Result<u64, Problem> {
        let places = (1_u64..).zip(said);
        let asked: Vec<(u64, &Message)> = places
            .filter(|(_, message)| message.role == Role::User)
            .map(|(behind, message)| (behind, &**message))
            .collect();
        let is_it = |it: &&(u64, &Message)| *it.1 == *self.question;
        let mut same = asked.iter().filter(is_it);
        let found = match (same.next(), same.next()) {
            (None, _) => return Err(not_as_said()),
            (Some(only), None) => Some(only),
            _ => {
                let mut fitting = asked
                    .windows(self.before.len() + 1)
                    .enumerate()
                    .filter(|(_, these)| self.is_like(these));
                match (fitting.next(), fitting.next()) {
                    // The whole session, from its beginning.
                    (Some((0, these)), None) => these.last(),
                    // Several questions match.
                    (Some((0, _)), Some(_)) => None,
                    // Only its own answer is removed.
                    _ => asked.last().filter(is_it),
                }
            }
        };
        found.map(|(behind, _)| *behind).ok_or_else(which_is_meant)
    }

    /// Returns whether the client's messages up to the question equal these.
    fn is_like(&self, these: &[(u64, &Message)]) -> bool {
        let before = self.before.iter().map(Option::as_deref);
        let all = before.chain([Some(&*self.question)]);
        all.eq(these.iter().map(|(_, message)| Some(*message)))
    }
}

fn not_as_said() -> Problem {
    Problem::conflict(
        "the message whose answer is wanted anew is not in the session as the client has it: read the session again, or \
         ask the question anew",
    )
    .at("messages")
}

fn which_is_meant() -> Problem {
    Problem::conflict(
        "the message whose answer is wanted anew is in the session more than once, and the messages do not tell which one is \
         meant: send all messages from the beginning of the session up to it, or ask the question anew",
    )
    .at("messages")
}

/// Ends unfinished runs of the session, because the client sent a new message.
async fn end_what_is_open(
    app: &App,
    principal: &Principal,
    session: &SessionId,
) -> Result<(), Problem> {
    if let Some(open) = app.hub().open_run(principal, session).await? {
        app.hub().cancel(principal, &open.run).await?;
    }
    Ok(())
}

/// The input that a run waits for: decisions, and results of client tools.
struct RunInput {
    session: SessionId,
    words: Option<Decisions>,
    results: Vec<(String, ToolOutput)>,
}

impl RunInput {
    /// Applies the decisions and results, and returns the following events.
    async fn go_on(
        self,
        app: App,
        principal: Principal,
        waiting: PausedRuns,
    ) -> Result<RunResponse<()>, Problem> {
        let hub = app.hub();
        let run = match &self.words {
            Some(words) => words.run.clone(),
            None => match hub.open_run(&principal, &self.session).await? {
                Some(open) => open.run.to_string(),
                None => return Err(too_late()),
            },
        };
        check_id(&run, || Problem::no_run(&run))?;
        // No client has received later events.
        let last = hub.view(&principal, &run).await?.run.last_event;
        let seen = self
            .words
            .as_ref()
            .map_or(last, |words| words.seen.min(last));
        let (tools, calls) = waiting.look(&principal, &run).unzip();
        // Other results are of server tools, and the client received them from the server.
        let mut results = self.results;
        let is_asked = |id: &String| calls.iter().flatten().any(|call| call == id);
        results.retain(|(id, _)| is_asked(id));
        for (id, output) in &results {
            let place = format!("the result of the tool call `{id}`");
            check_nul(output).map_err(|why| bad_messages(format!("{place}: {why}")))?;
        }
        let all = InputDelivery {
            hub: hub.clone(),
            principal: principal.clone(),
            waiting: waiting.clone(),
            results: Results {
                run: run.clone(),
                results,
            },
            words: self.words,
        };
        // Applied completely even if the client disconnects, because a partial set would leave the
        // run waiting.
        let said = tokio::spawn(all.say()).await;
        let (held_at, decided) = said.map_err(|_| Problem::internal())??;
        let reader = hub.reader(&principal, &run, 0).await?;
        let session = Some(self.session);
        let telling = RunResponse::all(app, principal, run.as_str().into(), session, reader, ());
        Ok(telling
            .after(held_at.unwrap_or(seen), decided)
            .until_waiting()
            .with_client(tools, waiting))
    }
}

/// All decisions and results for a run.
struct InputDelivery {
    hub: Hub,
    principal: Principal,
    waiting: PausedRuns,
    results: Results,
    words: Option<Decisions>,
}

impl InputDelivery {
    /// Applies results first, then decisions. Returns the last event number of the client if there
    /// are only results, and the calls that continue.
    async fn say(self) -> Result<(Option<u64>, HashSet<String>), Problem> {
        let run = self.results.run.clone();
        let mut decided = HashSet::new();
        let mut held_at = None;
        // A decision may arrive before the client finishes its calls.
        if self.words.is_none() || !self.results.results.is_empty() {
            let held = self.waiting.take(&self.principal, &self.results)?;
            if self.words.is_none() {
                held_at = Some(held.seen);
            }
            held.let_go(&self.hub, self.results).await?;
            decided.extend(held.calls.into_iter().map(|(_, call)| call));
        }
        for (call, word) in self.words.into_iter().flat_map(|words| words.said) {
            match self.hub.decide(&self.principal, &run, &call, word).await {
                Ok(_) => drop(decided.insert(call)),
                // Another client decided, or the run continued. Its events follow.
                Err(problem) if problem.status == StatusCode::CONFLICT => {}
                Err(problem) => return Err(problem),
            }
        }
        Ok((held_at, decided))
    }
}

/// Rejects texts that a store cannot contain. `place` names the field.
pub(crate) fn check_word(place: &str, word: &ApprovalDecision) -> Result<(), String> {
    match word {
        ApprovalDecision::Allow {
            input: Some(input), ..
        } => check_nul(input).map_err(|why| format!("{place}: its input: {why}")),
        ApprovalDecision::Deny {
            reason: Some(reason),
            ..
        } => check_nul(reason).map_err(|why| format!("{place}: its reason: {why}")),
        _ => Ok(()),
    }
}
