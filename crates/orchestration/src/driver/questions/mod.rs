//! What servers ask of the person in the middle of a call, as events of the run that the call belongs to.
//!
//! One host serves many runs, so a question must find its own: by the call within which it is asked
//! ([`Elicitation::call`]). Where that is not known, it is asked if all the calls that it may be
//! ([`Elicitation::candidates`]) are of one person. Otherwise nobody is asked, since the wrong person might be, and
//! the runs of those calls are told so.

mod check;

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use serde_json::Value;
use switchboard_domain::{
    Candidates, Elicitation, ElicitationAnswer, ElicitationForm, Elicitor, Principal, Warning,
    WarningKind,
};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::{QuestionAction, RunEventKind, driver::Publisher, tools::arguments::ContextInjection};

/// Calls that are over of which it is remembered whose they were: a server may not have heard of it yet.
const ENDED_CALLS: usize = 1024;

/// The questions of servers that are open, of all runs of a program. Cheap to clone.
///
/// The same value is the elicitor of the tool host and is given to the agents
/// ([`Agent::with_questions`](crate::Agent::with_questions)): then a question is told as
/// [`RunEventKind::QuestionAsked`] in the run of its call, [`Questions::answer`] answers it, and
/// [`RunEventKind::QuestionAnswered`] says that it is over, for whichever reason.
#[derive(Clone, Default)]
pub struct Questions(Arc<Mutex<Registry>>);

#[derive(Default)]
struct Registry {
    /// Calls that are under way, by their idempotency keys.
    calls: HashMap<String, Call>,
    /// Those that were, and whose, oldest first.
    ended: VecDeque<(String, Principal)>,
    /// Oldest first.
    open: Vec<Open>,
}

/// Where what is asked within a call is told.
#[derive(Clone)]
struct Call {
    publisher: Publisher,
    run: Arc<str>,
    tool_use: String,
    context: ContextInjection,
    person: Principal,
    /// Whether it was said that something of its server was not asked. Once is enough.
    warned: bool,
}

struct Open {
    id: String,
    key: String,
    call: Call,
    question: Elicitation,
    answer: oneshot::Sender<ElicitationAnswer>,
}

/// A question that waits for its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenQuestion {
    /// By which it is answered.
    pub id: String,
    /// What is asked, and within which call.
    pub question: Elicitation,
}

/// There is no such question, or not any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("run `{run}` has no open question `{id}`")]
pub struct NoSuchQuestion {
    /// The run.
    pub run: String,
    /// The question.
    pub id: String,
}

impl Questions {
    /// Answers a question of a run. Of two answers the first counts.
    pub fn answer(
        &self,
        run: &str,
        id: &str,
        answer: ElicitationAnswer,
    ) -> Result<(), NoSuchQuestion> {
        let found = self.take(|open| open.id == id && *open.call.run == *run);
        let Some(open) = found.into_iter().next() else {
            return Err(NoSuchQuestion {
                run: run.to_owned(),
                id: id.to_owned(),
            });
        };
        open.ended(QuestionAction::from(&answer));
        // Fails when nobody waits any more, as of this moment.
        let _ = open.answer.send(answer);
        Ok(())
    }

    /// The open questions of a run, oldest first.
    pub fn open(&self, run: &str) -> Vec<OpenQuestion> {
        let registry = self.lock();
        let of_run = registry.open.iter().filter(|open| *open.call.run == *run);
        let open = of_run.map(|open| OpenQuestion {
            id: open.id.clone(),
            question: open.question.clone(),
        });
        open.collect()
    }

    /// A call is under way until what this gives is dropped.
    pub(crate) fn of_call(
        &self,
        key: &str,
        tool_use: &str,
        person: Principal,
        publisher: &Publisher,
        context: &ContextInjection,
    ) -> CallUnderWay {
        let call = Call {
            publisher: publisher.clone(),
            run: publisher.run_id(),
            tool_use: tool_use.to_owned(),
            context: context.clone(),
            person,
            warned: false,
        };
        self.lock().calls.insert(key.to_owned(), call);
        CallUnderWay {
            questions: self.clone(),
            key: key.to_owned(),
        }
    }

    /// Tells a question in the run of its call. Fails with why nobody is asked.
    fn put(
        &self,
        id: &str,
        elicitation: &Elicitation,
        answer: oneshot::Sender<ElicitationAnswer>,
    ) -> Result<(), &'static str> {
        let mut registry = self.lock();
        let candidates = &elicitation.candidates;
        let known = elicitation.call.as_deref();
        let Some(key) = known.or_else(|| registry.of_one_person(candidates)) else {
            registry.warn(&elicitation.server, candidates);
            return Err("it is not known within which call it is asked");
        };
        let Some(call) = registry.calls.get(key).cloned() else {
            return Err("no run here has its call under way");
        };
        let question = scrubbed(elicitation, &call.context);
        let asked = RunEventKind::QuestionAsked {
            id: id.to_owned(),
            question: Box::new(question.clone()),
        };
        // While nobody can take it out: that it is over is told behind this.
        if !call.publisher.question(&call.tool_use, asked) {
            return Err("its call is over, or its run was asked too much");
        }
        registry.open.push(Open {
            id: id.to_owned(),
            key: key.to_owned(),
            call,
            question,
            answer,
        });
        Ok(())
    }

    /// Takes questions out. Whoever takes one says how it ended, so that this is said once.
    fn take(&self, is_it: impl Fn(&Open) -> bool) -> Vec<Open> {
        let mut registry = self.lock();
        let all = std::mem::take(&mut registry.open);
        let (taken, left) = all.into_iter().partition(is_it);
        registry.open = left;
        taken
    }

    fn lock(&self) -> MutexGuard<'_, Registry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Elicitor for Questions {
    async fn elicit(&self, elicitation: &Elicitation) -> ElicitationAnswer {
        let (answer, answered) = oneshot::channel();
        let id = Uuid::now_v7().simple().to_string();
        if let Err(why) = self.put(&id, elicitation, answer) {
            let server = &elicitation.server;
            tracing::debug!(server, why, "a question is put to nobody");
            return ElicitationAnswer::Cancel;
        }
        let _withdrawn = Withdrawn {
            questions: self,
            id: &id,
        };
        // Fails when the call ends before.
        answered.await.unwrap_or(ElicitationAnswer::Cancel)
    }

    fn knows_whom_to_ask(&self, candidates: &Candidates) -> bool {
        self.lock().of_one_person(candidates).is_some()
    }
}

impl Registry {
    /// One of the calls that is under way, the last of them, if all of them are known to be of one person.
    fn of_one_person<'a>(&self, candidates: &'a Candidates) -> Option<&'a str> {
        if candidates.others {
            return None;
        }
        let mut people = candidates.calls.iter().map(|key| self.person(key));
        let first = people.next()??;
        if !people.all(|person| person == Some(first)) {
            return None;
        }
        let keys = candidates.calls.iter().rev();
        let mut under_way = keys.filter(|key| self.calls.contains_key(*key));
        under_way.next().map(String::as_str)
    }

    /// Whose this call is or was.
    fn person(&self, key: &str) -> Option<&Principal> {
        if let Some(call) = self.calls.get(key) {
            return Some(&call.person);
        }
        let mut ended = self.ended.iter().rev();
        let found = ended.find(|(ended, _)| ended == key);
        found.map(|(_, person)| person)
    }

    /// Tells each run with a call among these that its server wanted to know something. What that is may not be
    /// for them.
    fn warn(&mut self, server: &str, candidates: &Candidates) {
        let mut told: Vec<Arc<str>> = Vec::new();
        for key in &candidates.calls {
            let Some(call) = self.calls.get_mut(key) else {
                continue;
            };
            if std::mem::replace(&mut call.warned, true) || told.contains(&call.run) {
                continue;
            }
            let message = format!(
                "the server `{server}` wanted to know something of a person and does not say within which call; \
                 it may be the call of somebody else, so nobody was asked and it was told `cancel`. Called again \
                 when nobody else calls it, it can ask; over HTTP, or with protocol 2026-07-28, always"
            );
            let warning = Warning::new(WarningKind::QuestionNotAsked, message);
            let warning = RunEventKind::Warning { warning };
            if call.publisher.question(&call.tool_use, warning) {
                told.push(Arc::clone(&call.run));
            }
        }
    }
}

impl Open {
    fn ended(&self, action: QuestionAction) {
        let id = self.id.clone();
        let over = RunEventKind::QuestionAnswered { id, action };
        self.call.publisher.question(&self.call.tool_use, over);
    }
}

/// Ends a question that nobody waits for any more. Of one that was answered there is nothing left.
struct Withdrawn<'a> {
    questions: &'a Questions,
    id: &'a str,
}

impl Drop for Withdrawn<'_> {
    fn drop(&mut self) {
        for open in self.questions.take(|open| open.id == self.id) {
            open.ended(QuestionAction::Cancel);
        }
    }
}

/// A call in whose middle a server may ask something.
pub(crate) struct CallUnderWay {
    questions: Questions,
    key: String,
}

impl Drop for CallUnderWay {
    fn drop(&mut self) {
        {
            let mut registry = self.questions.lock();
            if let Some(call) = registry.calls.remove(&self.key) {
                if registry.ended.len() == ENDED_CALLS {
                    registry.ended.pop_front();
                }
                let ended = (self.key.clone(), call.person);
                registry.ended.push_back(ended);
            }
        }
        for open in self.questions.take(|open| open.key == self.key) {
            open.ended(QuestionAction::Cancel);
        }
    }
}

/// A server may repeat what it was given, and its question is told to many.
fn scrubbed(question: &Elicitation, context: &ContextInjection) -> Elicitation {
    let mut question = Elicitation {
        // Of other runs, perhaps.
        candidates: Candidates::default(),
        ..question.clone()
    };
    if context.is_empty() {
        return question;
    }
    let scrub = |text: &mut String| *text = context.redact_text(text).into_owned();
    scrub(&mut question.message);
    match &mut question.form {
        ElicitationForm::Fields { schema } => scrub_value(schema, &scrub),
        ElicitationForm::Url { url, id } => {
            scrub(url);
            scrub(id);
        }
        // Of a kind that is not known here; nobody shows it.
        _ => {}
    }
    question
}

fn scrub_value(value: &mut Value, scrub: &impl Fn(&mut String)) {
    match value {
        Value::String(text) => scrub(text),
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| scrub_value(value, scrub)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|value| scrub_value(value, scrub)),
        _ => {}
    }
}

impl fmt::Debug for Questions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Questions")
            .field("open", &self.lock().open.len())
            .finish_non_exhaustive()
    }
}
