//! Standard output.

use std::io::{self, IsTerminal as _, Write as _};

use serde::Serialize;
use switchboard_orchestration::{RunEvent, RunEventKind};

use super::AskOutput;
use crate::terminal::without_controls;

/// Writes what a run gives to standard output as it comes.
#[derive(Debug)]
pub(super) struct Answer {
    form: AskOutput,
    terminal: bool,
    /// The last thing written did not end its line.
    open_line: bool,
}

impl Answer {
    pub(super) fn new(form: AskOutput) -> Self {
        Self {
            form,
            terminal: io::stdout().is_terminal(),
            open_line: false,
        }
    }

    /// Writes what there is to write of an event. Fails if nobody reads any more.
    pub(super) fn write(&mut self, event: &RunEvent) -> io::Result<()> {
        match (self.form, &event.kind) {
            (AskOutput::Jsonl, _) => line(event),
            (AskOutput::Json, RunEventKind::RunFinished { report }) => pretty(report),
            (AskOutput::Text, RunEventKind::TextDelta { text }) => self.text(text),
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
        let mut out = io::stdout().lock();
        if self.terminal {
            out.write_all(without_controls(text).as_bytes())?;
        } else {
            out.write_all(text.as_bytes())?;
        }
        self.open_line = !text.ends_with('\n');
        out.flush()
    }

    fn end_line(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.open_line) {
            let mut out = io::stdout().lock();
            out.write_all(b"\n")?;
            out.flush()?;
        }
        Ok(())
    }
}

/// One value on one line.
fn line(value: &impl Serialize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, value)?;
    out.write_all(b"\n")?;
    out.flush()
}

/// One value, laid out for people too.
pub(super) fn pretty(value: &impl Serialize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, value)?;
    out.write_all(b"\n")?;
    out.flush()
}

/// Lines of text.
pub(super) fn lines(text: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.is_empty() && !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()
}
