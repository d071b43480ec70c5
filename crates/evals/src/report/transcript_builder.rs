//! Makes a transcript of the events of a run.

use serde_json::Value;
use switchboard_domain::{Elicitation, Media, MediaSource, ToolContent, ToolHostChange};
use switchboard_orchestration::{RunEventKind, ToolCallRecord, ToolFailure};

use super::transcript::{Call, CallNote, CallResult, Entry, Event, Excerpt, Piece, Transcript};
use crate::recording::Redaction;

/// Bytes of a text of the model.
const TEXT: usize = 64 << 10;

/// Bytes of an input, a result or a note.
const DETAIL: usize = 16 << 10;

/// Bytes of all texts of a turn together.
const TURN: usize = 256 << 10;

/// Entries of a turn; also notes of a call, and pieces of a result.
const ENTRIES: usize = 2_000;

/// Bytes that no secret is longer than.
const SECRET: usize = 16 << 10;

/// Bytes of a name.
const NAME: usize = 512;

/// Writes down what happens in a run, without its secrets.
pub(crate) struct Scribe<'a> {
    redaction: &'a Redaction,
    transcript: Transcript,
    /// What the model is saying. It is written down when it is over: a secret may come in pieces.
    saying: Option<Saying>,
    /// Bytes that may still be kept.
    room: usize,
}

struct Saying {
    at_ms: u64,
    is_reasoning: bool,
    text: String,
}

impl<'a> Scribe<'a> {
    pub(crate) fn new(redaction: &'a Redaction) -> Self {
        Self {
            redaction,
            transcript: Transcript::default(),
            saying: None,
            room: TURN,
        }
    }

    /// Takes in what happened so many milliseconds after the question.
    pub(crate) fn take(&mut self, event: &RunEventKind, at_ms: u64) {
        match event {
            RunEventKind::TextDelta { text } => self.says(text, false, at_ms),
            RunEventKind::ReasoningDelta { text } => self.says(text, true, at_ms),
            // They say the same in pieces, or nothing that is of interest later.
            RunEventKind::ToolInputStarted { .. }
            | RunEventKind::ToolInputDelta { .. }
            | RunEventKind::ToolStarted { .. }
            | RunEventKind::ToolProgressed { .. }
            | RunEventKind::RunStarted { .. } => {}
            event => {
                self.written();
                self.happened(event, at_ms);
            }
        }
    }

    /// The transcript. `calls` are all calls of the run in their order, by which those of the transcript are told.
    pub(crate) fn finish(mut self, calls: &[ToolCallRecord]) -> Transcript {
        self.written();
        for entry in &mut self.transcript.entries {
            if let Event::Call(call) = &mut entry.event {
                call.judged = calls.iter().position(|it| name(&it.id) == call.id);
            }
        }
        self.transcript
    }

    fn says(&mut self, text: &str, is_reasoning: bool, at_ms: u64) {
        match &mut self.saying {
            Some(saying) if saying.is_reasoning == is_reasoning => saying.text.push_str(text),
            _ => {
                self.written();
                self.saying = Some(Saying {
                    at_ms,
                    is_reasoning,
                    text: text.to_owned(),
                });
            }
        }
    }

    /// Writes down what the model was saying.
    fn written(&mut self) {
        let Some(saying) = self.saying.take() else {
            return;
        };
        if saying.text.is_empty() {
            return;
        }
        let excerpt = self.excerpt(&saying.text, TEXT);
        let event = if saying.is_reasoning {
            Event::Reasoning(excerpt)
        } else {
            Event::Text(excerpt)
        };
        self.push(event, saying.at_ms);
    }

    fn happened(&mut self, event: &RunEventKind, at_ms: u64) {
        match event {
            RunEventKind::ModelCallStarted {
                step, model, tools, ..
            } => {
                let (step, model, tools) = (*step, model.clone(), *tools);
                self.push(Event::Asked { step, model, tools }, at_ms);
            }
            RunEventKind::ModelCallFinished {
                step,
                model,
                finish_reason,
                usage,
                ..
            } => {
                let event = Event::Answered {
                    step: *step,
                    model: model.as_deref().map(name),
                    reason: name(finish_reason.as_str()),
                    usage: **usage,
                };
                self.push(event, at_ms);
            }
            RunEventKind::ProviderBlock { kind, text } => {
                let text = self.excerpt(text.as_deref().unwrap_or_default(), DETAIL);
                let kind = name(kind);
                self.push(Event::Provider { kind, text }, at_ms);
            }
            RunEventKind::ToolPlanned {
                id,
                server,
                tool,
                input,
            } => {
                let call = Call {
                    id: name(id),
                    server: server.as_deref().map(name),
                    tool: name(tool),
                    judged: None,
                    input: self.json(input),
                    course: Vec::new(),
                    result: None,
                };
                self.push(Event::Call(Box::new(call)), at_ms);
            }
            RunEventKind::ToolInputRepaired { id, repairs, input } => {
                let input = self.redaction.value(input);
                let text = format!("{}: {input}", repairs.join("; "));
                self.note_of_call(id, "tool_input_repaired", &text, at_ms);
            }
            RunEventKind::ToolFinished { .. } => self.finished(event, at_ms),
            event => match of_call(event) {
                Some((id, about, text)) => self.note_of_call(id, about, &text, at_ms),
                None => {
                    if let Some((about, text)) = in_words(event) {
                        let text = self.excerpt(&text, DETAIL);
                        let about = about.to_owned();
                        self.push(Event::Note { about, text }, at_ms);
                    }
                }
            },
        }
    }

    fn finished(&mut self, event: &RunEventKind, at_ms: u64) {
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
        let mut pieces: Vec<Piece> = Vec::new();
        for piece in content.iter().take(ENTRIES) {
            pieces.push(self.piece(piece));
        }
        if let (true, Some(structured)) = (content.is_empty(), structured) {
            pieces.push(Piece::Text(self.json(structured)));
        }
        let result = CallResult {
            at_ms,
            is_error: *is_error,
            failure: failure.map(ToolFailure::as_str).map(str::to_owned),
            cached: *cached,
            attempts: *attempts,
            duration_ms: *duration_ms,
            content: pieces,
            left_out: content.len().saturating_sub(ENTRIES) as u64,
        };
        if let Some(call) = self.call(id) {
            call.result = Some(result);
        }
    }

    fn note_of_call(&mut self, id: &str, about: &str, text: &str, at_ms: u64) {
        let text = self.excerpt(text, DETAIL);
        let note = CallNote {
            at_ms,
            about: about.to_owned(),
            text,
        };
        if let Some(call) = self.call(id)
            && call.course.len() < ENTRIES
        {
            call.course.push(note);
        }
    }

    /// The call, which is most likely one of the last.
    fn call(&mut self, id: &str) -> Option<&mut Call> {
        let entries = self.transcript.entries.iter_mut().rev();
        let mut calls = entries.filter_map(|entry| match &mut entry.event {
            Event::Call(call) => Some(&mut **call),
            _ => None,
        });
        calls.find(|call| call.id == name(id))
    }

    fn push(&mut self, event: Event, at_ms: u64) {
        if self.transcript.entries.len() < ENTRIES {
            self.transcript.entries.push(Entry { at_ms, event });
        } else {
            self.transcript.left_out += 1;
        }
    }

    fn json(&mut self, value: &Value) -> Excerpt {
        let clean = self.redaction.value(value).to_string();
        self.cut(&clean, DETAIL)
    }

    fn excerpt(&mut self, text: &str, most: usize) -> Excerpt {
        if self.room == 0 {
            return self.cut(text, 0);
        }
        // What is far beyond the bound need not be looked through. The end of what is looked through is not kept: half
        // a secret may be there, which nobody finds.
        let end = text.floor_char_boundary(most + 2 * SECRET);
        let mut clean = self.redaction.text(&text[..end]);
        if end < text.len() {
            clean.truncate(clean.floor_char_boundary(clean.len().saturating_sub(SECRET)));
        }
        let looked_at = clean.len();
        let mut excerpt = self.cut(&clean, most);
        let kept = excerpt.text.len();
        if kept < looked_at || end < text.len() {
            excerpt.left_out = text.len().saturating_sub(kept).max(1) as u64;
        }
        excerpt
    }

    fn cut(&mut self, text: &str, most: usize) -> Excerpt {
        let end = text.floor_char_boundary(most.min(self.room));
        self.room -= end;
        Excerpt {
            text: text[..end].to_owned(),
            left_out: (text.len() - end) as u64,
        }
    }

    fn piece(&mut self, content: &ToolContent) -> Piece {
        let mut bytes =
            |kind: &str, media_type: Option<&str>, address: Option<&str>, bytes| Piece::Bytes {
                kind: kind.to_owned(),
                media_type: media_type.map(name),
                address: address.map(|it| self.excerpt(it, DETAIL)),
                bytes,
            };
        match content {
            ToolContent::Image(media) => {
                let (address, size) = place(media);
                bytes("image", Some(&media.media_type), address, size)
            }
            ToolContent::Audio(media) => {
                let (address, size) = place(media);
                bytes("audio", Some(&media.media_type), address, size)
            }
            ToolContent::Resource {
                uri,
                media_type,
                text: None,
                blob,
            } => {
                let size = blob.as_deref().map(decoded);
                bytes("resource", media_type.as_deref(), Some(uri), size)
            }
            text => Piece::Text(self.excerpt(&text.as_text(), DETAIL)),
        }
    }
}

/// Names are short, or none.
fn name(text: &str) -> String {
    text[..text.floor_char_boundary(NAME)].to_owned()
}

/// Where a medium is, or how many bytes it has.
fn place(media: &Media) -> (Option<&str>, Option<u64>) {
    match &media.source {
        MediaSource::Base64(data) => (None, Some(decoded(data))),
        MediaSource::Url(url) => (Some(url), None),
        _ => (None, None),
    }
}

/// How many bytes base64 with padding stands for.
fn decoded(base64: &str) -> u64 {
    let data = base64.trim_end_matches('=');
    (data.len() as u64).saturating_mul(3) / 4
}

/// What happened to a call before it ended: the call, the event's name, and what it was.
fn of_call(event: &RunEventKind) -> Option<(&str, &'static str, String)> {
    let told = match event {
        RunEventKind::ToolAwaitingApproval { id } => (id, "tool_awaiting_approval", String::new()),
        RunEventKind::ToolApproved {
            id,
            edited,
            remembered,
            ..
        } => {
            let text = match (*edited, *remembered) {
                (true, _) => "with another input",
                (false, true) => "by an earlier answer",
                (false, false) => "",
            };
            (id, "tool_approved", text.to_owned())
        }
        RunEventKind::ToolDenied { id, reason } => (id, "tool_denied", reason.clone()),
        RunEventKind::ToolRetried { id, retry } => {
            let text = format!("attempt {}, since {}", retry.attempt, retry.reason);
            (id, "tool_retried", text)
        }
        _ => return None,
    };
    Some((told.0.as_str(), told.1, told.2))
}

/// What else happened: the event's name, and what it was. `None` of what goes without saying.
fn in_words(event: &RunEventKind) -> Option<(&'static str, String)> {
    Some(match event {
        RunEventKind::ToolsUnavailable { problem } => (
            "tools_unavailable",
            format!("{}: {}", problem.server, problem.message),
        ),
        RunEventKind::ServerChanged { change } => ("server_changed", changed(change)),
        RunEventKind::PhaseStarted { phase, mode } => {
            let phase = plain(phase);
            let by = mode.as_deref().map(|mode| format!(" by {mode}"));
            ("phase_started", phase + &by.unwrap_or_default())
        }
        RunEventKind::HistoryTrimmed {
            left_out,
            tokens_before,
            tokens_after,
            ..
        } => (
            "history_trimmed",
            format!(
                "{left_out} messages are left out: about {tokens_before} tokens become {tokens_after}"
            ),
        ),
        RunEventKind::HistorySummarised { model, error, .. } => {
            let how = error.as_ref().map(|error| format!(": {}", error.message));
            (
                "history_summarised",
                format!("{model}{}", how.unwrap_or_default()),
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
            let Elicitation {
                server, message, ..
            } = &**question;
            ("question_asked", format!("{server}: {message}"))
        }
        RunEventKind::QuestionAnswered { action, .. } => ("question_answered", plain(action)),
        RunEventKind::RunParked { waiting } => ("run_parked", waiting.join(", ")),
        RunEventKind::RunFinished { report } => {
            let error = report.error.as_ref()?;
            ("run_finished", error.message.clone())
        }
        _ => return None,
    })
}

fn changed(change: &ToolHostChange) -> String {
    match change {
        ToolHostChange::ToolsChanged { server } => format!("{server}: its tools"),
        ToolHostChange::ToolRedefined { server, tool, .. } => {
            format!("{server}: what `{tool}` is")
        }
        ToolHostChange::PromptsChanged { server } => format!("{server}: its prompts"),
        ToolHostChange::ResourcesChanged { server } => format!("{server}: its resources"),
        ToolHostChange::ServerState {
            server,
            state,
            reason,
        } => {
            let why = reason.as_deref().map(|reason| format!(", {reason}"));
            format!("{server} is {state}{}", why.unwrap_or_default())
        }
        other => plain(other),
    }
}

/// A word of the protocol as people write it.
fn plain(word: &impl serde::Serialize) -> String {
    match serde_json::to_value(word) {
        Ok(Value::String(word)) => word.replace('_', " "),
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}
