//! Prints the answers of `chat`. At a terminal, Markdown is rendered.

use std::io::{self, Stdout, stdout};

use switchboard_orchestration::{RunEvent, RunEventKind};

use super::{
    markdown::{MarkdownStyles, MarkdownView},
    raw_mode::terminal_size,
};
use crate::{
    config::environment::Environment,
    terminal::{
        Screen,
        output::{AnswerFormat, AnswerWriter},
        strip_control_characters,
    },
};

/// Destination of the answers that `chat` prints: a terminal, or a pipe or file.
#[derive(Debug)]
pub(crate) enum ChatOutput {
    /// A terminal, at which answers are drawn as rendered Markdown.
    Terminal(Box<MarkdownView<Stdout>>),
    /// A pipe or file, which receives the answers as unchanged text.
    Plain(AnswerWriter),
}

impl ChatOutput {
    pub(crate) fn new(form: AnswerFormat, is_terminal: bool, environment: &Environment) -> Self {
        if !is_terminal {
            return Self::Plain(AnswerWriter::new(form));
        }
        let styles = MarkdownStyles::new(environment.get("NO_COLOR").is_none());
        Self::Terminal(Box::new(MarkdownView::new(stdout(), styles)))
    }

    /// Prints an event of a run: answer text to this output, and other events to `screen`.
    pub(crate) fn show_event(&mut self, event: &RunEvent, screen: &Screen) -> io::Result<()> {
        let kind = &event.kind;
        match self {
            Self::Plain(answer) => answer.show_event(event, screen),
            Self::Terminal(view) => match kind {
                RunEventKind::TextDelta { text } => {
                    screen.show_event(kind);
                    view.append_text(&strip_control_characters(text), terminal_size())
                }
                // Reasoning and tool progress change only the spinner of `screen`, not the answer.
                RunEventKind::ReasoningDelta { .. }
                | RunEventKind::ToolInputStarted { .. }
                | RunEventKind::ToolInputDelta { .. }
                | RunEventKind::ToolProgressed { .. } => {
                    screen.show_event(kind);
                    Ok(())
                }
                // Warnings and notes are printed above the unfinished Markdown block, which is
                // drawn again below them.
                RunEventKind::Warning { .. }
                | RunEventKind::ToolsUnavailable { .. }
                | RunEventKind::ServerChanged { .. }
                | RunEventKind::ProviderBlock { .. } => {
                    view.print_above_open_block(terminal_size(), || screen.show_event(kind))
                }
                _ => {
                    view.finish_text(terminal_size())?;
                    screen.show_event(kind);
                    Ok(())
                }
            },
        }
    }

    /// Prints a complete text, such as an earlier answer of a resumed session.
    pub(crate) fn print_text(&mut self, text: &str) -> io::Result<()> {
        match self {
            Self::Plain(_) => crate::terminal::output::print_lines(&strip_control_characters(text)),
            Self::Terminal(view) => {
                view.append_text(&strip_control_characters(text), terminal_size())?;
                view.finish_text(terminal_size())
            }
        }
    }
}
