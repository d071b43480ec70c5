//! Transcripts: the events of a turn, shortened for display in a report.
//!
//! A transcript is limited: 64 KiB per text, 16 KiB per input or result, 256 KiB of text per turn
//! and 2,000 entries. The numbers of omitted bytes and entries are stored. Media are described, not
//! included. Progress of tools is omitted.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use switchboard_domain::ToolContent;
use switchboard_orchestration::{RunEventKind, ToolCallRecord, ToolFailure};

use super::is_zero;
use crate::recording::Redaction;

/// Maximum size in bytes of one text of the model. Longer texts are cut.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// Maximum size in bytes of each tool input, tool result and note (an event as text). Longer texts
/// are cut.
const MAX_DETAIL_BYTES: usize = 16 << 10;

/// Maximum size in bytes of all texts in the transcript of one turn. Further texts are omitted.
const MAX_TURN_BYTES: usize = 256 << 10;

/// Maximum number of events in the transcript of a turn. Also the maximum number of notes (events
/// as text) about one tool call. Further events and notes are omitted.
const MAX_ENTRIES: usize = 2_000;

/// Maximum size in bytes of a model, tool or server name. Longer names are cut.
const MAX_NAME_BYTES: usize = 512;

/// The transcript of one turn: its events as JSON, for display in a report.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Transcript {
    /// The events in order, as JSON objects. `at_ms` is the time since the user message in
    /// milliseconds, and `type` the kind of event:
    ///
    /// | `type` | fields |
    /// |---|---|
    /// | `model_request` | `step` (from 1), `model`, `tools` (number of offered tools) |
    /// | `model_response` | `step`, `model` (in the response), `reason` (finish reason), `usage` |
    /// | `reasoning`, `text` | text of the model |
    /// | `provider` | `kind` and text of an action that the provider ran itself |
    /// | `call` | `id`, `server`, `tool`, `scored_call` (score index), `input`, `notes`, `result` |
    /// | `note` | `kind` of the run event, and its other fields as text |
    ///
    /// A text consists of `text` and, if it was cut, `omitted` (number of bytes). A tool call is
    /// listed where the model requested it. Its notes have `at_ms`, `kind` and a text; its result
    /// has `at_ms`, `is_error`, `failure`, `cached`, `attempts`, `duration_ms` and `content` (a
    /// list of texts).
    pub entries: Vec<Value>,
    /// Number of events that the transcript omits, because it already contains 2,000 events.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: u64,
}

impl Transcript {
    /// Returns whether no event was added to the transcript.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.omitted == 0
    }
}

/// A builder that converts run events to a redacted transcript of one turn.
pub(crate) struct TranscriptBuilder<'a> {
    redaction: &'a Redaction,
    transcript: Transcript,
    /// Text that the model is still emitting. It is redacted when it is complete, because a secret
    /// may be split between deltas.
    text: Option<UnfinishedModelText>,
    /// Number of bytes of text that can still be added to the transcript of this turn.
    bytes_left: usize,
}

struct UnfinishedModelText {
    at_ms: u64,
    is_reasoning: bool,
    text: String,
}

impl<'a> TranscriptBuilder<'a> {
    pub(crate) fn new(redaction: &'a Redaction) -> Self {
        Self {
            redaction,
            transcript: Transcript::default(),
            text: None,
            bytes_left: MAX_TURN_BYTES,
        }
    }

    /// Adds a run event. `at_ms` is its time in milliseconds since the user message.
    pub(crate) fn add_run_event(&mut self, event: &RunEventKind, at_ms: u64) {
        match event {
            RunEventKind::TextDelta { text } => self.add_text_delta(text, false, at_ms),
            RunEventKind::ReasoningDelta { text } => self.add_text_delta(text, true, at_ms),
            // These events are omitted: they repeat the content of other events or do not help a
            // reader of the transcript.
            RunEventKind::ToolInputStarted { .. }
            | RunEventKind::ToolInputDelta { .. }
            | RunEventKind::ToolStarted { .. }
            | RunEventKind::ToolProgressed { .. }
            | RunEventKind::RunStarted { .. } => {}
            event => {
                self.finish_text();
                self.add_non_delta_event(event, at_ms);
            }
        }
    }

    /// Returns the finished transcript. Sets the field `scored_call` of each entry with the type
    /// `call` to the index of the tool call in `calls`. `calls` must have the order of the turn's
    /// scored calls.
    pub(crate) fn finish_transcript(mut self, calls: &[ToolCallRecord]) -> Transcript {
        self.finish_text();
        for entry in &mut self.transcript.entries {
            let mut calls = calls.iter();
            let is_call = |it: &ToolCallRecord| entry["id"] == shorten_name(&it.id);
            if let Some(position) = calls.position(is_call) {
                entry["scored_call"] = json!(position);
            }
        }
        self.transcript
    }

    fn add_text_delta(&mut self, text: &str, is_reasoning: bool, at_ms: u64) {
        match &mut self.text {
            Some(pending) if pending.is_reasoning == is_reasoning => pending.text.push_str(text),
            _ => {
                self.finish_text();
                self.text = Some(UnfinishedModelText {
                    at_ms,
                    is_reasoning,
                    text: text.to_owned(),
                });
            }
        }
    }

    fn finish_text(&mut self) {
        let Some(pending) = self.text.take().filter(|it| !it.text.is_empty()) else {
            return;
        };
        let is_reasoning = pending.is_reasoning;
        let kind = if is_reasoning { "reasoning" } else { "text" };
        let text = self.redacted_text_excerpt(&pending.text, MAX_TEXT_BYTES);
        self.push_entry(kind, pending.at_ms, text);
    }

    fn add_non_delta_event(&mut self, event: &RunEventKind, at_ms: u64) {
        match event {
            RunEventKind::ModelCallStarted {
                step, model, tools, ..
            } => {
                let fields = json!({"step": step, "model": model, "tools": tools});
                self.push_entry("model_request", at_ms, fields);
            }
            RunEventKind::ModelCallFinished {
                step,
                model,
                finish_reason,
                usage,
                ..
            } => {
                let fields = json!({
                    "step": step,
                    "model": model.as_deref().map(shorten_name),
                    "reason": shorten_name(finish_reason.as_str()),
                    "usage": (!is_zero(&**usage)).then_some(usage),
                });
                self.push_entry("model_response", at_ms, fields);
            }
            RunEventKind::ProviderBlock { kind, text } => {
                let text = text.as_deref().unwrap_or_default();
                let mut fields = self.redacted_text_excerpt(text, MAX_DETAIL_BYTES);
                fields["kind"] = json!(shorten_name(kind));
                self.push_entry("provider", at_ms, fields);
            }
            RunEventKind::ToolPlanned {
                id,
                server,
                tool,
                input,
            } => {
                let fields = json!({
                    "id": shorten_name(id),
                    "server": server.as_deref().map(shorten_name),
                    "tool": shorten_name(tool),
                    "input": self.redacted_json_excerpt(input),
                });
                self.push_entry("call", at_ms, fields);
            }
            RunEventKind::ToolFinished {
                id,
                is_error,
                failure,
                cached,
                attempts,
                duration_ms,
                content,
                structured,
            } => {
                let content: Vec<String> = content.iter().map(ToolContent::as_text).collect();
                let content = match structured {
                    Some(structured) if content.is_empty() => {
                        self.redacted_json_excerpt(structured)
                    }
                    _ => self.redacted_text_excerpt(&content.join("\n"), MAX_DETAIL_BYTES),
                };
                let mut result = json!({
                    "at_ms": at_ms,
                    "is_error": is_error,
                    "cached": cached,
                    "attempts": attempts,
                    "duration_ms": duration_ms,
                    "content": [content],
                });
                if let Some(failure) = failure {
                    result["failure"] = json!(ToolFailure::as_str(*failure));
                }
                if let Some(call) = self.find_call_mut(id) {
                    call["result"] = result;
                }
            }
            RunEventKind::RunFinished { report } if report.error.is_none() => {}
            event => self.add_note(event, at_ms),
        }
    }

    /// Adds an event as a note: the kind of the event and its other fields as text. If the event is
    /// about a tool call, the note is added to the transcript entry of this call.
    fn add_note(&mut self, event: &RunEventKind, at_ms: u64) {
        let Ok(Value::Object(mut fields)) = serde_json::to_value(event) else {
            return;
        };
        if let RunEventKind::RunFinished { report } = event {
            let error = report.error.as_ref().map(|it| Value::from(&*it.message));
            fields.retain(|name, _| name == "type");
            fields.extend(error.map(|error| ("error".to_owned(), error)));
        }
        let mut name = |field: &str| match fields.shift_remove(field) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let (kind, id) = (name("type").unwrap_or_default(), name("id"));
        let Value::Object(fields) = self.redaction.redact_value(&Value::Object(fields)) else {
            return;
        };
        let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
        let fields = fields.map(|(name, value)| match value {
            Value::String(text) => format!("{name}: {text}"),
            value => format!("{name}: {value}"),
        });
        let text = fields.collect::<Vec<_>>().join("; ");
        let mut note = self.cut_to_byte_limit(&text, MAX_DETAIL_BYTES);
        note["kind"] = json!(kind);
        let Some(call) = id.and_then(|id| self.find_call_mut(&id)) else {
            return self.push_entry("note", at_ms, note);
        };
        note["at_ms"] = json!(at_ms);
        match &mut call["notes"] {
            Value::Array(notes) if notes.len() < MAX_ENTRIES => notes.push(note),
            Value::Array(_) => {}
            notes => *notes = json!([note]),
        }
    }

    fn find_call_mut(&mut self, id: &str) -> Option<&mut Value> {
        let mut entries = self.transcript.entries.iter_mut().rev();
        entries.find(|entry| entry["id"] == shorten_name(id))
    }

    /// Adds an entry to the transcript. If the transcript already has [`MAX_ENTRIES`] entries, only
    /// counts the new entry as omitted.
    fn push_entry(&mut self, kind: &str, at_ms: u64, fields: Value) {
        if self.transcript.entries.len() >= MAX_ENTRIES {
            self.transcript.omitted += 1;
            return;
        }
        let mut entry = Map::new();
        entry.insert("at_ms".to_owned(), json!(at_ms));
        entry.insert("type".to_owned(), json!(kind));
        if let Value::Object(fields) = fields {
            entry.extend(fields.into_iter().filter(|(_, value)| !value.is_null()));
        }
        self.transcript.entries.push(Value::Object(entry));
    }

    fn redacted_json_excerpt(&mut self, value: &Value) -> Value {
        let clean = self.redaction.redact_value(value).to_string();
        self.cut_to_byte_limit(&clean, MAX_DETAIL_BYTES)
    }

    /// Redacts a text and cuts it to `max_bytes`. Returns a JSON object with the `text` and, if the
    /// text was cut, the number of `omitted` bytes.
    fn redacted_text_excerpt(&mut self, text: &str, max_bytes: usize) -> Value {
        let clean = self.redaction.redact_text(text);
        self.cut_to_byte_limit(&clean, max_bytes)
    }

    fn cut_to_byte_limit(&mut self, text: &str, max_bytes: usize) -> Value {
        let end = text.floor_char_boundary(max_bytes.min(self.bytes_left));
        self.bytes_left -= end;
        match text.split_at(end) {
            (text, "") => json!({ "text": text }),
            (text, rest) => json!({ "text": text, "omitted": rest.len() }),
        }
    }
}

fn shorten_name(name: &str) -> String {
    name[..name.floor_char_boundary(MAX_NAME_BYTES)].to_owned()
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;
