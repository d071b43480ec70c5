//! Standard output.

use std::io::{self, IsTerminal as _, Write as _};

use serde::Serialize;
use serde_json::json;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};
use switchboard_orchestration::{RunEvent, RunEventKind};

use super::AskOutput;
use crate::terminal::{is_harmful, without_controls};

/// Writes what a run gives to standard output as it comes.
#[derive(Debug)]
pub(crate) struct Answer {
    form: AskOutput,
    terminal: bool,
    /// The last thing written did not end its line.
    open_line: bool,
    /// Words that are not written yet: those that come together are written together.
    held: String,
}

/// Bytes of an answer that are held back at most.
const HELD: usize = 8 * 1024;

impl Answer {
    pub(crate) fn new(form: AskOutput) -> Self {
        Self {
            form,
            terminal: io::stdout().is_terminal(),
            open_line: false,
            held: String::new(),
        }
    }

    /// Whether words wait to be written.
    pub(crate) fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// Writes the words that wait. Fails if nobody reads any more.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        out.write_all(self.held.as_bytes())?;
        self.held.clear();
        out.flush()
    }

    /// Writes what there is to write of an event, but for words of the answer, which wait for [`Self::flush`]. Fails if nobody
    /// reads any more.
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
            // Standard error says what the provider did, which would go on in the same line.
            (AskOutput::Text, RunEventKind::ProviderBlock { .. }) if self.terminal => {
                self.end_line()
            }
            // What follows is another thought, or on the same terminal a line of its own.
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
            self.held.push_str(&without_controls(text));
        } else {
            self.held.push_str(text);
        }
        self.open_line = !text.ends_with('\n');
        if self.held.len() > HELD {
            self.flush()?;
        }
        Ok(())
    }

    fn end_line(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.open_line) {
            self.held.push('\n');
        }
        self.flush()
    }
}

/// One value on one line.
fn line(value: &impl Serialize) -> io::Result<()> {
    json(value, CompactFormatter)
}

fn json(value: &impl Serialize, formatter: impl Formatter) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let mut serializer = Serializer::with_formatter(&mut out, Harmless(formatter));
    value.serialize(&mut serializer)?;
    out.write_all(b"\n")?;
    out.flush()
}

/// JSON in which every character that could do something to a terminal is written as `\uXXXX`: the
/// same value, and nothing in it acts on whoever looks at it.
struct Harmless<F>(F);

impl<F: Formatter> Formatter for Harmless<F> {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, harmful)) = rest.char_indices().find(|(_, c)| is_harmful(*c)) {
            self.0.write_string_fragment(writer, &rest[..at])?;
            // None of them lies beyond the sixteen bits of one escape.
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

/// One value, laid out for people too.
pub(crate) fn pretty(value: &impl Serialize) -> io::Result<()> {
    json(value, PrettyFormatter::new())
}

/// Text from elsewhere: as it is for a program, without control characters for a terminal.
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

/// Lines of text.
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
                let formatter = Harmless(PrettyFormatter::new());
                value.serialize(&mut Serializer::with_formatter(&mut text, formatter))
            } else {
                value.serialize(&mut Serializer::with_formatter(
                    &mut text,
                    Harmless(CompactFormatter),
                ))
            };
            done.unwrap();
            let text = String::from_utf8(text).unwrap();
            assert!(!text.chars().any(is_harmful), "{text}");
            assert_eq!(text.contains('\n'), pretty);
            let back: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(back, value);
        }
    }
}
