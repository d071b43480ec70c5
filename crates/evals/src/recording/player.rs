//! Replays the recorded traffic of models and tools.

use std::{
    collections::HashSet,
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
    RecordingError, Redaction, RequestMatching,
    format::{self, EarlyEndReason, ModelCall, RecordedToolCall, RecordedToolResult, Recording},
    redacted_comparison::may_match_redacted,
    remove_hidden_arguments,
    request_matching::{CanonicalRequest, MatchQuality, value_excerpt},
};

/// Maximum number of stored error messages for requests without a recorded response. Further
/// messages are dropped, so that the memory of a long-running server stays limited.
const MAX_MISSED: usize = 1_000;

/// A player that replays recorded model and tool traffic. A response is replayed only once, even if
/// the player has several clones.
///
/// ```
/// use switchboard_evals::recording::Player;
///
/// let file = r#"{"format":"switchboard-recording","version":1,"program":"an example"}"#;
/// let player = Player::read_recording(file.as_bytes())?;
/// assert!(player.recorded_models().is_empty());
/// # Ok::<(), switchboard_evals::recording::RecordingError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Player {
    shared: Arc<SharedRecording>,
    matching: RequestMatching,
    selection: ConversationSelection,
    /// Tool arguments that the recording omits, because the host and not the model adds them to
    /// tool calls.
    hidden: ContextInjection,
}

#[derive(Debug)]
struct SharedRecording {
    redaction: Redaction,
    catalogs: Vec<ToolCatalog>,
    state: Mutex<PlaybackState>,
}

#[derive(Debug)]
struct PlaybackState {
    model_calls: Vec<ReplayableResponse<(ModelCall, CanonicalRequest)>>,
    tool_calls: Vec<ReplayableResponse<RecordedToolCall>>,
    /// Names of the recorded conversations with at least one replayed response.
    used_conversations: HashSet<Arc<str>>,
    missed: Vec<String>,
}

/// A recorded model response or tool result, which is replayed only once.
#[derive(Debug)]
struct ReplayableResponse<T> {
    conversation: Option<Arc<str>>,
    recorded: Arc<T>,
    is_used: bool,
}

impl<T> ReplayableResponse<T> {
    fn new(conversation: Option<Arc<str>>, recorded: T) -> Self {
        Self {
            conversation,
            recorded: Arc::new(recorded),
            is_used: false,
        }
    }
}

/// Selection of the recorded conversations whose responses a player replays.
#[derive(Debug, Clone)]
enum ConversationSelection {
    All,
    /// Responses of the conversation with this name, and responses that were recorded without a
    /// conversation name.
    Named(Arc<str>),
    /// The recorded conversation that the player detected from the responses that it replayed, see
    /// [`Player::detect_conversation`]. `None` before the first replayed response with a
    /// conversation name.
    Found(Arc<Mutex<Option<Arc<str>>>>),
}

fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PlaybackState {
    fn add_missed_request(&mut self, message: String) {
        if self.missed.len() < MAX_MISSED {
            self.missed.push(message);
        }
    }
}

impl Player {
    /// Reads a recording with the default redactor, which has no list of known secrets. For a
    /// recording made with another redactor, use
    /// [`read_redacted`](Self::read_redacted). Ignores an incomplete last line.
    pub fn read_recording(input: impl BufRead) -> Result<Self, RecordingError> {
        Self::read_redacted(input, Redactor::default())
    }

    /// Reads a recording whose recorder removed the secrets of `redactor`. The player also removes
    /// them from each new request before it compares the request with the recording.
    pub fn read_redacted(input: impl BufRead, redactor: Redactor) -> Result<Self, RecordingError> {
        let Recording {
            model_calls,
            catalogs,
            tool_calls,
            ..
        } = format::read_recording(input)?;
        let model_calls = model_calls.into_iter();
        let model_calls =
            model_calls.map(|it| ReplayableResponse::new(it.0.conversation.clone(), it));
        let tool_calls = tool_calls.into_iter();
        let tool_calls = tool_calls.map(|it| ReplayableResponse::new(it.conversation.clone(), it));
        let state = PlaybackState {
            model_calls: model_calls.collect(),
            tool_calls: tool_calls.collect(),
            used_conversations: HashSet::new(),
            missed: Vec::new(),
        };
        Ok(Self {
            shared: Arc::new(SharedRecording {
                redaction: Redaction::new(redactor),
                catalogs,
                state: Mutex::new(state),
            }),
            matching: RequestMatching::default(),
            selection: ConversationSelection::All,
            hidden: ContextInjection::new(),
        })
    }

    /// Returns a player that ignores the arguments in `hidden`, which the host adds to tool calls,
    /// when it compares tool inputs. Use it if the recorder was created with
    /// [`with_hidden_arguments`](super::Recorder::with_hidden_arguments).
    #[must_use]
    pub fn with_hidden_arguments(mut self, hidden: ContextInjection) -> Self {
        self.hidden = hidden;
        self
    }

    /// Returns a player that replays only the recorded conversation `name`, and responses that were
    /// recorded without a conversation name.
    #[must_use]
    pub fn select_conversation(&self, name: &str) -> Self {
        let name = self.shared.redaction.redact_label(name);
        Self {
            selection: ConversationSelection::Named(name.into()),
            ..self.clone()
        }
    }

    /// Returns a player for one conversation whose name in the recording is not known. Create one
    /// such player for each of several concurrent conversations. With [`RequestMatching::Exact`],
    /// the player prefers responses of the recorded conversation from which it took its last
    /// response. With [`RequestMatching::Order`], it uses only the recorded conversation of its
    /// first response.
    #[must_use]
    pub fn detect_conversation(&self) -> Self {
        Self {
            selection: ConversationSelection::Found(Arc::default()),
            ..self.clone()
        }
    }

    /// Returns a player that finds recorded responses with the strategy `matching`.
    #[must_use]
    pub fn with_request_matching(mut self, matching: RequestMatching) -> Self {
        self.matching = matching;
        self
    }

    /// Returns the ids of the models in the recording, in the order of their first responses.
    pub fn recorded_models(&self) -> Vec<ModelId> {
        let mut models: Vec<ModelId> = Vec::new();
        for call in &self.lock_state().model_calls {
            if !models.contains(&call.recorded.0.model) {
                models.push(call.recorded.0.model.clone());
            }
        }
        models
    }

    /// Returns a model that replays the recorded responses of model `id`. Returns `None` if the
    /// recording has no responses of this model.
    pub fn replay_model(&self, id: &ModelId) -> Option<Arc<dyn ChatModel>> {
        let state = self.lock_state();
        let mut calls = state.model_calls.iter();
        let call = calls.find(|call| call.recorded.0.model == *id)?;
        Some(Arc::new(ReplayedModel {
            player: self.clone(),
            id: id.clone(),
            capabilities: call.recorded.0.capabilities.clone(),
        }))
    }

    /// Returns a tool host that replays the recorded tool results, or `None` if no tool host was
    /// recorded. The host lists the tools that the next unused model request of the recording had.
    pub fn replay_tools(&self) -> Option<Arc<dyn ToolHost>> {
        let has_tools = !self.shared.catalogs.is_empty();
        has_tools.then(|| Arc::new(self.clone()) as Arc<dyn ToolHost>)
    }

    /// Returns whether the recorder removed secrets from the input of the tool use with this id.
    /// Searches only conversations whose responses this player may replay.
    pub fn is_input_redacted(&self, tool_use: &str) -> bool {
        let state = self.lock_state();
        let used = &state.used_conversations;
        let mut calls = state.model_calls.iter();
        calls.any(|call| {
            let mut ids = call.recorded.0.redacted_inputs.iter();
            ids.any(|id| id == tool_use) && self.rank_response(call, used).is_some()
        })
    }

    /// Returns an error message for each model request and tool call for which the recording had no
    /// unused response. Contains at most the first 1,000 messages.
    pub fn missed_requests(&self) -> Vec<String> {
        self.lock_state().missed.clone()
    }

    /// Returns the number of recorded model responses and tool results that were not replayed.
    pub fn count_unused_responses(&self) -> usize {
        let state = self.lock_state();
        let models = state.model_calls.iter().filter(|call| !call.is_used);
        let tools = state.tool_calls.iter().filter(|call| !call.is_used);
        models.count() + tools.count()
    }

    fn lock_state(&self) -> MutexGuard<'_, PlaybackState> {
        lock_mutex(&self.shared.state)
    }

    /// Returns the rank of a response; a lower rank is preferred. The rank is 0 in the selected
    /// conversation and 1 in another conversation. Returns `None` if the player must not replay the
    /// response. `used` are the conversations from which any player has already replayed a
    /// response.
    fn rank_response<T>(
        &self,
        response: &ReplayableResponse<T>,
        used: &HashSet<Arc<str>>,
    ) -> Option<u8> {
        let Some(conversation) = &response.conversation else {
            return Some(0);
        };
        match &self.selection {
            ConversationSelection::All => Some(0),
            ConversationSelection::Named(own) => (own == conversation).then_some(0),
            ConversationSelection::Found(own) => match &*lock_mutex(own) {
                Some(own) if own == conversation => Some(0),
                _ if self.matching == RequestMatching::Exact => Some(1),
                // With `RequestMatching::Order`, the first response of a player must come from a
                // recorded conversation from which no player has replayed a response yet.
                None => (!used.contains(conversation)).then_some(0),
                Some(_) => None,
            },
        }
    }

    /// Returns the best matching unused response and marks it as used. Returns `None` if no
    /// response matches. `compare` returns how well a response matches the request, or `None` if it
    /// does not match.
    fn take_best_response<T>(
        &self,
        responses: &mut [ReplayableResponse<T>],
        used: &mut HashSet<Arc<str>>,
        compare: impl Fn(&T) -> Option<MatchQuality>,
    ) -> Option<Arc<T>> {
        let unused = responses.iter().enumerate().filter(|(_, it)| !it.is_used);
        let candidates = unused.filter_map(|(position, response)| {
            let rank = self.rank_response(response, used)?;
            Some((rank, compare(&response.recorded)?, position))
        });
        let (_, _, position) = candidates.min()?;
        let response = &mut responses[position];
        response.is_used = true;
        used.extend(response.conversation.clone());
        Some(Arc::clone(&response.recorded))
    }

    /// Returns the recorded response to a model request and marks the response as used. If no
    /// unused response matches, stores an error message and returns it as an error.
    fn take_model_response(
        &self,
        model: &ModelId,
        request: &ChatRequest,
    ) -> Result<Arc<(ModelCall, CanonicalRequest)>, ModelError> {
        let error = |message: String| {
            ModelError::new(&*model.provider, ModelErrorKind::Configuration, message)
        };
        let request = CanonicalRequest::from_request(request, &self.shared.redaction)
            .map_err(|cause| error(cause.to_string()))?;
        let state = &mut *self.lock_state();
        let compare = |(call, recorded): &(ModelCall, CanonicalRequest)| match self.matching {
            _ if call.model != *model => None,
            RequestMatching::Exact => recorded.compare_request(&request),
            RequestMatching::Order => Some(MatchQuality::Equal),
        };
        let used = &mut state.used_conversations;
        let Some(recorded) = self.take_best_response(&mut state.model_calls, used, compare) else {
            let message = self.describe_missing_response(state, model, &request);
            state.add_missed_request(message.clone());
            return Err(error(message));
        };
        if let ConversationSelection::Found(own) = &self.selection
            && recorded.0.conversation.is_some()
        {
            lock_mutex(own).clone_from(&recorded.0.conversation);
        }
        Ok(recorded)
    }

    fn describe_missing_response(
        &self,
        state: &PlaybackState,
        model: &ModelId,
        request: &CanonicalRequest,
    ) -> String {
        let conversations = &state.used_conversations;
        let calls = state.model_calls.iter().filter(|call| {
            call.recorded.0.model == *model && self.rank_response(call, conversations).is_some()
        });
        let (used, unused): (Vec<_>, Vec<_>) = calls.partition(|call| call.is_used);
        let is_repeated = used
            .iter()
            .any(|call| call.recorded.1.compare_request(request).is_some());
        let similar = unused
            .iter()
            .max_by_key(|call| call.recorded.1.similarity_rank(request));
        let cause = match similar {
            _ if is_repeated => {
                "its recorded responses were already used; restart the replay to use them again"
                    .to_owned()
            }
            None => "all recorded responses were already used".to_owned(),
            Some(similar) => {
                let difference = similar.recorded.1.describe_difference(request);
                format!(
                    "the most similar unused request differs in {}",
                    difference.unwrap_or_default()
                )
            }
        };
        let conversation = match &self.selection {
            ConversationSelection::Named(name) => format!(" of `{name}`"),
            ConversationSelection::All | ConversationSelection::Found(_) => String::new(),
        };
        format!(
            "the recording has no response from {model} to the request{conversation} that ends \
             with {}: {cause}. Record it again; with changing data such as dates, use `--match \
             order`. A question without a response stays in the conversation: start a new \
             conversation (`/new`)",
            request.last_text_excerpt(),
        )
    }

    /// Returns the recorded result of a tool call and marks the result as used. Returns `None` if
    /// no unused result matches.
    fn take_tool_result(&self, tool: &str, input: &Value) -> Option<Arc<RecordedToolCall>> {
        let tool = self.shared.redaction.redact_identifier(tool);
        let compare = |recorded: &RecordedToolCall| {
            let recorded_input = Value::Object(recorded.input.clone());
            if recorded.tool != tool {
                None
            } else if may_match_redacted(&recorded_input, input) {
                Some(MatchQuality::Equal)
            } else {
                (self.matching == RequestMatching::Order)
                    .then_some(MatchQuality::AfterRedactedInput)
            }
        };
        let state = &mut *self.lock_state();
        let used = &mut state.used_conversations;
        let recorded = self.take_best_response(&mut state.tool_calls, used, compare)?;
        // A resumed run may call a tool before it calls a model. Therefore a tool result also
        // selects the recorded conversation, if no model response has selected one yet.
        if let ConversationSelection::Found(own) = &self.selection {
            let mut own = lock_mutex(own);
            *own = own.take().or_else(|| recorded.conversation.clone());
        }
        Some(recorded)
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
        let response = self.player.take_model_response(&self.id, request)?;
        let (call, _) = &*response;
        let end = match call.end.clone() {
            Some(EarlyEndReason::Error(error)) if call.events.is_empty() => {
                return Err(ModelError::from(*error));
            }
            Some(EarlyEndReason::Error(error)) => Some(ModelError::from(*error)),
            Some(EarlyEndReason::Dropped) => Some(ModelError::new(
                &*self.id.provider,
                ModelErrorKind::Interrupted,
                "the recording ends here: its caller dropped the rest of the response",
            )),
            None => None,
        };
        let events: Vec<_> = call.events.iter().cloned().map(Ok).collect();
        let events = events.into_iter().chain(end.map(Err));
        Ok(Box::pin(stream::iter(events)))
    }
}

#[async_trait]
impl ToolHost for Player {
    async fn list_tools(&self) -> ToolCatalog {
        let catalogs = &self.shared.catalogs;
        let state = self.lock_state();
        let unused = state.model_calls.iter().filter(|call| !call.is_used);
        // Finds the first unused model call with the best rank, which is probably the next request,
        // and lists the tools that it had.
        let next = unused
            .filter_map(|call| Some((self.rank_response(call, &state.used_conversations)?, call)))
            .min_by_key(|(rank, _)| *rank);
        let valid =
            next.and_then(|(_, call)| catalogs.get(call.recorded.0.catalogs.checked_sub(1)?));
        valid.or(catalogs.last()).cloned().unwrap_or_default()
    }

    async fn call_tool(&self, call: ToolCall) -> Result<ToolOutput, ToolCallError> {
        let catalogs = self.shared.catalogs.iter().rev();
        let input =
            remove_hidden_arguments(&self.hidden, catalogs, &call.name, call.input.into_object());
        let input = self.shared.redaction.redact_value(&Value::Object(input));
        let unavailable = |reason: String| ToolCallError::Unavailable {
            server: "recording".to_owned(),
            reason,
        };
        let Some(recorded) = self.take_tool_result(&call.name, &input) else {
            let reason = format!(
                "it has no unused result of `{}` with the input {}; record the run again",
                call.name,
                value_excerpt(&input)
            );
            let missed = format!("replay failed: {reason}");
            self.lock_state().add_missed_request(missed);
            return Err(unavailable(reason));
        };
        match recorded.result.clone() {
            RecordedToolResult::Output(output) => Ok(output),
            RecordedToolResult::Error(error) => Err(error),
            RecordedToolResult::Dropped => Err(unavailable(format!(
                "the recorded run did not wait for the result of `{}`",
                call.name
            ))),
        }
    }

    fn watch_changes(&self) -> ToolHostChanges {
        Box::pin(stream::pending())
    }
}

#[cfg(test)]
#[path = "recording_tests.rs"]
mod tests;
