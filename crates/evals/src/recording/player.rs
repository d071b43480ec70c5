//! Says again what was written down.

use std::{
    collections::HashSet,
    fmt,
    io::BufRead,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use serde_json::Value;
use switchboard_domain::{
    ChatModel, ChatRequest, JsonObject, ModelCapabilities, ModelError, ModelErrorKind, ModelId,
    ModelStream, ToolCall, ToolCallError, ToolCatalog, ToolHost, ToolHostChanges, ToolOutput,
};
use switchboard_orchestration::tools::arguments::ContextInjection;
use tokio::time::{Instant, sleep_until};

use super::{
    Matching, RecordingError, Scrubber,
    format::{self, Asked, Call, Contents, End, Outcome},
    matching::{self, Form},
    whose::{Scope, Whose},
};

/// How fast recorded answers come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Pace {
    /// At once.
    #[default]
    AtOnce,
    /// As they came: each event at its time.
    Recorded,
}

/// A recording that answers. Clones share what was said already: an answer is given once.
///
/// ```
/// use switchboard_evals::recording::Player;
///
/// let file = r#"{"type":"recording","version":1,"program":"an example"}"#;
/// let player = Player::read(file.as_bytes())?;
/// assert!(player.models().is_empty());
/// # Ok::<(), switchboard_evals::recording::RecordingError>(())
/// ```
#[derive(Clone)]
pub struct Player {
    shared: Arc<Shared>,
    matching: Matching,
    pace: Pace,
    /// The conversation that is had again.
    whose: Whose,
    /// What tools are given now that nobody else is to see.
    hidden: ContextInjection,
}

struct Shared {
    /// Requests are looked for in the form in which they were written.
    scrubber: Scrubber,
    /// In the order in which they came into force.
    catalogs: Vec<ToolCatalog>,
    /// Every tool of all of them as requests have it, where there are several.
    known_tools: Vec<Value>,
    tape: Mutex<Tape>,
}

struct Tape {
    answers: Vec<Answer>,
    calls: Vec<(Call, bool)>,
    /// Tracks that a conversation turned out to be.
    taken: HashSet<Arc<str>>,
    /// What was asked for and is not there.
    missed: Vec<String>,
}

/// More of what is missing tells nobody more, and a server may be asked for ever.
const MOST_MISSED: usize = 1_000;

impl Tape {
    fn miss(&mut self, what: String) {
        if self.missed.len() < MOST_MISSED {
            self.missed.push(what);
        }
    }
}

/// Whether a recorded request is the one that is asked now.
type Fits<'f> = &'f dyn Fn(&Form, &Form) -> bool;

struct Answer {
    asked: Arc<Asked>,
    is_given: bool,
}

impl Player {
    /// Reads a recording. One whose last line was not written to its end holds what stands before that.
    pub fn read(from: impl BufRead) -> Result<Self, RecordingError> {
        Self::with_scrubber(from, Scrubber::default())
    }

    /// The same where the recorder knew of secrets: what is asked now is looked for without them.
    pub fn with_scrubber(from: impl BufRead, scrubber: Scrubber) -> Result<Self, RecordingError> {
        let Contents {
            exchanges,
            catalogs,
            calls,
        } = format::read(from)?;
        let answers = exchanges.into_iter().map(|asked| Answer {
            asked: Arc::new(asked),
            is_given: false,
        });
        let tape = Tape {
            answers: answers.collect(),
            calls: calls.into_iter().map(|call| (call, false)).collect(),
            taken: HashSet::new(),
            missed: Vec::new(),
        };
        let catalogs = catalogs.into_iter().map(|it| ToolCatalog {
            tools: it.tools,
            problems: it.problems,
        });
        let catalogs: Vec<ToolCatalog> = catalogs.collect();
        let known_tools = if catalogs.len() > 1 {
            let tools = catalogs.iter().flat_map(|catalog| &catalog.tools);
            let tools = tools.filter_map(|tool| serde_json::to_value(tool).ok());
            match scrubber.tools(tools.collect()) {
                Value::Array(tools) => tools,
                _ => Vec::new(),
            }
        } else {
            Vec::new()
        };
        let shared = Shared {
            scrubber,
            catalogs,
            known_tools,
            tape: Mutex::new(tape),
        };
        Ok(Self {
            shared: Arc::new(shared),
            matching: Matching::default(),
            pace: Pace::default(),
            whose: Whose::All,
            hidden: ContextInjection::new(),
        })
    }

    /// Looks for calls without what the host gives to tools behind the model's back, as
    /// [`Recorder::hiding`](super::Recorder::hiding) has written them.
    #[must_use]
    pub fn hiding(mut self, hidden: ContextInjection) -> Self {
        self.hidden = hidden;
        self
    }

    /// One of the conversations that were recorded at once: what was recorded for the others is not there, so that
    /// the same question gets its own answer in each. What was recorded for none is there for all.
    #[must_use]
    pub fn track(&self, name: &str) -> Self {
        Self {
            whose: Whose::Named(self.shared.scrubber.title(name).into()),
            ..self.clone()
        }
    }

    /// One of several conversations that go on at once, where nobody knows which of the recorded tracks it is: the
    /// first that has what it asks for and that no other conversation is. From then on it gets what was recorded for
    /// that one, as long as there is something that fits; else what was recorded for any other.
    #[must_use]
    pub fn conversation(&self) -> Self {
        Self {
            whose: Whose::Found(Arc::default()),
            ..self.clone()
        }
    }

    /// How recorded answers are found.
    #[must_use]
    pub fn with_matching(mut self, matching: Matching) -> Self {
        self.matching = matching;
        self
    }

    /// How fast they come.
    #[must_use]
    pub fn with_pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }

    /// The models that answered, in the order in which they did first.
    pub fn models(&self) -> Vec<ModelId> {
        let mut models: Vec<ModelId> = Vec::new();
        for answer in &self.tape().answers {
            if !models.contains(&answer.asked.exchange.model) {
                models.push(answer.asked.exchange.model.clone());
            }
        }
        models
    }

    /// A model that says what this one said; `None` if it said nothing.
    pub fn model(&self, id: &ModelId) -> Option<Arc<dyn ChatModel>> {
        let tape = self.tape();
        let answer = tape
            .answers
            .iter()
            .find(|it| it.asked.exchange.model == *id)?;
        let capabilities = answer.asked.exchange.capabilities.clone();
        Some(Arc::new(Replayed {
            player: self.clone(),
            id: id.clone(),
            capabilities,
        }))
    }

    /// The tools that were there, with their recorded results; `None` if no tool host was recorded. Where they
    /// changed, it is those that were there when the next answer was asked for.
    pub fn tools(&self) -> Option<Arc<dyn ToolHost>> {
        let has_tools = !self.shared.catalogs.is_empty();
        has_tools.then(|| Arc::new(self.clone()) as Arc<dyn ToolHost>)
    }

    /// Whether the model itself wrote into the input of this tool use the mark that stands where something was struck
    /// out: nothing was struck out there, then.
    pub fn wrote_mark(&self, id: &str) -> bool {
        let tape = self.tape();
        let scopes = self.whose.scopes(self.matching);
        let is_mine = |answer: &&Answer| {
            let track = answer.asked.exchange.track.as_deref();
            scopes.iter().any(|it| it.has(track, &tape.taken))
        };
        let mut answers = tape.answers.iter().filter(is_mine);
        answers.any(|it| it.asked.exchange.marked.iter().any(|marked| marked == id))
    }

    /// What was asked for and is not in the recording, one sentence each, the first thousand of them. The run that asked
    /// was told the same.
    pub fn missed(&self) -> Vec<String> {
        self.tape().missed.clone()
    }

    /// How many answers of models and tools were not asked for. A replay that is the same run leaves none.
    pub fn left(&self) -> usize {
        let tape = self.tape();
        let answers = tape.answers.iter().filter(|it| !it.is_given).count();
        answers + tape.calls.iter().filter(|(_, is_given)| !is_given).count()
    }

    fn tape(&self) -> MutexGuard<'_, Tape> {
        self.shared
            .tape
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, model: &ModelId, request: &ChatRequest) -> Result<Arc<Asked>, ModelError> {
        let fault = |message: String| {
            ModelError::new(&*model.provider, ModelErrorKind::Configuration, message)
        };
        let wanted = serde_json::to_value(request).map_err(|it| fault(it.to_string()))?;
        let wanted = Form::of(self.shared.scrubber.request(wanted));
        let mut tape = self.tape();
        let tape = &mut *tape;
        let is_left = |answer: &Answer, scope: &Scope, taken: &HashSet<Arc<str>>| {
            let exchange = &answer.asked.exchange;
            exchange.model == *model
                && !answer.is_given
                && scope.has(exchange.track.as_deref(), taken)
        };
        let known: &[Value] = if self.whose.is_open() {
            &self.shared.known_tools
        } else {
            &[]
        };
        let fits: [Fits<'_>; 4] = [
            &|recorded, now| recorded.is(now, |recorded, now| recorded == now),
            // Only then one with something struck out, in whose place anything may stand.
            &|recorded, now| recorded.is(now, matching::same),
            &Form::is_after_struck_out,
            // Which tools there were is known once it is known which conversation it is.
            &|recorded, now| recorded.is_but_for(now, known),
        ];
        let scopes = self.whose.scopes(self.matching);
        for scope in &scopes {
            for fits in fits {
                let mut left = tape.answers.iter_mut();
                let found = left.find(|it| {
                    is_left(it, scope, &tape.taken)
                        && (self.matching == Matching::Order || fits(&it.asked.form, &wanted))
                });
                if let Some(found) = found {
                    found.is_given = true;
                    let asked = Arc::clone(&found.asked);
                    let track = asked.exchange.track.as_ref();
                    self.whose.is_of(track, &mut tape.taken);
                    return Ok(asked);
                }
            }
        }
        let is_mine = |it: &&Answer| {
            let track = it.asked.exchange.track.as_deref();
            let mut scopes = scopes.iter();
            it.asked.exchange.model == *model && scopes.any(|it| it.has(track, &tape.taken))
        };
        let similar = tape.answers.iter().filter(is_mine);
        let similar = similar.filter(|it| !it.is_given).max_by_key(|it| {
            (
                it.asked.form.common(&wanted, matching::same),
                std::cmp::Reverse(it.asked.exchange.messages.len()),
            )
        });
        let mut given = tape.answers.iter().filter(is_mine);
        let was_given = given.any(|it| it.is_given && it.asked.form.is(&wanted, matching::same));
        let why = match similar {
            None => "all its answers were given".to_owned(),
            Some(_) if was_given => "what was recorded for it was given already".to_owned(),
            Some(similar) => {
                let difference = similar.asked.form.difference(&wanted);
                format!(
                    "the most similar one that is left differs in {}",
                    difference.unwrap_or_default()
                )
            }
        };
        let way_out = if was_given {
            "Each is given once: record it as often as it is asked, or start anew to have it again from the beginning"
        } else if wanted.has_unanswered()
            && !similar.is_some_and(|it| it.asked.form.has_unanswered())
        {
            "A question before it got no answer and still stands in the conversation: ask only what was recorded, in a \
             new conversation (`/new` in a chat) or a new replay"
        } else if wanted.struck_out().is_some() {
            "A secret was struck out of a tool's input before that, so that the run goes another way; recording \
             it anew does not help: take the answers in their order (`--match order`)"
        } else {
            "Record it anew, or take the answers in their order (`--match order`) if only such things as a date \
             differ"
        };
        let of_track = self.whose.name().map(|name| format!(" of `{name}`"));
        let missed = format!(
            "the recording has no answer of {model} to the request{} that ends with {}: {why}. {way_out}",
            of_track.unwrap_or_default(),
            wanted.end(),
        );
        tape.miss(missed.clone());
        Err(fault(missed))
    }
}

struct Replayed {
    player: Player,
    id: ModelId,
    capabilities: ModelCapabilities,
}

#[async_trait]
impl ChatModel for Replayed {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn capabilities(&self) -> &ModelCapabilities {
        &self.capabilities
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ModelStream, ModelError> {
        let asked = self.player.answer(&self.id, request)?;
        let (pace, began) = (self.player.pace, Instant::now());
        if asked.events.is_empty()
            && let Some(End::Failed(fault)) = &asked.exchange.end
        {
            wait(pace, began, asked.exchange.took_ms).await;
            return Err((**fault).clone().into());
        }
        let id = self.id.clone();
        let events = stream::iter(0..=asked.events.len()).then(move |at| {
            let (asked, id) = (Arc::clone(&asked), id.clone());
            async move {
                if let Some((when, event)) = asked.events.get(at) {
                    wait(pace, began, *when).await;
                    return Some(Ok(event.clone()));
                }
                wait(pace, began, asked.exchange.took_ms).await;
                Some(Err(match asked.exchange.end.as_ref()? {
                    End::Failed(fault) => (**fault).clone().into(),
                    End::Left => ModelError::new(
                        &*id.provider,
                        ModelErrorKind::Interrupted,
                        "the recording ends here: whoever listened then did not hear the rest",
                    ),
                }))
            }
        });
        Ok(Box::pin(
            events
                .take_while(|it| std::future::ready(it.is_some()))
                .filter_map(std::future::ready),
        ))
    }
}

async fn wait(pace: Pace, began: Instant, ms: u64) {
    if pace == Pace::Recorded {
        sleep_until(began + Duration::from_millis(ms)).await;
    }
}

#[async_trait]
impl ToolHost for Player {
    async fn tools(&self) -> ToolCatalog {
        let catalogs = &self.shared.catalogs;
        let next = {
            let tape = self.tape();
            let scopes = self.whose.scopes(self.matching);
            scopes.iter().find_map(|scope| {
                let left = tape.answers.iter().filter(|it| !it.is_given);
                let mut left = left.map(|it| &it.asked.exchange);
                left.find(|it| scope.has(it.track.as_deref(), &tape.taken))
                    .map(|it| it.catalogs)
            })
        };
        let in_force = next.and_then(|count| catalogs.get(count.checked_sub(1)?));
        in_force.or(catalogs.last()).cloned().unwrap_or_default()
    }

    async fn call(&self, call: ToolCall) -> Result<ToolOutput, ToolCallError> {
        let began = Instant::now();
        let mut tools = self.shared.catalogs.iter().rev().flat_map(|it| &it.tools);
        let input = match tools.find(|tool| tool.name == call.name) {
            Some(tool) => self.hidden.without(tool, call.input.into_object()),
            None => self.hidden.without_any(call.input.into_object()),
        };
        let input = self.shared.scrubber.value(Value::Object(input));
        let name = self.shared.scrubber.name(&call.name);
        let found = {
            let mut tape = self.tape();
            let tape = &mut *tape;
            let is_left = |(it, is_given): &(Call, bool), scope: &Scope| {
                !is_given && it.name == name && scope.has(it.track.as_deref(), &tape.taken)
            };
            let fits: [fn(&JsonObject, &JsonObject) -> bool; 3] = [
                |recorded, now| recorded == now,
                matching::same_fields,
                |_, _| true,
            ];
            // Only in their order any other one will do.
            let count = fits.len() - usize::from(self.matching != Matching::Order);
            let scopes = self.whose.scopes(self.matching);
            let mut ways = scopes
                .iter()
                .flat_map(|scope| fits.iter().take(count).map(move |fits| (scope, fits)));
            let at = ways.find_map(|(scope, fits)| {
                let input = input.as_object()?;
                let mut calls = tape.calls.iter();
                calls.position(|it| is_left(it, scope) && fits(&it.0.input, input))
            });
            let found = at.and_then(|at| tape.calls.get_mut(at));
            found.map(|(it, is_given)| {
                *is_given = true;
                // Of a run that goes on: its call is the first that is heard of it.
                if self.whose.is_open() {
                    self.whose.is_of(it.track.as_ref(), &mut tape.taken);
                }
                it.clone()
            })
        };
        let Some(found) = found else {
            let reason = format!(
                "it has no (further) result of `{}` with the input {}; record the run anew",
                call.name,
                matching::excerpt(&input)
            );
            self.tape().miss(format!("the recording: {reason}"));
            return Err(ToolCallError::Unavailable {
                server: "recording".to_owned(),
                reason,
            });
        };
        wait(self.pace, began, found.took_ms).await;
        match found.outcome {
            Outcome::Output(output) => Ok(output),
            Outcome::Failed(fault) => Err(fault.into()),
            Outcome::Left => Err(ToolCallError::Unavailable {
                server: "recording".to_owned(),
                reason: format!(
                    "nobody waited for the result of `{}` when it was recorded",
                    call.name
                ),
            }),
        }
    }

    fn changes(&self) -> ToolHostChanges {
        Box::pin(stream::pending())
    }
}

impl fmt::Debug for Player {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Player")
            .field("models", &self.models())
            .field("left", &self.left())
            .field("matching", &self.matching)
            .field("pace", &self.pace)
            .field("whose", &self.whose)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "recording_tests.rs"]
mod tests;
