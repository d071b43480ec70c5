//! Writes to standard output.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal as _, Write as _},
};

use clap::ValueEnum;
use serde::Serialize;
use serde_json::json;
use switchboard_orchestration::{RunEvent, RunEventKind};

use super::{Screen, is_control, without_controls};

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
    /// `true` if the last written line has no line break yet.
    open_line: bool,
}

impl Answer {
    pub(crate) fn new(form: AskOutput) -> Self {
        Self {
            form,
            terminal: io::stdout().is_terminal(),
            open_line: false,
        }
    }

    /// Writes an event to standard output and shows it on `screen`. Fails if the output is closed.
    pub(crate) fn show(&mut self, event: &RunEvent, screen: &Screen) -> io::Result<()> {
        // Progress bars are removed before text is written. Other messages appear after the
        // answer's line has ended.
        let is_text = matches!(event.kind, RunEventKind::TextDelta { .. });
        if is_text {
            screen.show(&event.kind);
        }
        self.write(event)?;
        if !is_text {
            screen.show(&event.kind);
        }
        Ok(())
    }

    fn write(&mut self, event: &RunEvent) -> io::Result<()> {
        match (self.form, &event.kind) {
            (AskOutput::Jsonl, _) => write_json(serde_json::to_string(event)),
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
        self.open_line = !text.ends_with('\n');
        if self.terminal {
            write_text(&without_controls(text))
        } else {
            write_text(text)
        }
    }

    fn end_line(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.open_line) {
            return write_text("\n");
        }
        Ok(())
    }
}

fn write_text(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Escapes characters that control a terminal as `\uXXXX`. The JSON value stays the same, because
/// these characters occur only in strings.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len() + 1);
    for c in json.chars() {
        if is_control(c) {
            // All control characters are in the Basic Multilingual Plane, so four digits are
            // enough.
            let _ = write!(text, "\\u{:04x}", u32::from(c));
        } else {
            text.push(c);
        }
    }
    text
}

fn write_json(json: serde_json::Result<String>) -> io::Result<()> {
    write_text(&(escaped(&json?) + "\n"))
}

/// Writes a value as indented JSON to standard output.
pub(crate) fn pretty(value: &impl Serialize) -> io::Result<()> {
    write_json(serde_json::to_string_pretty(value))
}

/// Writes a value as JSON, or as text for people.
pub(crate) fn print(
    form: ListOutput,
    value: &impl Serialize,
    text: impl FnOnce() -> String,
) -> io::Result<()> {
    match form {
        ListOutput::Json => pretty(value),
        ListOutput::Text => lines(&text()),
    }
}

/// Writes text of a server: unchanged for a program, without control characters for a terminal.
pub(crate) fn foreign(text: &str) -> io::Result<()> {
    if io::stdout().is_terminal() {
        return lines(&without_controls(text));
    }
    let end = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    write_text(&format!("{text}{end}"))
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
        let compact = serde_json::to_string(&value).unwrap();
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        for json in [compact, pretty] {
            let text = escaped(&json);
            assert!(!text.chars().any(is_control), "{text}");
            let back: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(back, value);
        }
    }
}
