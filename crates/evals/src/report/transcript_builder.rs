//! Builds a transcript from the events of a run.

use serde_json::Value;
use switchboard_domain::ToolContent;
use switchboard_orchestration::{RunEventKind, ToolCallRecord, ToolFailure};

use super::transcript::{Call, CallNote, CallResult, Entry, Event, Excerpt, Transcript};
use crate::recording::Redaction;

/// Maximum size of one text that the model emitted, in bytes.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// Maximum size of a tool input, tool result or event note, in bytes.
const MAX_DETAIL_BYTES: usize = 16 << 10;

/// Maximum size of all texts in the transcript of a turn, in bytes.
const MAX_TURN_BYTES: usize = 256 << 10;

/// Maximum number of events in the transcript of a turn, and of notes of a tool call.
const MAX_ENTRIES: usize = 2_000;

/// Maximum size of a model, tool or server name in bytes.
const MAX_NAME_BYTES: usize = 512;

/// A builder of redacted transcripts from run events.
pub(crate) struct TranscriptBuilder<'a> {
    redaction: &'a Redaction,
    transcript: Transcript,
    /// The text that the model is emitting. It is redacted when complete, because deltas may split
    /// a secret.
    text: Option<PendingText>,
    /// Number of bytes that the transcript of this turn may still use.
    bytes_left: usize,
}

struct PendingText {
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

    /// Adds a run event with its time in milliseconds since the user message.
    pub(crate) fn add(&mut self, event: &RunEventKind, at_ms: u64) {
        match event {
            RunEventKind::TextDelta { text } => self.add_delta(text, false, at_ms),
            RunEventKind::ReasoningDelta { text } => self.add_delta(text, true, at_ms),
            // These events repeat the content of other events, or a reader of the transcript does
            // not need them.
            RunEventKind::ToolInputStarted { .. }
            | RunEventKind::ToolInputDelta { .. }
            | RunEventKind::ToolStarted { .. }
            | RunEventKind::ToolProgressed { .. }
            | RunEventKind::RunStarted { .. } => {}
            event => {
                self.finish_text();
                self.add_event(event, at_ms);
            }
        }
    }

    /// Returns the finished transcript. `calls` are all calls of the run, in the same order as the
    /// scored calls.
    pub(crate) fn finish(mut self, calls: &[ToolCallRecord]) -> Transcript {
        self.finish_text();
        for entry in &mut self.transcript.entries {
            if let Event::Call(call) = &mut entry.event {
                call.scored_call = calls.iter().position(|it| shorten_name(&it.id) == call.id);
            }
        }
        self.transcript
    }

    fn add_delta(&mut self, text: &str, is_reasoning: bool, at_ms: u64) {
        match &mut self.text {
            Some(pending) if pending.is_reasoning == is_reasoning => pending.text.push_str(text),
            _ => {
                self.finish_text();
                self.text = Some(PendingText {
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
        let excerpt = self.redacted_excerpt(&pending.text, MAX_TEXT_BYTES);
        let event = if pending.is_reasoning {
            Event::Reasoning(excerpt)
        } else {
            Event::Text(excerpt)
        };
        self.push_event(event, pending.at_ms);
    }

    fn add_event(&mut self, event: &RunEventKind, at_ms: u64) {
        match event {
            RunEventKind::ModelCallStarted {
                step, model, tools, ..
            } => {
                let (step, model, tools) = (*step, model.clone(), *tools);
                self.push_event(Event::ModelRequest { step, model, tools }, at_ms);
            }
            RunEventKind::ModelCallFinished {
                step,
                model,
                finish_reason,
                usage,
                ..
            } => {
                let event = Event::ModelResponse {
                    step: *step,
                    model: model.as_deref().map(shorten_name),
                    reason: shorten_name(finish_reason.as_str()),
                    usage: **usage,
                };
                self.push_event(event, at_ms);
            }
            RunEventKind::ProviderBlock { kind, text } => {
                let text =
                    self.redacted_excerpt(text.as_deref().unwrap_or_default(), MAX_DETAIL_BYTES);
                let kind = shorten_name(kind);
                self.push_event(Event::Provider { kind, text }, at_ms);
            }
            RunEventKind::ToolPlanned {
                id,
                server,
                tool,
                input,
            } => {
                let call = Call {
                    id: shorten_name(id),
                    server: server.as_deref().map(shorten_name),
                    tool: shorten_name(tool),
                    scored_call: None,
                    input: self.json_excerpt(input),
                    notes: Vec::new(),
                    result: None,
                };
                self.push_event(Event::Call(Box::new(call)), at_ms);
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
                    Some(structured) if content.is_empty() => self.json_excerpt(structured),
                    _ => self.redacted_excerpt(&content.join("\n"), MAX_DETAIL_BYTES),
                };
                let result = CallResult {
                    at_ms,
                    is_error: *is_error,
                    failure: failure.map(ToolFailure::as_str).map(str::to_owned),
                    cached: *cached,
                    attempts: *attempts,
                    duration_ms: *duration_ms,
                    content: vec![content],
                };
                if let Some(call) = self.call_mut(id) {
                    call.result = Some(result);
                }
            }
            RunEventKind::RunFinished { report } if report.error.is_none() => {}
            event => self.add_note(event, at_ms),
        }
    }

    /// Adds an event as a note. A note about a tool call is added to that call.
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
        let text = self.shorten_text(&text, MAX_DETAIL_BYTES);
        match id.and_then(|id| self.call_mut(&id)) {
            Some(call) if call.notes.len() < MAX_ENTRIES => {
                call.notes.push(CallNote { at_ms, kind, text });
            }
            Some(_) => {}
            None => self.push_event(Event::Note { kind, text }, at_ms),
        }
    }

    fn call_mut(&mut self, id: &str) -> Option<&mut Call> {
        let entries = self.transcript.entries.iter_mut().rev();
        let mut calls = entries.filter_map(|entry| match &mut entry.event {
            Event::Call(call) => Some(&mut **call),
            _ => None,
        });
        calls.find(|call| call.id == shorten_name(id))
    }

    fn push_event(&mut self, event: Event, at_ms: u64) {
        if self.transcript.entries.len() < MAX_ENTRIES {
            self.transcript.entries.push(Entry { at_ms, event });
        } else {
            self.transcript.omitted += 1;
        }
    }

    fn json_excerpt(&mut self, value: &Value) -> Excerpt {
        let clean = self.redaction.redact_value(value).to_string();
        self.shorten_text(&clean, MAX_DETAIL_BYTES)
    }

    /// Returns the beginning of a text after redaction.
    fn redacted_excerpt(&mut self, text: &str, max_bytes: usize) -> Excerpt {
        let clean = self.redaction.redact_text(text);
        self.shorten_text(&clean, max_bytes)
    }

    fn shorten_text(&mut self, text: &str, max_bytes: usize) -> Excerpt {
        let end = text.floor_char_boundary(max_bytes.min(self.bytes_left));
        self.bytes_left -= end;
        Excerpt {
            text: text[..end].to_owned(),
            omitted: (text.len() - end) as u64,
        }
    }
}

fn shorten_name(name: &str) -> String {
    name[..name.floor_char_boundary(MAX_NAME_BYTES)].to_owned()
}
