//! How things look to a person.
//!
//! Answers go to standard output and everything else to standard error. Text from models and
//! servers never reaches a terminal as it is: it could hold escape sequences.

mod approver;
mod card;
mod elicitor;
mod plain;
mod preset;
mod prompt;
mod screen;

use std::io::Write as _;

pub use approver::TerminalApprover;
pub use elicitor::TerminalElicitor;
pub use plain::{is_harmful, one_line, without_controls};
pub use preset::{PresetAnswer, PresetApprover};
pub use prompt::{AsksForLines, NoAnswer, PlainLines, is_somebody_there};
pub use screen::Screen;

use anstream::{ColorChoice, adapter::strip_str};
use anstyle::{AnsiColor, Style};

pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
pub(crate) const DOUBTFUL: Style = AnsiColor::Yellow.on_default();
pub(crate) const STRONG: Style = Style::new().bold();
pub(crate) const FAINT: Style = Style::new().dimmed();

/// Writes a line to standard error; colours only where they are wanted. That nobody can read it is
/// no reason to stop.
///
/// In one write: what servers and others write there comes between lines, not into one, and each piece would be a
/// system call.
pub(crate) fn say(line: impl std::fmt::Display) {
    let mut error = anstream::stderr();
    let mut text = format!("{line}\n");
    if error.current_choice() == ColorChoice::Never {
        text = strip_str(&text).to_string();
    }
    let _ = error.write_all(text.as_bytes());
}

/// Says an error with its causes, on lines of their own where they are long.
pub fn say_error(error: &anyhow::Error) {
    let mut text = without_controls(&error.to_string()).into_owned();
    let mut last = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        // Many errors repeat their cause.
        if !last.contains(&cause) {
            text.push_str(": ");
            text.push_str(&without_controls(&cause));
        }
        last = cause;
    }
    say(format_args!("{BAD}error:{BAD:#} {text}"));
}

/// Says that something is not as it should be, though the work goes on.
pub(crate) fn say_warning(text: &str) {
    say(format_args!(
        "{DOUBTFUL}warning:{DOUBTFUL:#} {}",
        without_controls(text)
    ));
}

/// Says something good to know.
pub(crate) fn say_note(text: &str) {
    say(format_args!(
        "{FAINT}note: {}{FAINT:#}",
        without_controls(text)
    ));
}
