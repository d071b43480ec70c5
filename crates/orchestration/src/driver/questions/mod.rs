//! Questions of tool servers (MCP elicitations) during tool calls, published as events of a run.
//!
//! One tool host serves many runs. A question belongs to the call that the server names
//! ([`Elicitation::call`]). If the server names no call, the question is shown only if all calls
//! that may have caused it ([`Elicitation::candidates`]) have the same principal and the same run.
//! Otherwise the wrong person could see the question. The server then gets `cancel` as the answer,
//! and the runs get a warning.

mod answer_validation;

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use switchboard_domain::{
    CandidateToolCalls, Elicitation, ElicitationAnswer, ElicitationForm, Elicitor, Principal,
    Warning, WarningKind,
};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::event_publisher::EventPublisher;
use crate::{QuestionAction, RunEventKind, tools::arguments::ContextInjection};

/// Maximum number of ended tool calls that the registry stores, each with its principal and run. A
/// server may still ask a question about a call that was cancelled or timed out shortly before.
const MAX_ENDED_CALLS: usize = 1024;

/// The open questions (MCP elicitations) of tool servers in all runs of a program. Cheap to clone.
///
/// The tool host uses this value as its [`Elicitor`], and the agents must have the same value
/// ([`Agent::with_question_registry`]). A question is published as [`RunEventKind::QuestionAsked`]
/// in the run of its tool call. [`RunEventKind::QuestionAnswered`] follows after an answer
/// ([`Questions::answer_question`]), or when the question ends without an answer.
///
/// [`Agent::with_question_registry`]: crate::Agent::with_question_registry
#[derive(Clone, Default, derive_more::Debug)]
#[debug("Questions {{ open: {}, .. }}", self.lock_registry().open.len())]
pub struct Questions(Arc<Mutex<QuestionRegistry>>);

#[derive(Default)]
struct QuestionRegistry {
    /// Running tool calls, by their idempotency key.
    calls: HashMap<String, RunningCall>,
    /// Ended tool calls, oldest first: the idempotency key, the principal and the run of each call.
    ended: VecDeque<(String, CallOwner)>,
    /// Questions that are not answered and not withdrawn, oldest first.
    open: Vec<PendingQuestion>,
}

/// The principal and the run that a tool call belongs to.
#[derive(Clone, PartialEq, Eq)]
struct CallOwner {
    principal: Principal,
    run: Arc<str>,
}

/// A running tool call whose server may ask questions.
#[derive(Clone)]
struct RunningCall {
    publisher: EventPublisher,
    owner: CallOwner,
    tool_use: String,
    context: ContextInjection,
    /// Whether a warning was published that this call may have caused a question that no person
    /// saw. Each call gets at most one such warning.
    is_warned: bool,
}

struct PendingQuestion {
    id: String,
    key: String,
    call: RunningCall,
    question: Elicitation,
    answer: oneshot::Sender<ElicitationAnswer>,
}

/// A question of a tool server that waits for an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenQuestion {
    /// Id of the question, for [`Questions::answer_question`].
    pub id: String,
    /// The question and the tool call that it belongs to.
    pub question: Elicitation,
}

/// An error about a question that does not exist in the run or is no longer open.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("run `{run}` has no open question `{id}`")]
pub struct NoSuchQuestion {
    /// Id of the run in which the question was searched.
    pub run: String,
    /// Id of the question that was searched.
    pub id: String,
}

impl Questions {
    /// Answers a question in a run. Only the first answer has an effect; a second answer returns an
    /// error.
    pub fn answer_question(
        &self,
        run: &str,
        id: &str,
        answer: ElicitationAnswer,
    ) -> Result<(), NoSuchQuestion> {
        let action = QuestionAction::from(&answer);
        let found =
            self.end_questions(action, |open| open.id == id && *open.call.owner.run == *run);
        let question = found.into_iter().next().ok_or_else(|| NoSuchQuestion {
            run: run.to_owned(),
            id: id.to_owned(),
        })?;
        // Sending fails if the tool call has just ended. The answer is then discarded.
        let _ = question.answer.send(answer);
        Ok(())
    }

    /// Returns the unanswered questions of a run, oldest first.
    pub fn open_questions(&self, run: &str) -> Vec<OpenQuestion> {
        let registry = self.lock_registry();
        let pending = registry.open.iter();
        let of_run = pending.filter(|open| *open.call.owner.run == *run);
        let open = of_run.map(|open| OpenQuestion {
            id: open.id.clone(),
            question: open.question.clone(),
        });
        open.collect()
    }

    /// Registers a running tool call until the returned guard is dropped.
    pub(crate) fn register_call(
        &self,
        key: &str,
        tool_use: &str,
        principal: Principal,
        publisher: &EventPublisher,
        context: &ContextInjection,
    ) -> ToolCallRegistration {
        let call = RunningCall {
            publisher: publisher.clone(),
            owner: CallOwner {
                principal,
                run: publisher.run_id(),
            },
            tool_use: tool_use.to_owned(),
            context: context.clone(),
            is_warned: false,
        };
        self.lock_registry().calls.insert(key.to_owned(), call);
        ToolCallRegistration {
            questions: self.clone(),
            key: key.to_owned(),
        }
    }

    /// Publishes a question in the run of its tool call. If that is impossible, the error is the
    /// reason as a text for the log.
    fn publish_question(
        &self,
        id: &str,
        elicitation: &Elicitation,
        answer: oneshot::Sender<ElicitationAnswer>,
    ) -> Result<(), &'static str> {
        let mut registry = self.lock_registry();
        let candidates = &elicitation.candidates;
        let named = elicitation.call.as_deref();
        let Some(key) = named.or_else(|| registry.find_candidate_call(candidates)) else {
            registry.warn_about_hidden_question(&elicitation.server, candidates);
            return Err("its call is unknown");
        };
        let Some(call) = registry.calls.get(key).cloned() else {
            return Err("its call is not running");
        };
        let question = redact_question(elicitation, &call.context);
        let event = RunEventKind::QuestionAsked {
            id: id.to_owned(),
            question: Box::new(question.clone()),
        };
        // The registry stays locked while the question is published, so that the event about the
        // end of the question cannot be published first.
        if !call.publisher.publish_question(&call.tool_use, event) {
            return Err("its call has ended, or its run has too many questions");
        }
        registry.open.push(PendingQuestion {
            id: id.to_owned(),
            key: key.to_owned(),
            call,
            question,
            answer,
        });
        Ok(())
    }

    /// Removes the selected open questions from the registry and publishes an event about the end
    /// of each one. Returns the removed questions.
    fn end_questions(
        &self,
        action: QuestionAction,
        is_selected: impl Fn(&PendingQuestion) -> bool,
    ) -> Vec<PendingQuestion> {
        let mut registry = self.lock_registry();
        let all = std::mem::take(&mut registry.open);
        let (ended, rest): (Vec<_>, _) = all.into_iter().partition(is_selected);
        registry.open = rest;
        drop(registry);
        for PendingQuestion { id, call, .. } in &ended {
            let id = id.clone();
            let event = RunEventKind::QuestionAnswered { id, action };
            call.publisher.publish_question(&call.tool_use, event);
        }
        ended
    }

    fn lock_registry(&self) -> MutexGuard<'_, QuestionRegistry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Elicitor for Questions {
    async fn elicit(&self, elicitation: &Elicitation) -> ElicitationAnswer {
        let (answer, answered) = oneshot::channel();
        let id = Uuid::now_v7().simple().to_string();
        if let Err(reason) = self.publish_question(&id, elicitation, answer) {
            let server = &elicitation.server;
            tracing::debug!(server, reason, "a question is not shown");
            return ElicitationAnswer::Cancel;
        }
        let _guard = CancelQuestionOnDrop {
            questions: self,
            id: &id,
        };
        // Receiving fails if the tool call ends before a person answers the question.
        answered.await.unwrap_or(ElicitationAnswer::Cancel)
    }
}

impl QuestionRegistry {
    /// Returns the idempotency key of the newest running tool call that may have caused a question.
    /// `candidates` are the possible calls. Returns `None` if no candidate is running, or if the
    /// candidates belong to several runs or principals or include an unknown call.
    fn find_candidate_call<'a>(&self, candidates: &'a CandidateToolCalls) -> Option<&'a str> {
        if candidates.others {
            return None;
        }
        let mut owners = candidates.calls.iter().map(|key| self.find_call_owner(key));
        let first = owners.next()??;
        if !owners.all(|owner| owner == Some(first)) {
            return None;
        }
        let mut newest_first = candidates.calls.iter().rev();
        let running = newest_first.find(|key| self.calls.contains_key(*key));
        running.map(String::as_str)
    }

    /// Returns the principal and the run of a running or recently ended tool call, or `None` if the
    /// key is unknown.
    fn find_call_owner(&self, key: &str) -> Option<&CallOwner> {
        if let Some(call) = self.calls.get(key) {
            return Some(&call.owner);
        }
        let mut ended = self.ended.iter().rev();
        let found = ended.find(|(ended, _)| ended == key);
        found.map(|(_, owner)| owner)
    }

    /// Publishes a warning that a question was not shown, in each run that may have caused the
    /// question. The warning omits the text of the question, which may be for another person.
    fn warn_about_hidden_question(&mut self, server: &str, candidates: &CandidateToolCalls) {
        let mut warned_runs: HashSet<Arc<str>> = HashSet::new();
        for key in &candidates.calls {
            let Some(call) = self.calls.get_mut(key) else {
                continue;
            };
            if std::mem::replace(&mut call.is_warned, true) || warned_runs.contains(&call.owner.run)
            {
                continue;
            }
            let message = format!(
                "server `{server}` asked a question without the id of its tool call. The question \
                 was cancelled and not shown, because it may belong to another run. Repeat the \
                 call while no other run uses this server. Servers that use HTTP or protocol \
                 2026-07-28 always send the id"
            );
            let warning = Warning::new(WarningKind::QuestionNotAsked, message);
            let warning = RunEventKind::Warning { warning };
            if call.publisher.publish_question(&call.tool_use, warning) {
                warned_runs.insert(Arc::clone(&call.owner.run));
            }
        }
    }
}

/// A guard that exists while a server waits for an answer. Dropping it cancels the question if it
/// is still unanswered.
struct CancelQuestionOnDrop<'a> {
    questions: &'a Questions,
    id: &'a str,
}

impl Drop for CancelQuestionOnDrop<'_> {
    fn drop(&mut self) {
        let _ = self
            .questions
            .end_questions(QuestionAction::Cancel, |open| open.id == self.id);
    }
}

/// A guard that exists while a tool call runs. Dropping it removes the call from the running calls
/// and cancels its questions.
pub(crate) struct ToolCallRegistration {
    questions: Questions,
    key: String,
}

impl Drop for ToolCallRegistration {
    fn drop(&mut self) {
        let mut registry = self.questions.lock_registry();
        if let Some(call) = registry.calls.remove(&self.key) {
            if registry.ended.len() == MAX_ENDED_CALLS {
                registry.ended.pop_front();
            }
            registry.ended.push_back((self.key.clone(), call.owner));
        }
        drop(registry);
        let _ = self
            .questions
            .end_questions(QuestionAction::Cancel, |open| open.key == self.key);
    }
}

/// Removes hidden input values from a question, because a server may repeat them. Also removes the
/// list of tool calls that may have caused the question, because they may belong to other runs.
fn redact_question(question: &Elicitation, context: &ContextInjection) -> Elicitation {
    let mut question = Elicitation {
        candidates: CandidateToolCalls::default(),
        ..question.clone()
    };
    let redact = |text: &mut String| *text = context.redact_text(text).into_owned();
    redact(&mut question.message);
    match &mut question.form {
        ElicitationForm::Fields { schema } => context.redact_value(schema),
        ElicitationForm::Url { url, id } => {
            redact(url);
            redact(id);
        }
        // Other kinds of forms are not shown to people, so they need no redaction.
        _ => {}
    }
    question
}
