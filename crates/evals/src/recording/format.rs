//! Defines the lines of a recording file and reads them.

use std::{
    collections::BTreeMap,
    io::{BufRead, Read as _},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_domain::{
    JsonObject, ModelCapabilities, ModelError, ModelErrorKind, ModelEvent, ModelId, ToolCallError,
    ToolCatalog, ToolOutput,
};

use super::{
    RecordingError,
    request_matching::{CanonicalMessage, CanonicalRequest},
};

/// Version of the recording format that this program writes and reads.
pub(super) const VERSION: u32 = 1;

/// Value of the field `format` in the first line, which marks a file as a recording.
const FORMAT: &str = "switchboard-recording";

/// Maximum size in bytes of one line of a recording, which may contain media.
const MAX_LINE_BYTES: u64 = 256 << 20;

/// The first line of a recording, which identifies its format.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RecordingHeader {
    format: String,
    version: u32,
    program: String,
}

impl RecordingHeader {
    pub(super) fn new(program: &str) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            program: program.to_owned(),
        }
    }
}

/// A line of a recording file after the first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum RecordingLine {
    /// A message of a model request, on a separate line, because several requests may contain it.
    /// Lines of the type `ModelCall` refer to it by its `number`.
    Message { number: usize, message: Value },
    /// A tool list of a model request, on a separate line, because several requests may contain it.
    /// Lines of the type `ModelCall` refer to it by its `number`.
    Tools { number: usize, tools: Value },
    /// A model request with the recorded response.
    ModelCall(Box<ModelCall>),
    /// The tools that the tool host listed. Written only if they differ from the last recorded
    /// catalog.
    Catalog(ToolCatalog),
    /// A tool call with the recorded result.
    ToolCall(Box<RecordedToolCall>),
}

/// A model request with its response, as one line of a recording file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ModelCall {
    /// Name of the conversation that sent the model request. `None` for a recorder without a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) conversation: Option<Arc<str>>,
    /// Number of `Catalog` lines that were written before the request was sent. The last of these
    /// catalogs contains the tools of the request.
    pub(super) catalogs: usize,
    pub(super) model: ModelId,
    pub(super) capabilities: ModelCapabilities,
    /// The messages of the request in order, as the numbers of earlier `Message` lines.
    pub(super) messages: Vec<usize>,
    /// The tool list of the request, as the number of an earlier `Tools` line.
    pub(super) tools: usize,
    /// Settings of the request: the request as JSON without its messages and tools.
    pub(super) settings: Value,
    pub(super) events: Vec<ModelEvent>,
    /// Ids of the tool uses in whose input the recorder replaced secrets by `[redacted]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) redacted_inputs: Vec<String>,
    /// Reason why the response is incomplete. `None` for a complete response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) end: Option<EarlyEndReason>,
}

/// Reason why a recorded model response is incomplete.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EarlyEndReason {
    Error(Box<StoredModelError>),
    /// The caller stopped reading the response before its end.
    Dropped,
}

/// A [`ModelError`] of a response, as the recording stores it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StoredModelError {
    pub(super) provider: String,
    pub(super) kind: ModelErrorKind,
    pub(super) message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) request_id: Option<String>,
}

/// A tool call with its result, as one line of a recording file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RecordedToolCall {
    /// Name of the conversation that called the tool. `None` for a recorder without a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) conversation: Option<Arc<str>>,
    /// Number of the call, from 1, in the order of the starts. The lines of a
    /// recording are in the order of the ends.
    pub(super) number: usize,
    pub(super) tool: String,
    pub(super) input: JsonObject,
    pub(super) result: RecordedToolResult,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RecordedToolResult {
    Output(ToolOutput),
    Error(ToolCallError),
    /// The caller stopped waiting before the tool returned a result.
    Dropped,
}

impl From<&ModelError> for StoredModelError {
    fn from(error: &ModelError) -> Self {
        Self {
            provider: error.provider_name().to_owned(),
            kind: error.kind.clone(),
            message: error.message().to_owned(),
            status: error.http_status(),
            request_id: error.request_id().map(ToOwned::to_owned),
        }
    }
}

impl From<StoredModelError> for ModelError {
    fn from(stored: StoredModelError) -> Self {
        let error = Self::new(stored.provider, stored.kind, stored.message);
        let error = error.with_request_id(stored.request_id);
        match stored.status {
            Some(status) => error.with_status(status),
            None => error,
        }
    }
}

/// Parsed content of a recording file.
#[derive(Debug, Default)]
pub(super) struct Recording {
    pub(super) model_calls: Vec<(ModelCall, CanonicalRequest)>,
    pub(super) catalogs: Vec<ToolCatalog>,
    pub(super) tool_calls: Vec<RecordedToolCall>,
    messages: BTreeMap<usize, Arc<CanonicalMessage>>,
    tools: BTreeMap<usize, Arc<Value>>,
}

/// Reads a recording file. Ignores an incomplete last line, which a crashed program may leave.
pub(super) fn read_recording(mut input: impl BufRead) -> Result<Recording, RecordingError> {
    let mut recording = Recording::default();
    let mut bytes = Vec::new();
    for line in 1_usize.. {
        bytes.clear();
        let mut limited = input.by_ref().take(MAX_LINE_BYTES + 1);
        let length = limited.read_until(b'\n', &mut bytes);
        let length = length.map_err(RecordingError::Read)?;
        if line == 1 {
            check_header(&bytes)?;
            continue;
        }
        if length == 0 {
            break;
        }
        let damaged = |reason| RecordingError::Damaged { line, reason };
        if length as u64 > MAX_LINE_BYTES {
            let limit = MAX_LINE_BYTES >> 20;
            return Err(damaged(format!("it is longer than {limit} MiB")));
        }
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice(&bytes) {
            Ok(line) => recording.add_recording_line(line).map_err(damaged)?,
            Err(_) if !bytes.ends_with(b"\n") => break,
            Err(error) => return Err(damaged(json_error_message(&error))),
        }
    }
    recording.tool_calls.sort_by_key(|call| call.number);
    Ok(recording)
}

fn check_header(line: &[u8]) -> Result<(), RecordingError> {
    match serde_json::from_slice::<RecordingHeader>(line) {
        Ok(header) if header.format == FORMAT && header.version == VERSION => Ok(()),
        Ok(header) if header.format == FORMAT => Err(RecordingError::UnknownVersion {
            found: header.version,
        }),
        _ => Err(RecordingError::NotARecording),
    }
}

/// Returns the message of a JSON error without its line and column. These refer to the parsed line
/// of the recording and not to the file.
fn json_error_message(error: &serde_json::Error) -> String {
    let position = format!(" at line {} column {}", error.line(), error.column());
    let text = error.to_string();
    text.strip_suffix(&position)
        .map(str::to_owned)
        .unwrap_or(text)
}

impl Recording {
    fn add_recording_line(&mut self, line: RecordingLine) -> Result<(), String> {
        match line {
            RecordingLine::Message { number, message } => {
                let message = Arc::new(CanonicalMessage::new(message));
                self.messages.insert(number, message);
            }
            RecordingLine::Tools { number, tools } => {
                self.tools.insert(number, Arc::new(tools));
            }
            RecordingLine::ModelCall(call) => {
                let messages = call.messages.iter().map(|number| {
                    let message = self.messages.get(number).cloned();
                    message.ok_or_else(|| format!("message {number} is missing"))
                });
                let messages = messages.collect::<Result<_, _>>()?;
                let tools = self.tools.get(&call.tools).cloned();
                let tools = tools.ok_or_else(|| format!("tools {} are missing", call.tools))?;
                let request = CanonicalRequest::new(messages, tools, call.settings.clone());
                self.model_calls.push((*call, request));
            }
            RecordingLine::Catalog(catalog) => self.catalogs.push(catalog),
            RecordingLine::ToolCall(call) => self.tool_calls.push(*call),
        }
        Ok(())
    }
}
