//! Says again what was written down.

use std::{
    fmt,
    io::BufRead,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use serde_json::Value;
use switchboard_domain::{
    ChatModel, ChatRequest, ModelCapabilities, ModelError, ModelErrorKind, ModelId, ModelStream,
    ToolCall, ToolCallError, ToolCatalog, ToolHost, ToolHostChanges, ToolOutput,
};
use tokio::time::{Instant, sleep_until};

use super::{
    Matching, RecordingError, Scrubber,
    file::{self, Asked, Call, Contents, End, Outcome},
    matching,
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
}

struct Shared {
    /// Requests are looked for in the form in which they were written.
    scrubber: Scrubber,
    catalog: ToolCatalog,
    has_tools: bool,
    tape: Mutex<Tape>,
}

struct Tape {
    answers: Vec<Answer>,
    calls: Vec<(Call, bool)>,
}

struct Answer {
    asked: Arc<Asked>,
    /// The request as requests are compared.
    form: Value,
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
        } = file::read(from)?;
        let answers = exchanges.into_iter().map(|asked| Answer {
            form: matching::form(asked.request.clone()),
            asked: Arc::new(asked),
            is_given: false,
        });
        let tape = Tape {
            answers: answers.collect(),
            calls: calls.into_iter().map(|call| (call, false)).collect(),
        };
        let has_tools = !catalogs.is_empty();
        let last = catalogs.into_iter().next_back();
        let catalog = last.map(|it| ToolCatalog {
            tools: it.tools,
            problems: it.problems,
        });
        let shared = Shared {
            scrubber,
            catalog: catalog.unwrap_or_default(),
            has_tools,
            tape: Mutex::new(tape),
        };
        Ok(Self {
            shared: Arc::new(shared),
            matching: Matching::default(),
            pace: Pace::default(),
        })
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

    /// The tools that were there last, with their recorded results; `None` if no tool host was recorded.
    pub fn tools(&self) -> Option<Arc<dyn ToolHost>> {
        self.shared
            .has_tools
            .then(|| Arc::new(self.clone()) as Arc<dyn ToolHost>)
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
            ModelError::new(&model.provider, ModelErrorKind::Configuration, message)
        };
        let wanted = serde_json::to_value(request).map_err(|it| fault(it.to_string()))?;
        let wanted = matching::form(self.shared.scrubber.value(wanted));
        let mut tape = self.tape();
        let mine =
            || |answer: &&mut Answer| answer.asked.exchange.model == *model && !answer.is_given;
        let found = tape
            .answers
            .iter_mut()
            .filter(mine())
            .find(|answer| self.matching == Matching::Order || answer.form == wanted);
        if let Some(found) = found {
            found.is_given = true;
            return Ok(Arc::clone(&found.asked));
        }
        let similar = tape.answers.iter_mut().filter(mine()).map(|it| &*it);
        let similar = similar.max_by_key(|it| {
            (
                matching::common(&it.form, &wanted),
                std::cmp::Reverse(it.asked.exchange.messages.len()),
            )
        });
        let why = match similar {
            Some(similar) => {
                let difference = matching::difference(&similar.form, &wanted);
                format!(
                    "the most similar one that is left differs in {}",
                    difference.unwrap_or_default()
                )
            }
            None => "all its answers were given".to_owned(),
        };
        Err(fault(format!(
            "the recording has no answer of {model} to this request: {why}. Record the run anew, or take \
             the answers in their order if only such things as a date differ"
        )))
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
                        &id.provider,
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
        self.shared.catalog.clone()
    }

    async fn call(&self, call: ToolCall) -> Result<ToolOutput, ToolCallError> {
        let began = Instant::now();
        let input = self.shared.scrubber.value(Value::Object(call.input));
        let found = {
            let mut tape = self.tape();
            let mut left = tape
                .calls
                .iter_mut()
                .filter(|(it, is_given)| !is_given && it.name == call.name);
            let found = left.find(|(it, _)| {
                self.matching == Matching::Order || input.as_object() == Some(&it.input)
            });
            found.map(|(it, is_given)| {
                *is_given = true;
                it.clone()
            })
        };
        let Some(found) = found else {
            return Err(ToolCallError::Unavailable {
                server: "recording".to_owned(),
                reason: format!(
                    "it has no (further) result of `{}` with this input; record the run anew",
                    call.name
                ),
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
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "recording_tests.rs"]
mod tests;
