//! Replays recorded model and tool traffic.

use std::{
    fmt,
    io::BufRead,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use futures_util::stream;
use serde_json::Value;
use switchboard_domain::{
    ChatModel, ChatRequest, ModelCapabilities, ModelError, ModelErrorKind, ModelId, ModelStream,
    ToolCall, ToolCallError, ToolCatalog, ToolHost, ToolHostChanges, ToolOutput, redact::Redactor,
};
use switchboard_orchestration::tools::arguments::ContextInjection;

use super::{
    Matching, RecordingError, Redaction,
    format::{self, CallResult, EarlyEnd, ModelCall, RecordedToolCall, Recording},
    matching::{CanonicalRequest, Quality, excerpt},
    redacted::may_equal,
};

/// Maximum number of stored misses, because a server may run for days.
const MAX_MISSED: usize = 1_000;

/// A replay of a recording. Clones share the used responses: each response is replayed once.
///
/// ```
/// use switchboard_evals::recording::Player;
///
/// let file = r#"{"format":"switchboard-recording","version":1,"program":"an example"}"#;
/// let player = Player::read(file.as_bytes())?;
/// assert!(player.models().is_empty());
/// # Ok::<(), switchboard_evals::recording::RecordingError>(())
/// ```
#[derive(Clone)]
pub struct Player {
    shared: Arc<Shared>,
    matching: Matching,
    selection: Selection,
    /// Arguments that the host adds to tool calls.
    hidden: ContextInjection,
}

struct Shared {
    redaction: Redaction,
    catalogs: Vec<ToolCatalog>,
    state: Mutex<State>,
}

struct State {
    model_calls: Vec<Response<(ModelCall, CanonicalRequest)>>,
    tool_calls: Vec<Response<RecordedToolCall>>,
    missed: Vec<String>,
}

/// A recorded response that is replayed once.
struct Response<T> {
    recorded: Arc<T>,
    is_used: bool,
}

impl<T> Response<T> {
    fn all(recorded: Vec<T>) -> Vec<Self> {
        let responses = recorded.into_iter().map(|recorded| Self {
            recorded: Arc::new(recorded),
            is_used: false,
        });
        responses.collect()
    }
}

/// The recorded conversations whose responses a player replays.
#[derive(Debug, Clone)]
enum Selection {
    All,
    /// This conversation, and traffic without a conversation.
    Named(Arc<str>),
    /// The conversation of the last response, once there is one.
    Found(Arc<Mutex<Option<Arc<str>>>>),
}

impl Selection {
    fn found(&self) -> Option<Arc<str>> {
        match self {
            Self::All => None,
            Self::Named(name) => Some(Arc::clone(name)),
            Self::Found(name) => lock(name).clone(),
        }
    }

    /// Returns 0 for the preferred conversation and 1 for another one. `None` excludes it.
    fn rank(
        &self,
        conversation: Option<&Arc<str>>,
        matching: Matching,
        state: &State,
    ) -> Option<u8> {
        let Some(conversation) = conversation else {
            return Some(0);
        };
        match (self, self.found()) {
            (Self::All, _) => Some(0),
            (_, Some(own)) if own == *conversation => Some(0),
            (Self::Found(_), _) if matching == Matching::Exact => Some(1),
            // In recorded order, each conversation starts with a recorded one without a follower.
            (Self::Found(_), None) => (!state.has_used(conversation)).then_some(0),
            (Self::Named(_) | Self::Found(_), _) => None,
        }
    }

    /// Continues with the conversation of a response.
    fn follow(&self, conversation: Option<&Arc<str>>) {
        if let (Self::Found(name), Some(conversation)) = (self, conversation) {
            *lock(name) = Some(Arc::clone(conversation));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn has_used(&self, conversation: &Arc<str>) -> bool {
        let models = self.model_calls.iter().filter(|call| call.is_used);
        let mut models = models.map(|call| call.recorded.0.conversation.as_ref());
        let tools = self.tool_calls.iter().filter(|call| call.is_used);
        let mut tools = tools.map(|call| call.recorded.conversation.as_ref());
        models.any(|it| it == Some(conversation)) || tools.any(|it| it == Some(conversation))
    }

    fn add_missed(&mut self, message: String) {
        if self.missed.len() < MAX_MISSED {
            self.missed.push(message);
        }
    }
}

impl Player {
    /// Reads a recording. An incomplete last line is ignored.
    pub fn read(input: impl BufRead) -> Result<Self, RecordingError> {
        Self::with_redactor(input, Redactor::default())
    }

    /// Reads a recording whose recorder had a redactor with known secrets. Requests are redacted
    /// before they are compared.
    pub fn with_redactor(input: impl BufRead, redactor: Redactor) -> Result<Self, RecordingError> {
        let Recording {
            model_calls,
            catalogs,
            tool_calls,
            ..
        } = format::read(input)?;
        let state = State {
            model_calls: Response::all(model_calls),
            tool_calls: Response::all(tool_calls),
            missed: Vec::new(),
        };
        Ok(Self {
            shared: Arc::new(Shared {
                redaction: Redaction::new(redactor),
                catalogs,
                state: Mutex::new(state),
            }),
            matching: Matching::default(),
            selection: Selection::All,
            hidden: ContextInjection::new(),
        })
    }

    /// Returns a player that ignores the arguments that the host adds to tool calls, as
    /// [`Recorder::hiding`](super::Recorder::hiding) does.
    #[must_use]
    pub fn hiding(mut self, hidden: ContextInjection) -> Self {
        self.hidden = hidden;
        self
    }

    /// Returns a player for one recorded conversation. It also replays traffic that was recorded
    /// without a conversation.
    #[must_use]
    pub fn conversation(&self, name: &str) -> Self {
        let name = self.shared.redaction.label(name);
        Self {
            selection: Selection::Named(name.into()),
            ..self.clone()
        }
    }

    /// Returns a player for one of several concurrent conversations without known names. It
    /// continues with the recorded conversation of its first response, as long as that fits.
    #[must_use]
    pub fn any_conversation(&self) -> Self {
        Self {
            selection: Selection::Found(Arc::default()),
            ..self.clone()
        }
    }

    /// Returns a player with another matching.
    #[must_use]
    pub fn with_matching(mut self, matching: Matching) -> Self {
        self.matching = matching;
        self
    }

    /// Returns the recorded models in the order of their first responses.
    pub fn models(&self) -> Vec<ModelId> {
        let mut models: Vec<ModelId> = Vec::new();
        for call in &self.state().model_calls {
            if !models.contains(&call.recorded.0.model) {
                models.push(call.recorded.0.model.clone());
            }
        }
        models
    }

    /// Returns a model with the recorded responses of this one, or `None` without a response.
    pub fn model(&self, id: &ModelId) -> Option<Arc<dyn ChatModel>> {
        let state = self.state();
        let mut calls = state.model_calls.iter();
        let call = calls.find(|call| call.recorded.0.model == *id)?;
        Some(Arc::new(ReplayedModel {
            player: self.clone(),
            id: id.clone(),
            capabilities: call.recorded.0.capabilities.clone(),
        }))
    }

    /// Returns the recorded tools with their results, or `None` without a recorded tool host. The
    /// tools are those of the next request to a model.
    pub fn tools(&self) -> Option<Arc<dyn ToolHost>> {
        let has_tools = !self.shared.catalogs.is_empty();
        has_tools.then(|| Arc::new(self.clone()) as Arc<dyn ToolHost>)
    }

    /// Returns whether secrets were removed from the input of a tool use.
    pub fn is_input_redacted(&self, tool_use: &str) -> bool {
        let state = self.state();
        let mut calls = state.model_calls.iter().filter(|call| {
            let conversation = call.recorded.0.conversation.as_ref();
            let rank = self.selection.rank(conversation, self.matching, &state);
            rank.is_some()
        });
        calls.any(|call| {
            call.recorded
                .0
                .redacted_inputs
                .iter()
                .any(|id| id == tool_use)
        })
    }

    /// Returns the requests without a recorded response, as the error messages of the runs. There
    /// are at most 1,000.
    pub fn missed(&self) -> Vec<String> {
        self.state().missed.clone()
    }

    /// Returns the number of responses and results that were not replayed.
    pub fn unused(&self) -> usize {
        let state = self.state();
        let models = state.model_calls.iter().filter(|call| !call.is_used);
        let tools = state.tool_calls.iter().filter(|call| !call.is_used);
        models.count() + tools.count()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.shared.state)
    }

    /// Returns the response to a request and marks it as used.
    fn respond(
        &self,
        model: &ModelId,
        request: &ChatRequest,
    ) -> Result<Arc<(ModelCall, CanonicalRequest)>, ModelError> {
        let error = |message: String| {
            ModelError::new(&*model.provider, ModelErrorKind::Configuration, message)
        };
        let request = CanonicalRequest::of(request, &self.shared.redaction)
            .map_err(|cause| error(cause.to_string()))?;
        let mut state = self.state();
        let candidates = state.model_calls.iter().enumerate();
        let candidates = candidates.filter_map(|(position, call)| {
            let (recorded, recorded_request) = &*call.recorded;
            let conversation = recorded.conversation.as_ref();
            let rank = self.selection.rank(conversation, self.matching, &state)?;
            let quality = match self.matching {
                Matching::Exact => recorded_request.matches(&request)?,
                Matching::Order => Quality::Equal,
            };
            let is_candidate = recorded.model == *model && !call.is_used;
            is_candidate.then_some((rank, quality, position))
        });
        let Some((_, _, position)) = candidates.min() else {
            let message = self.missing_response(&state, model, &request);
            state.add_missed(message.clone());
            return Err(error(message));
        };
        let call = &mut state.model_calls[position];
        call.is_used = true;
        self.selection.follow(call.recorded.0.conversation.as_ref());
        Ok(Arc::clone(&call.recorded))
    }

    fn missing_response(
        &self,
        state: &State,
        model: &ModelId,
        request: &CanonicalRequest,
    ) -> String {
        let calls = state.model_calls.iter().filter(|call| {
            let recorded = &call.recorded.0;
            let conversation = recorded.conversation.as_ref();
            let rank = self.selection.rank(conversation, self.matching, state);
            recorded.model == *model && rank.is_some()
        });
        let (used, unused): (Vec<_>, Vec<_>) = calls.partition(|call| call.is_used);
        let is_repeated = used
            .iter()
            .any(|call| call.recorded.1.matches(request).is_some());
        let similar = unused
            .iter()
            .max_by_key(|call| call.recorded.1.similarity(request));
        let cause = match similar {
            _ if is_repeated => {
                "its recorded responses were already used; restart the replay to use them again"
                    .to_owned()
            }
            None => "all recorded responses were already used".to_owned(),
            Some(similar) => {
                let difference = similar.recorded.1.difference(request);
                format!(
                    "the most similar unused request differs in {}",
                    difference.unwrap_or_default()
                )
            }
        };
        let conversation = match &self.selection {
            Selection::Named(name) => format!(" of `{name}`"),
            Selection::All | Selection::Found(_) => String::new(),
        };
        format!(
            "the recording has no response of {model} to the request{conversation} that ends with \
             {}: {cause}. Record it again; with changing data such as dates, use `--match order`. \
             A question without a response stays in the conversation: start a new one (`/new`)",
            request.last_text(),
        )
    }

    /// Returns the result of a call and marks it as used.
    fn result(&self, tool: &str, input: &Value) -> Option<Arc<RecordedToolCall>> {
        let tool = self.shared.redaction.name(tool);
        let mut state = self.state();
        let candidates = state.tool_calls.iter().enumerate();
        let candidates = candidates.filter_map(|(position, call)| {
            let recorded = &call.recorded;
            if call.is_used || recorded.tool != tool {
                return None;
            }
            let conversation = recorded.conversation.as_ref();
            let rank = self.selection.rank(conversation, self.matching, &state)?;
            let recorded_input = Value::Object(recorded.input.clone());
            let quality = if may_equal(&recorded_input, input) {
                Quality::Equal
            } else if self.matching == Matching::Order {
                Quality::AfterRedactedInput
            } else {
                return None;
            };
            Some((rank, quality, position))
        });
        let (_, _, position) = candidates.min()?;
        let call = &mut state.tool_calls[position];
        call.is_used = true;
        // A resumed run may call tools before its first request.
        if self.selection.found().is_none() {
            self.selection.follow(call.recorded.conversation.as_ref());
        }
        Some(Arc::clone(&call.recorded))
    }
}

struct ReplayedModel {
    player: Player,
    id: ModelId,
    capabilities: ModelCapabilities,
}

#[async_trait]
impl ChatModel for ReplayedModel {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn capabilities(&self) -> &ModelCapabilities {
        &self.capabilities
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ModelStream, ModelError> {
        let response = self.player.respond(&self.id, request)?;
        let (call, _) = &*response;
        let end = match call.end.clone() {
            Some(EarlyEnd::Error(error)) => Some(ModelError::from(*error)),
            Some(EarlyEnd::Dropped) => Some(ModelError::new(
                &*self.id.provider,
                ModelErrorKind::Interrupted,
                "the recording ends here: its caller dropped the rest of the response",
            )),
            None => None,
        };
        match end {
            Some(error) if call.events.is_empty() && is_error(call) => Err(error),
            end => {
                let events: Vec<_> = call.events.iter().cloned().map(Ok).collect();
                let events = events.into_iter().chain(end.map(Err));
                Ok(Box::pin(stream::iter(events)))
            }
        }
    }
}

fn is_error(call: &ModelCall) -> bool {
    matches!(call.end, Some(EarlyEnd::Error(_)))
}

#[async_trait]
impl ToolHost for Player {
    async fn tools(&self) -> ToolCatalog {
        let catalogs = &self.shared.catalogs;
        let state = self.state();
        let unused = state.model_calls.iter().enumerate();
        let unused = unused.filter(|(_, call)| !call.is_used);
        let ranked = unused.filter_map(|(position, call)| {
            let recorded = &call.recorded.0;
            let conversation = recorded.conversation.as_ref();
            let rank = self.selection.rank(conversation, self.matching, &state)?;
            Some((rank, position, recorded.catalogs))
        });
        let next = ranked.min().map(|(_, _, catalogs)| catalogs);
        let valid = next.and_then(|count| catalogs.get(count.checked_sub(1)?));
        valid.or(catalogs.last()).cloned().unwrap_or_default()
    }

    async fn call(&self, call: ToolCall) -> Result<ToolOutput, ToolCallError> {
        let catalogs = self.shared.catalogs.iter().rev();
        let mut tools = catalogs.flat_map(|catalog| &catalog.tools);
        let input = match tools.find(|tool| tool.name == call.name) {
            Some(tool) => self.hidden.without(tool, call.input.into_object()),
            None => self.hidden.without_any(call.input.into_object()),
        };
        let input = self.shared.redaction.value(&Value::Object(input));
        let unavailable = |reason: String| ToolCallError::Unavailable {
            server: "recording".to_owned(),
            reason,
        };
        let Some(recorded) = self.result(&call.name, &input) else {
            let reason = format!(
                "it has no unused result of `{}` with the input {}; record the run again",
                call.name,
                excerpt(&input)
            );
            let missed = format!("the recording: {reason}");
            self.state().add_missed(missed);
            return Err(unavailable(reason));
        };
        match recorded.result.clone() {
            CallResult::Output(output) => Ok(output),
            CallResult::Error(error) => Err(error),
            CallResult::Dropped => Err(unavailable(format!(
                "the recorded run did not wait for the result of `{}`",
                call.name
            ))),
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
            .field("unused", &self.unused())
            .field("matching", &self.matching)
            .field("selection", &self.selection)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "recording_tests.rs"]
mod tests;
