//! Writes the answers and lists of commands to standard output.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal as _, Write as _},
};

use clap::ValueEnum;
use serde::Serialize;
use serde_json::json;
use switchboard_orchestration::{RunEvent, RunEventKind};

use super::{Screen, is_control_character, strip_control_characters};

/// Output format of the answer of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum AnswerFormat {
    /// The answer as text, streamed
    #[default]
    Text,
    /// One object at the end
    Json,
    /// Every event as one line
    Jsonl,
}

/// Output format of a list, such as the list of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ListFormat {
    /// Text for people
    #[default]
    Text,
    /// JSON for programs
    Json,
}

/// Writer that prints the events of a run to standard output in the selected format.
#[derive(Debug)]
pub(crate) struct AnswerWriter {
    form: AnswerFormat,
    terminal: bool,
    /// `true` while the last line on standard output does not end with a line break.
    open_line: bool,
}

impl AnswerWriter {
    pub(crate) fn new(form: AnswerFormat) -> Self {
        Self {
            form,
            terminal: io::stdout().is_terminal(),
            open_line: false,
        }
    }

    /// Writes an event to standard output and shows it on `screen`. Returns an error if standard
    /// output is closed.
    pub(crate) fn show_event(&mut self, event: &RunEvent, screen: &Screen) -> io::Result<()> {
        // The order matters: `screen` removes its spinner before text is written, and prints other
        // messages after `write_event` has ended the line of the answer.
        let is_text = matches!(event.kind, RunEventKind::TextDelta { .. });
        if is_text {
            screen.show_event(&event.kind);
        }
        self.write_event(event)?;
        if !is_text {
            screen.show_event(&event.kind);
        }
        Ok(())
    }

    fn write_event(&mut self, event: &RunEvent) -> io::Result<()> {
        match (self.form, &event.kind) {
            (AnswerFormat::Jsonl, _) => write_json(serde_json::to_string(event)),
            (AnswerFormat::Json, RunEventKind::RunFinished { report }) => write_pretty_json(report),
            (AnswerFormat::Json, RunEventKind::RunParked { waiting }) => {
                write_pretty_json(&json!({
                    "run_id": event.run_id,
                    "outcome": "waiting",
                    "waiting": waiting,
                }))
            }
            (AnswerFormat::Text, RunEventKind::TextDelta { text }) => self.write_answer_text(text),
            // `screen` prints a line about the provider's tool next, so the line of the answer ends
            // here.
            (AnswerFormat::Text, RunEventKind::ProviderBlock { .. }) if self.terminal => {
                self.end_unfinished_line()
            }
            // The line of the answer ends with the model call, so that later text starts a new
            // line.
            (
                AnswerFormat::Text,
                RunEventKind::ModelCallFinished { .. }
                | RunEventKind::ModelCallFailed { .. }
                | RunEventKind::RunFinished { .. },
            ) => self.end_unfinished_line(),
            _ => Ok(()),
        }
    }

    fn write_answer_text(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.open_line = !text.ends_with('\n');
        if self.terminal {
            write_text(&strip_control_characters(text))
        } else {
            write_text(text)
        }
    }

    fn end_unfinished_line(&mut self) -> io::Result<()> {
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

/// Escapes characters that control a terminal as `\uXXXX`. The JSON value does not change, because
/// these characters occur only in strings.
fn escape_control_characters(json: &str) -> String {
    let mut text = String::with_capacity(json.len() + 1);
    for c in json.chars() {
        if is_control_character(c) {
            // Four hexadecimal digits are enough, because all control characters are below U+10000.
            let _ = write!(text, "\\u{:04x}", u32::from(c));
        } else {
            text.push(c);
        }
    }
    text
}

fn write_json(json: serde_json::Result<String>) -> io::Result<()> {
    write_text(&(escape_control_characters(&json?) + "\n"))
}

/// Writes a value as indented JSON to standard output.
pub(crate) fn write_pretty_json(value: &impl Serialize) -> io::Result<()> {
    write_json(serde_json::to_string_pretty(value))
}

/// Writes a value as JSON, or as `text` if the output format is for people.
pub(crate) fn print_json_or_text(
    form: ListFormat,
    value: &impl Serialize,
    text: impl FnOnce() -> String,
) -> io::Result<()> {
    match form {
        ListFormat::Json => write_pretty_json(value),
        ListFormat::Text => print_lines(&text()),
    }
}

/// Writes text of an MCP server. At a terminal, control characters are removed.
pub(crate) fn print_server_text(text: &str) -> io::Result<()> {
    if io::stdout().is_terminal() {
        return print_lines(&strip_control_characters(text));
    }
    let end = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    write_text(&format!("{text}{end}"))
}

pub(crate) fn print_lines(text: &str) -> io::Result<()> {
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
            let text = escape_control_characters(&json);
            assert!(!text.chars().any(is_control_character), "{text}");
            let back: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(back, value);
        }
    }
}
