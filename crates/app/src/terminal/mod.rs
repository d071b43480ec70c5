//! Output and questions at the terminal.
//!
//! Answers go to standard output and everything else to standard error. Control characters in text
//! of models and servers are removed, because they could change the terminal.

pub(crate) mod answer_output;
mod approver;
mod control_characters;
mod elicitor;
mod markdown;
pub(crate) mod output;
mod prompt;
mod screen;
pub(crate) mod table;
mod tool_card;

use std::io::Write as _;

pub(crate) use approver::{PresetApprovalDecision, TerminalApprover};
pub(crate) use control_characters::{is_control_character, strip_control_characters, to_one_line};
pub(crate) use elicitor::TerminalElicitor;
pub(crate) use prompt::{
    LineReader, StdinLineReader, UnansweredReason, is_interactive, print_prompt, read_stdin_line,
};
pub(crate) use screen::Screen;

use anstream::{ColorChoice, adapter::strip_str};
use anstyle::{AnsiColor, Style};

pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
pub(crate) const DOUBTFUL: Style = AnsiColor::Yellow.on_default();
pub(crate) const STRONG: Style = Style::new().bold();
pub(crate) const FAINT: Style = Style::new().dimmed();

/// Writes a line to standard error, with colours if the terminal supports them. Ignores write
/// errors.
///
/// The line is a single write, so that output of MCP servers does not mix into it.
pub(crate) fn print_line(line: impl std::fmt::Display) {
    let mut error = anstream::stderr();
    let mut text = format!("{line}\n");
    if error.current_choice() == ColorChoice::Never {
        text = strip_str(&text).to_string();
    }
    let _ = error.write_all(text.as_bytes());
}

/// Prints an error message with its causes on standard error.
pub(crate) fn print_error(error: &anyhow::Error) {
    let mut text = strip_control_characters(&error.to_string()).into_owned();
    let mut last = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        // Many error messages already contain their cause, which is then not repeated.
        if !last.contains(&cause) {
            text.push_str(": ");
            text.push_str(&strip_control_characters(&cause));
        }
        last = cause;
    }
    print_line(format_args!("{BAD}error:{BAD:#} {text}"));
}

/// Prints a warning on standard error, with the prefix `warning:`.
pub(crate) fn print_warning(text: &str) {
    print_line(format_args!(
        "{DOUBTFUL}warning:{DOUBTFUL:#} {}",
        strip_control_characters(text)
    ));
}

/// Prints a note on standard error, with the prefix `note:`.
pub(crate) fn print_note(text: &str) {
    print_line(format_args!(
        "{FAINT}note: {}{FAINT:#}",
        strip_control_characters(text)
    ));
}
