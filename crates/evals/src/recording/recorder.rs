//! Records the traffic of models and tools.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    io::Write,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream::unfold};
use serde::Serialize;
use serde_json::Value;
use switchboard_domain::{
    ChatModel, ChatRequest, JsonObject, ModelCapabilities, ModelError, ModelErrorKind, ModelEvent,
    ModelId, ModelStream, ToolCall, ToolCallError, ToolCatalog, ToolHost, ToolHostChanges,
    ToolOutput, redact::Redactor,
};
use switchboard_orchestration::tools::arguments::ContextInjection;

use super::{
    RecordingError, Redaction,
    format::{
        EarlyEndReason, ModelCall, RecordedToolCall, RecordedToolResult, RecordingHeader,
        RecordingLine,
    },
    remove_hidden_arguments,
};

/// Maximum size of `RecordingWriter::numbers`, the numbers of recorded messages and tool lists.
/// When it is reached, all numbers are removed, and repeated items are written again. This limits
/// the memory of a server that records for days.
const MAX_KNOWN_ITEMS: usize = 1 << 16;

/// A recorder of the traffic of models and tools. Clones write to the same recording.
///
/// A response is written as soon as it ends. If the program is killed, the recording contains all
/// responses that ended before. A write error does not fail a run; [`Recorder::finish_recording`]
/// returns the error.
#[derive(Clone, derive_more::Debug)]
#[debug("Recorder {{ conversation: {conversation:?}, .. }}")]
pub struct Recorder {
    shared: Arc<SharedWriter>,
    conversation: Option<Arc<str>>,
    /// Tool arguments that the recorder omits, because the host and not the model adds them to tool
    /// calls.
    hidden: ContextInjection,
}

struct SharedWriter {
    redaction: Redaction,
    writer: Mutex<RecordingWriter>,
}

struct RecordingWriter {
    output: Box<dyn Write + Send>,
    /// Numbers of the messages and tool lists in the recording, by a hash of their JSON.
    numbers: HashMap<u64, usize>,
    hash_key: RandomState,
    last_number: usize,
    /// The last recorded tool catalog before redaction, for comparison with the next catalog.
    catalog: Option<ToolCatalog>,
    catalogs: usize,
    tool_calls: usize,
    error: Option<Arc<RecordingError>>,
}

impl Recorder {
    /// Starts a recording and writes its first line to `output`. `program` is the name and version
    /// of the recording program, such as `switchboard 0.1.0`. `redactor` removes secrets from all
    /// data before it is written.
    pub fn new(
        output: impl Write + Send + 'static,
        program: &str,
        redactor: Redactor,
    ) -> Result<Self, RecordingError> {
        let mut writer = RecordingWriter {
            output: Box::new(output),
            numbers: HashMap::new(),
            hash_key: RandomState::new(),
            last_number: 0,
            catalog: None,
            catalogs: 0,
            tool_calls: 0,
            error: None,
        };
        writer.write_line(&RecordingHeader::new(program))?;
        Ok(Self {
            shared: Arc::new(SharedWriter {
                redaction: Redaction::new(redactor),
                writer: Mutex::new(writer),
            }),
            conversation: None,
            hidden: ContextInjection::new(),
        })
    }

    /// Returns a recorder that omits the arguments in `hidden`, which the host adds to tool calls,
    /// from recorded inputs. It also redacts their values in recorded results and errors.
    #[must_use]
    pub fn with_hidden_arguments(mut self, hidden: ContextInjection) -> Self {
        self.hidden = hidden;
        self
    }

    /// Returns a recorder for one of several concurrent conversations. A replay selects this
    /// conversation with [`Player::select_conversation`](super::Player::select_conversation).
    #[must_use]
    pub fn with_conversation(&self, name: &str) -> Self {
        Self {
            conversation: Some(self.shared.redaction.redact_label(name).into()),
            ..self.clone()
        }
    }

    /// Returns a model that forwards to `model` and records its traffic.
    ///
    /// Model requests of an MCP server during a tool call (sampling) must use `model` and not the
    /// returned model. A replay does not repeat them, because it returns the recorded tool result.
    pub fn record_model(&self, model: Arc<dyn ChatModel>) -> Arc<dyn ChatModel> {
        Arc::new(RecordingModel {
            recorder: self.clone(),
            model,
        })
    }

    /// Returns a tool host that forwards to `host` and records its tools and results.
    pub fn record_tools(&self, host: Arc<dyn ToolHost>) -> Arc<dyn ToolHost> {
        Arc::new(RecordingToolHost {
            recorder: self.clone(),
            host,
        })
    }

    /// Flushes the output. If this or an earlier write failed, returns the error of the first
    /// failed write. Nothing is written after a failed write.
    pub fn finish_recording(&self) -> Result<(), Arc<RecordingError>> {
        self.write_or_store_error(|writer, _| writer.output.flush().map_err(RecordingError::Write));
        self.lock_writer().error.clone().map_or(Ok(()), Err)
    }

    fn lock_writer(&self) -> MutexGuard<'_, RecordingWriter> {
        let writer = self.shared.writer.lock();
        writer.unwrap_or_else(PoisonError::into_inner)
    }

    fn write_or_store_error(
        &self,
        write: impl FnOnce(&mut RecordingWriter, &Redaction) -> Result<(), RecordingError>,
    ) {
        let mut writer = self.lock_writer();
        if writer.error.is_none()
            && let Err(error) = write(&mut writer, &self.shared.redaction)
        {
            writer.error = Some(Arc::new(error));
        }
    }
}

impl RecordingWriter {
    fn write_line(&mut self, line: &impl Serialize) -> Result<(), RecordingError> {
        let mut text = serde_json::to_string(line).map_err(RecordingError::Serialize)?;
        text.push('\n');
        let written = self.output.write_all(text.as_bytes());
        let written = written.and_then(|()| self.output.flush());
        written.map_err(RecordingError::Write)
    }

    /// Returns the number of a message or tool list in the recording. Writes the item first if the
    /// recording does not contain it yet.
    fn find_or_write_item(
        &mut self,
        item: Value,
        line: impl FnOnce(usize, Value) -> RecordingLine,
    ) -> Result<usize, RecordingError> {
        let hash = self.hash_key.hash_one(item.to_string());
        if let Some(number) = self.numbers.get(&hash) {
            return Ok(*number);
        }
        if self.numbers.len() >= MAX_KNOWN_ITEMS {
            self.numbers.clear();
        }
        self.last_number += 1;
        let number = self.last_number;
        self.write_line(&line(number, item))?;
        self.numbers.insert(hash, number);
        Ok(number)
    }
}

struct RecordingModel {
    recorder: Recorder,
    model: Arc<dyn ChatModel>,
}

#[async_trait]
impl ChatModel for RecordingModel {
    fn id(&self) -> &ModelId {
        self.model.id()
    }

    fn capabilities(&self) -> &ModelCapabilities {
        self.model.capabilities()
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ModelStream, ModelError> {
        // The guard is created before the request is sent. It records the request even if the
        // caller drops this future before the response starts.
        let mut recorded = ResponseRecordingGuard {
            recorder: self.recorder.clone(),
            catalogs: self.recorder.lock_writer().catalogs,
            model: Arc::clone(&self.model),
            request: request.clone(),
            events: Vec::new(),
            is_recorded: false,
        };
        match self.model.stream(request).await {
            Ok(stream) => {
                let state = (stream, recorded);
                Ok(Box::pin(unfold(
                    state,
                    |(mut stream, mut recorded)| async {
                        let next = stream.next().await;
                        recorded.add_stream_item(next.as_ref());
                        Some((next?, (stream, recorded)))
                    },
                )))
            }
            Err(error) => {
                recorded.record_response(Some(EarlyEndReason::Error(Box::new((&error).into()))));
                Err(error)
            }
        }
    }
}

/// A guard that records a model response when the response has ended or is dropped.
struct ResponseRecordingGuard {
    recorder: Recorder,
    catalogs: usize,
    model: Arc<dyn ChatModel>,
    request: ChatRequest,
    events: Vec<ModelEvent>,
    is_recorded: bool,
}

impl ResponseRecordingGuard {
    /// Adds the next item of the response stream. An error or `None`, the end of the stream, writes
    /// the response to the recording.
    fn add_stream_item(&mut self, next: Option<&Result<ModelEvent, ModelError>>) {
        match next {
            // The provider adapter repeats a failed attempt. A replay needs only the last attempt,
            // so the events of the failed attempt are discarded.
            Some(Ok(ModelEvent::Retrying { .. })) => self.events.clear(),
            Some(Ok(event)) => self.events.push(event.clone()),
            Some(Err(error)) => {
                self.record_response(Some(EarlyEndReason::Error(Box::new(error.into()))));
            }
            None => self.record_response(None),
        }
    }

    fn record_response(&mut self, end: Option<EarlyEndReason>) {
        if mem::replace(&mut self.is_recorded, true) {
            return;
        }
        let mut events = mem::take(&mut self.events);
        self.recorder.write_or_store_error(|writer, redaction| {
            let mut messages = Vec::new();
            for message in &self.request.messages {
                let message = redaction.redact_to_json(message)?;
                let line = |number, message| RecordingLine::Message { number, message };
                messages.push(writer.find_or_write_item(message, line)?);
            }
            let tools = redaction.redact_to_json(&self.request.tools)?;
            let tools = writer.find_or_write_item(tools, |number, tools| RecordingLine::Tools {
                number,
                tools,
            })?;
            let call = ModelCall {
                conversation: self.recorder.conversation.clone(),
                catalogs: self.catalogs,
                model: redaction.redact_model_id(self.model.id()),
                capabilities: self.model.capabilities().clone(),
                messages,
                tools,
                settings: redaction.redact_request_settings(&self.request)?,
                redacted_inputs: redaction.redact_events(&mut events)?,
                events,
                end: end.map(|end| redact_incomplete_reason(end, redaction)),
            };
            writer.write_line(&RecordingLine::ModelCall(Box::new(call)))
        });
    }
}

/// Redacts the error of a response, because a gateway may quote parts of the request in it.
fn redact_incomplete_reason(mut end: EarlyEndReason, redaction: &Redaction) -> EarlyEndReason {
    if let EarlyEndReason::Error(error) = &mut end {
        error.provider = redaction.redact_label(&error.provider);
        let subject = match &mut error.kind {
            ModelErrorKind::InvalidRequest { field } => field.as_mut(),
            ModelErrorKind::Unsupported { feature } => Some(feature),
            _ => None,
        };
        let texts = subject.into_iter().chain(&mut error.request_id);
        for text in texts.chain([&mut error.message]) {
            *text = redaction.redact_text(text);
        }
    }
    end
}

impl Drop for ResponseRecordingGuard {
    fn drop(&mut self) {
        // A caller may drop the stream after the event `Finished`. Such a response is complete and
        // is not recorded as `Dropped`.
        let mut events = self.events.iter();
        let is_complete = events.any(|event| matches!(event, ModelEvent::Finished { .. }));
        self.record_response((!is_complete).then_some(EarlyEndReason::Dropped));
    }
}

struct RecordingToolHost {
    recorder: Recorder,
    host: Arc<dyn ToolHost>,
}

#[async_trait]
impl ToolHost for RecordingToolHost {
    async fn list_tools(&self) -> ToolCatalog {
        let catalog = self.host.list_tools().await;
        self.recorder.write_or_store_error(|writer, redaction| {
            // A catalog is recorded only if it has changed, because a run lists the tools before
            // each model request.
            if writer.catalog.as_ref() != Some(&catalog) {
                writer.write_line(&RecordingLine::Catalog(redaction.redact_item(&catalog)?))?;
                writer.catalog = Some(catalog.clone());
                writer.catalogs += 1;
            }
            Ok(())
        });
        catalog
    }

    async fn call_tool(&self, call: ToolCall) -> Result<ToolOutput, ToolCallError> {
        let recorder = &self.recorder;
        let (number, input) = {
            let mut writer = recorder.lock_writer();
            writer.tool_calls += 1;
            let input = call.input.clone().into_object();
            let catalog = writer.catalog.iter();
            let input = remove_hidden_arguments(&recorder.hidden, catalog, &call.name, input);
            (writer.tool_calls, input)
        };
        let mut pending = ToolCallRecordingGuard {
            recorder: recorder.clone(),
            number,
            tool: call.name.clone(),
            input: Some(input),
        };
        let result = self.host.call_tool(call).await;
        pending.record_call(match &result {
            Ok(output) => RecordedToolResult::Output(output.clone()),
            Err(error) => RecordedToolResult::Error(error.clone()),
        });
        result
    }

    fn watch_changes(&self) -> ToolHostChanges {
        self.host.watch_changes()
    }
}

/// Returns the text in a tool error that the MCP server may have written, so that the caller can
/// redact it. Returns `None` for errors without such a text.
fn error_text_mut(error: &mut ToolCallError) -> Option<&mut String> {
    match error {
        ToolCallError::Refused { message, .. } => Some(message),
        ToolCallError::Unavailable { reason, .. }
        | ToolCallError::Broken { reason, .. }
        | ToolCallError::InvalidAnswer { reason, .. } => Some(reason),
        _ => None,
    }
}

/// A guard that records a tool call when the call has ended or is dropped.
struct ToolCallRecordingGuard {
    recorder: Recorder,
    number: usize,
    tool: String,
    /// Input of the tool call. `None` after the call was recorded.
    input: Option<JsonObject>,
}

impl ToolCallRecordingGuard {
    fn record_call(&mut self, result: RecordedToolResult) {
        let Some(input) = self.input.take() else {
            return;
        };
        let hidden = &self.recorder.hidden;
        self.recorder.write_or_store_error(|writer, redaction| {
            let input = match redaction.redact_value(&Value::Object(input)) {
                Value::Object(input) => input,
                _ => JsonObject::new(),
            };
            let result = match result {
                RecordedToolResult::Output(mut output) => {
                    hidden.redact_output(&mut output);
                    RecordedToolResult::Output(redaction.redact_item(&output)?)
                }
                RecordedToolResult::Error(mut error) => {
                    if let Some(text) = error_text_mut(&mut error) {
                        *text = redaction.redact_text(&hidden.redact_text(text));
                    }
                    RecordedToolResult::Error(error)
                }
                RecordedToolResult::Dropped => RecordedToolResult::Dropped,
            };
            writer.write_line(&RecordingLine::ToolCall(Box::new(RecordedToolCall {
                conversation: self.recorder.conversation.clone(),
                number: self.number,
                tool: redaction.redact_identifier(&self.tool),
                input,
                result,
            })))
        });
    }
}

impl Drop for ToolCallRecordingGuard {
    fn drop(&mut self) {
        self.record_call(RecordedToolResult::Dropped);
    }
}
