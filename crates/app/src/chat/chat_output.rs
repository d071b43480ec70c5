//! Prints answers of `chat`, with rendered Markdown at a terminal.

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

/// Destination of the answers in a conversation.
#[derive(Debug)]
pub(crate) enum ChatOutput {
    /// A terminal, with rendered Markdown.
    Terminal(Box<MarkdownView<Stdout>>),
    /// A pipe or file, which receives the text unchanged.
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

    /// Prints an event of a run.
    pub(crate) fn show_event(&mut self, event: &RunEvent, screen: &Screen) -> io::Result<()> {
        let kind = &event.kind;
        match self {
            Self::Plain(answer) => answer.show_event(event, screen),
            Self::Terminal(view) => match kind {
                RunEventKind::TextDelta { text } => {
                    screen.show_event(kind);
                    view.append_text(&strip_control_characters(text), terminal_size())
                }
                // These events change only temporary progress rows, not the answer.
                RunEventKind::ReasoningDelta { .. }
                | RunEventKind::ToolInputStarted { .. }
                | RunEventKind::ToolInputDelta { .. }
                | RunEventKind::ToolProgressed { .. } => {
                    screen.show_event(kind);
                    Ok(())
                }
                // These messages are printed above the unfinished answer, which stays below them.
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

    /// Prints a complete text, such as an earlier answer.
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
