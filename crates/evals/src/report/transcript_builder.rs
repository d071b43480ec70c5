//! Builds a transcript from the events of a run.

use serde::Serialize;
use serde_json::Value;
use switchboard_domain::{Media, MediaSource, ToolContent, ToolHostChange};
use switchboard_orchestration::{RunEventKind, ToolCallRecord, ToolFailure};

use super::transcript::{
    Call, CallNote, CallResult, ContentPart, Entry, Event, Excerpt, Transcript,
};
use crate::recording::Redaction;

/// Maximum size of a text of the model in bytes.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// Maximum size of an input, a result or a note in bytes.
const MAX_DETAIL_BYTES: usize = 16 << 10;

/// Maximum size of all texts of a turn in bytes.
const MAX_TURN_BYTES: usize = 256 << 10;

/// Maximum number of entries of a turn, notes of a call, and parts of a result.
const MAX_ENTRIES: usize = 2_000;

/// Maximum size of a secret in bytes.
const MAX_SECRET_BYTES: usize = 16 << 10;

/// Maximum size of a name in bytes.
const MAX_NAME_BYTES: usize = 512;

/// Builds a transcript without secrets.
pub(crate) struct TranscriptBuilder<'a> {
    redaction: &'a Redaction,
    transcript: Transcript,
    /// The current text. It is added when it is complete, because a secret may be split.
    text: Option<PendingText>,
    /// Number of bytes left of [`MAX_TURN_BYTES`].
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

    /// Adds an event with its time in milliseconds since the user message.
    pub(crate) fn add(&mut self, event: &RunEventKind, at_ms: u64) {
        match event {
            RunEventKind::TextDelta { text } => self.add_delta(text, false, at_ms),
            RunEventKind::ReasoningDelta { text } => self.add_delta(text, true, at_ms),
            // Other events have the same content, or it is not relevant later.
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

    /// Returns the transcript. `calls` are all calls of the run in the order of the scored calls.
    pub(crate) fn finish(mut self, calls: &[ToolCallRecord]) -> Transcript {
        self.finish_text();
        for entry in &mut self.transcript.entries {
            if let Event::Call(call) = &mut entry.event {
                call.scored_call = calls.iter().position(|it| short_name(&it.id) == call.id);
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
        let excerpt = self.excerpt(&pending.text, MAX_TEXT_BYTES);
        let event = if pending.is_reasoning {
            Event::Reasoning(excerpt)
        } else {
            Event::Text(excerpt)
        };
        self.push(event, pending.at_ms);
    }

    fn add_event(&mut self, event: &RunEventKind, at_ms: u64) {
        match event {
            RunEventKind::ModelCallStarted {
                step, model, tools, ..
            } => {
                let (step, model, tools) = (*step, model.clone(), *tools);
                self.push(Event::ModelRequest { step, model, tools }, at_ms);
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
                    model: model.as_deref().map(short_name),
                    reason: short_name(finish_reason.as_str()),
                    usage: **usage,
                };
                self.push(event, at_ms);
            }
            RunEventKind::ProviderBlock { kind, text } => {
                let text = self.excerpt(text.as_deref().unwrap_or_default(), MAX_DETAIL_BYTES);
                let kind = short_name(kind);
                self.push(Event::Provider { kind, text }, at_ms);
            }
            RunEventKind::ToolPlanned {
                id,
                server,
                tool,
                input,
            } => {
                let call = Call {
                    id: short_name(id),
                    server: server.as_deref().map(short_name),
                    tool: short_name(tool),
                    scored_call: None,
                    input: self.json(input),
                    notes: Vec::new(),
                    result: None,
                };
                self.push(Event::Call(Box::new(call)), at_ms);
            }
            RunEventKind::ToolInputRepaired { id, repairs, input } => {
                let input = self.redaction.value(input);
                let text = format!("{}: {input}", repairs.join("; "));
                self.add_call_note(id, "tool_input_repaired", &text, at_ms);
            }
            RunEventKind::ToolFinished { .. } => self.add_result(event, at_ms),
            event => {
                if let Some((id, kind, text)) = call_note(event) {
                    self.add_call_note(id, kind, &text, at_ms);
                } else if let Some((kind, text)) = note(event) {
                    let text = self.excerpt(&text, MAX_DETAIL_BYTES);
                    let kind = kind.to_owned();
                    self.push(Event::Note { kind, text }, at_ms);
                }
            }
        }
    }

    fn add_result(&mut self, event: &RunEventKind, at_ms: u64) {
        let RunEventKind::ToolFinished {
            id,
            is_error,
            failure,
            cached,
            attempts,
            duration_ms,
            content,
            structured,
        } = event
        else {
            return;
        };
        let mut parts = Vec::new();
        for part in content.iter().take(MAX_ENTRIES) {
            parts.push(self.content_part(part));
        }
        if let (true, Some(structured)) = (content.is_empty(), structured) {
            parts.push(ContentPart::Text(self.json(structured)));
        }
        let result = CallResult {
            at_ms,
            is_error: *is_error,
            failure: failure.map(ToolFailure::as_str).map(str::to_owned),
            cached: *cached,
            attempts: *attempts,
            duration_ms: *duration_ms,
            content: parts,
            omitted: content.len().saturating_sub(MAX_ENTRIES) as u64,
        };
        if let Some(call) = self.call(id) {
            call.result = Some(result);
        }
    }

    fn add_call_note(&mut self, id: &str, kind: &str, text: &str, at_ms: u64) {
        let text = self.excerpt(text, MAX_DETAIL_BYTES);
        let note = CallNote {
            at_ms,
            kind: kind.to_owned(),
            text,
        };
        if let Some(call) = self.call(id)
            && call.notes.len() < MAX_ENTRIES
        {
            call.notes.push(note);
        }
    }

    fn call(&mut self, id: &str) -> Option<&mut Call> {
        let entries = self.transcript.entries.iter_mut().rev();
        let mut calls = entries.filter_map(|entry| match &mut entry.event {
            Event::Call(call) => Some(&mut **call),
            _ => None,
        });
        calls.find(|call| call.id == short_name(id))
    }

    fn push(&mut self, event: Event, at_ms: u64) {
        if self.transcript.entries.len() < MAX_ENTRIES {
            self.transcript.entries.push(Entry { at_ms, event });
        } else {
            self.transcript.omitted += 1;
        }
    }

    fn json(&mut self, value: &Value) -> Excerpt {
        let clean = self.redaction.value(value).to_string();
        self.cut(&clean, MAX_DETAIL_BYTES)
    }

    /// Returns the beginning of a text without secrets. Redacts only a part of a very long text,
    /// and drops the end of that part, which may contain half a secret.
    fn excerpt(&mut self, text: &str, max_bytes: usize) -> Excerpt {
        if self.bytes_left == 0 {
            return self.cut(text, 0);
        }
        let end = text.floor_char_boundary(max_bytes + 2 * MAX_SECRET_BYTES);
        let mut clean = self.redaction.text(&text[..end]);
        if end < text.len() {
            let certain = clean.len().saturating_sub(MAX_SECRET_BYTES);
            clean.truncate(clean.floor_char_boundary(certain));
        }
        let clean_bytes = clean.len();
        let mut excerpt = self.cut(&clean, max_bytes);
        let shown = excerpt.text.len();
        if shown < clean_bytes || end < text.len() {
            excerpt.omitted = text.len().saturating_sub(shown).max(1) as u64;
        }
        excerpt
    }

    fn cut(&mut self, text: &str, max_bytes: usize) -> Excerpt {
        let end = text.floor_char_boundary(max_bytes.min(self.bytes_left));
        self.bytes_left -= end;
        Excerpt {
            text: text[..end].to_owned(),
            omitted: (text.len() - end) as u64,
        }
    }

    fn content_part(&mut self, content: &ToolContent) -> ContentPart {
        let (kind, media_type, uri, bytes) = match content {
            ToolContent::Image(media) => {
                ("image", Some(&media.media_type), uri(media), size(media))
            }
            ToolContent::Audio(media) => {
                ("audio", Some(&media.media_type), uri(media), size(media))
            }
            ToolContent::Resource {
                uri,
                media_type,
                text: None,
                blob,
            } => {
                let size = blob.as_deref().map(decoded_size);
                ("resource", media_type.as_ref(), Some(uri.as_str()), size)
            }
            text => return ContentPart::Text(self.excerpt(&text.as_text(), MAX_DETAIL_BYTES)),
        };
        ContentPart::Media {
            kind: kind.to_owned(),
            media_type: media_type.map(|it| short_name(it)),
            uri: uri.map(|it| self.excerpt(it, MAX_DETAIL_BYTES)),
            bytes,
        }
    }
}

fn short_name(name: &str) -> String {
    name[..name.floor_char_boundary(MAX_NAME_BYTES)].to_owned()
}

fn uri(media: &Media) -> Option<&str> {
    match &media.source {
        MediaSource::Url(url) => Some(url),
        _ => None,
    }
}

fn size(media: &Media) -> Option<u64> {
    match &media.source {
        MediaSource::Base64(data) => Some(decoded_size(data)),
        _ => None,
    }
}

/// Returns the size of base64 data after decoding.
fn decoded_size(base64: &str) -> u64 {
    let data = base64.trim_end_matches('=');
    (data.len() as u64).saturating_mul(3) / 4
}

/// Returns the call id, the event name and the text of an event between call and result.
fn call_note(event: &RunEventKind) -> Option<(&str, &'static str, String)> {
    let (id, kind, text) = match event {
        RunEventKind::ToolAwaitingApproval { id } => (id, "tool_awaiting_approval", String::new()),
        RunEventKind::ToolApproved {
            id,
            edited,
            remembered,
            ..
        } => {
            let text = match (*edited, *remembered) {
                (true, _) => "with another input",
                (false, true) => "by an earlier decision",
                (false, false) => "",
            };
            (id, "tool_approved", text.to_owned())
        }
        RunEventKind::ToolDenied { id, reason } => (id, "tool_denied", reason.clone()),
        RunEventKind::ToolRetried { id, retry } => {
            let text = format!("attempt {}: {}", retry.attempt, retry.reason);
            (id, "tool_retried", text)
        }
        _ => return None,
    };
    Some((id, kind, text))
}

/// Returns the name and the text of another event, or `None` if it is not relevant.
fn note(event: &RunEventKind) -> Option<(&'static str, String)> {
    Some(match event {
        RunEventKind::ToolsUnavailable { problem } => (
            "tools_unavailable",
            format!("{}: {}", problem.server, problem.message),
        ),
        RunEventKind::ServerChanged { change } => ("server_changed", server_change(change)),
        RunEventKind::PhaseStarted { phase, mode } => {
            let mode = mode.as_deref().map(|mode| format!(" by {mode}"));
            ("phase_started", plain(phase) + &mode.unwrap_or_default())
        }
        RunEventKind::HistoryTrimmed {
            left_out,
            tokens_before,
            tokens_after,
            ..
        } => (
            "history_trimmed",
            format!(
                "{left_out} messages omitted; about {tokens_before} tokens became {tokens_after}"
            ),
        ),
        RunEventKind::HistorySummarised { model, error, .. } => {
            let error = error.as_ref().map(|error| format!(": {}", error.message));
            (
                "history_summarised",
                format!("{model}{}", error.unwrap_or_default()),
            )
        }
        RunEventKind::ModelSwitched { from, to, reason } => {
            ("model_switched", format!("from {from} to {to}: {reason}"))
        }
        RunEventKind::ToolsDropped { reason } => ("tools_dropped", reason.clone()),
        RunEventKind::AskedAgain { attempt, reason } => {
            ("asked_again", format!("attempt {attempt}: {reason}"))
        }
        RunEventKind::FormatRepaired { repairs } => ("format_repaired", repairs.join("; ")),
        RunEventKind::ModelCallRetried {
            attempt,
            delay_ms,
            reason,
            ..
        } => (
            "model_call_retried",
            format!("attempt {attempt} after {delay_ms} ms: {reason}"),
        ),
        RunEventKind::ModelCallFailed { error, .. } => ("model_call_failed", error.message.clone()),
        RunEventKind::Warning { warning } => {
            let text = format!("{}: {}", plain(&warning.kind), warning.message);
            ("warning", text)
        }
        RunEventKind::QuestionAsked { question, .. } => {
            let text = format!("{}: {}", question.server, question.message);
            ("question_asked", text)
        }
        RunEventKind::QuestionAnswered { action, .. } => ("question_answered", plain(action)),
        RunEventKind::RunParked { waiting } => ("run_parked", waiting.join(", ")),
        RunEventKind::RunFinished { report } => {
            ("run_finished", report.error.as_ref()?.message.clone())
        }
        _ => return None,
    })
}

fn server_change(change: &ToolHostChange) -> String {
    match change {
        ToolHostChange::ToolsChanged { server } => format!("{server}: tools changed"),
        ToolHostChange::ToolRedefined { server, tool, .. } => {
            format!("{server}: definition of `{tool}` changed")
        }
        ToolHostChange::PromptsChanged { server } => format!("{server}: prompts changed"),
        ToolHostChange::ResourcesChanged { server } => format!("{server}: resources changed"),
        ToolHostChange::ServerState {
            server,
            state,
            reason,
        } => {
            let reason = reason.as_deref().map(|reason| format!(": {reason}"));
            format!("{server} is {state}{}", reason.unwrap_or_default())
        }
        other => plain(other),
    }
}

/// Returns the name of a protocol value for people.
fn plain(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(name)) => name.replace('_', " "),
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}
