//! What servers ask of the person in the middle of a call, as events of the run that the call belongs to.
//!
//! One host serves many runs, so a question must find its own: by the call within which it is asked
//! ([`Elicitation::call`]). Where that is not known, nobody is asked, since the wrong person would be.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use serde_json::Value;
use switchboard_domain::{Elicitation, ElicitationAnswer, ElicitationForm, Elicitor};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::{QuestionAction, RunEventKind, arguments::ContextInjection, driver::Publisher};

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
        publisher: &Publisher,
        context: &ContextInjection,
    ) -> CallUnderWay {
        let call = Call {
            publisher: publisher.clone(),
            run: publisher.run_id(),
            tool_use: tool_use.to_owned(),
            context: context.clone(),
        };
        self.lock().calls.insert(key.to_owned(), call);
        CallUnderWay {
            questions: self.clone(),
            key: key.to_owned(),
        }
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
        let nobody = |why: &str| {
            tracing::debug!(
                server = elicitation.server,
                why,
                "a question is put to nobody"
            );
            ElicitationAnswer::Cancel
        };
        let Some(key) = &elicitation.call else {
            return nobody("it is not known within which call it is asked");
        };
        let (answer, answered) = oneshot::channel();
        let id = Uuid::now_v7().simple().to_string();
        let (call, question) = {
            let mut registry = self.lock();
            let Some(call) = registry.calls.get(key).cloned() else {
                drop(registry);
                return nobody("no run here has its call under way");
            };
            let question = scrubbed(elicitation.clone(), &call.context);
            registry.open.push(Open {
                id: id.clone(),
                key: key.clone(),
                call: call.clone(),
                question: question.clone(),
                answer,
            });
            (call, question)
        };
        let asked = RunEventKind::QuestionAsked {
            id: id.clone(),
            question: Box::new(question),
        };
        if !call.publisher.question(&call.tool_use, asked) {
            drop(self.take(|open| open.id == id));
            return nobody("its call is over");
        }
        let _withdrawn = Withdrawn {
            questions: self,
            id: &id,
        };
        // Fails when the call ends before.
        answered.await.unwrap_or(ElicitationAnswer::Cancel)
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
        self.questions.lock().calls.remove(&self.key);
        for open in self.questions.take(|open| open.key == self.key) {
            open.ended(QuestionAction::Cancel);
        }
    }
}

/// A server may repeat what it was given, and its question is told to many.
fn scrubbed(mut question: Elicitation, context: &ContextInjection) -> Elicitation {
    if context.is_empty() {
        return question;
    }
    let scrub = |text: &mut String| *text = context.scrub_text(text).into_owned();
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
