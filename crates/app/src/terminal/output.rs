//! Writes to standard output.

use std::io::{self, IsTerminal as _, Write as _};

use clap::ValueEnum;
use serde::Serialize;
use serde_json::json;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};
use switchboard_orchestration::{RunEvent, RunEventKind};

use super::{is_control, without_controls};

/// Output format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum AskOutput {
    /// The answer as text, streamed
    #[default]
    Text,
    /// One object at the end
    Json,
    /// Every event as one line
    Jsonl,
}

/// Output format of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ListOutput {
    /// Text for people
    #[default]
    Text,
    /// JSON for programs
    Json,
}

/// Writes the events of a run to standard output.
#[derive(Debug)]
pub(crate) struct Answer {
    form: AskOutput,
    terminal: bool,
    /// The last line is not ended.
    open_line: bool,
    /// Text that is not written yet.
    pending: String,
}

/// Maximum number of bytes of unwritten text.
const MAX_PENDING_BYTES: usize = 8 * 1024;

impl Answer {
    pub(crate) fn new(form: AskOutput) -> Self {
        Self {
            form,
            terminal: io::stdout().is_terminal(),
            open_line: false,
            pending: String::new(),
        }
    }

    /// Returns whether text is not written yet.
    pub(crate) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Writes the pending text. Fails if the output is closed.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        out.write_all(self.pending.as_bytes())?;
        self.pending.clear();
        out.flush()
    }

    /// Writes an event. Text deltas wait for [`Self::flush`]. Fails if the output is closed.
    pub(crate) fn write(&mut self, event: &RunEvent) -> io::Result<()> {
        match (self.form, &event.kind) {
            (AskOutput::Jsonl, _) => line(event),
            (AskOutput::Json, RunEventKind::RunFinished { report }) => pretty(report),
            (AskOutput::Json, RunEventKind::RunParked { waiting }) => pretty(&json!({
                "run_id": event.run_id,
                "outcome": "waiting",
                "waiting": waiting,
            })),
            (AskOutput::Text, RunEventKind::TextDelta { text }) => self.text(text),
            // The line about the provider's tool on standard error must not continue the answer's
            // line.
            (AskOutput::Text, RunEventKind::ProviderBlock { .. }) if self.terminal => {
                self.end_line()
            }
            // Text after this event starts a new line.
            (
                AskOutput::Text,
                RunEventKind::ModelCallFinished { .. }
                | RunEventKind::ModelCallFailed { .. }
                | RunEventKind::RunFinished { .. },
            ) => self.end_line(),
            _ => Ok(()),
        }
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        if self.terminal {
            self.pending.push_str(&without_controls(text));
        } else {
            self.pending.push_str(text);
        }
        self.open_line = !text.ends_with('\n');
        if self.pending.len() > MAX_PENDING_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn end_line(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.open_line) {
            self.pending.push('\n');
        }
        self.flush()
    }
}

fn line(value: &impl Serialize) -> io::Result<()> {
    json(value, CompactFormatter)
}

fn json(value: &impl Serialize, formatter: impl Formatter) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let mut serializer = Serializer::with_formatter(&mut out, Escaped(formatter));
    value.serialize(&mut serializer)?;
    out.write_all(b"\n")?;
    out.flush()
}

/// Escapes characters that control a terminal as `\uXXXX`. The JSON value stays the same.
struct Escaped<F>(F);

impl<F: Formatter> Formatter for Escaped<F> {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, harmful)) = rest.char_indices().find(|(_, c)| is_control(*c)) {
            self.0.write_string_fragment(writer, &rest[..at])?;
            // All of them are in the Basic Multilingual Plane.
            write!(writer, "\\u{:04x}", u32::from(harmful))?;
            rest = &rest[at + harmful.len_utf8()..];
        }
        self.0.write_string_fragment(writer, rest)
    }

    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_array(writer)
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.0.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.0.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}

/// Writes indented JSON.
pub(crate) fn pretty(value: &impl Serialize) -> io::Result<()> {
    json(value, PrettyFormatter::new())
}

/// Writes text of a server: unchanged for a program, without control characters for a terminal.
pub(crate) fn foreign(text: &str) -> io::Result<()> {
    if io::stdout().is_terminal() {
        return lines(&without_controls(text));
    }
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.is_empty() && !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()
}

pub(crate) fn lines(text: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.is_empty() && !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_the_same_value_and_harmless() {
        let value =
            serde_json::json!({"a\u{202e}": ["x\u{9b}31m", {}, [1, 2.5, null]], "ä": "\"\n"});
        for pretty in [false, true] {
            let mut text = Vec::new();
            let done = if pretty {
                let formatter = Escaped(PrettyFormatter::new());
                value.serialize(&mut Serializer::with_formatter(&mut text, formatter))
            } else {
                value.serialize(&mut Serializer::with_formatter(
                    &mut text,
                    Escaped(CompactFormatter),
                ))
            };
            done.unwrap();
            let text = String::from_utf8(text).unwrap();
            assert!(!text.chars().any(is_control), "{text}");
            assert_eq!(text.contains('\n'), pretty);
            let back: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(back, value);
        }
    }
}
