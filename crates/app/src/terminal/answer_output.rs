//! Prints the answers of runs. At a terminal, Markdown is rendered.

use std::io::{self, IsTerminal as _, Stdout, stdout};

use switchboard_orchestration::{RunEvent, RunEventKind};

use super::{
    Screen,
    markdown::{MarkdownStyles, MarkdownView, terminal_size},
    output::{AnswerFormat, AnswerWriter},
    strip_control_characters,
};

/// Destination of answers: a terminal, or a pipe or file.
#[derive(Debug)]
pub(crate) enum AnswerOutput {
    /// A terminal, at which answers are drawn as rendered Markdown.
    Terminal(Box<MarkdownView<Stdout>>),
    /// A pipe or file, which receives the answers as unchanged text.
    Plain(AnswerWriter),
}

impl AnswerOutput {
    /// Creates the output of answers in the format `form`. `get_variable` reads environment
    /// variables: terminals with `TERM=dumb` show plain text, and `NO_COLOR` disables colours.
    pub(crate) fn new<'a>(
        form: AnswerFormat,
        get_variable: impl Fn(&str) -> Option<&'a str>,
    ) -> Self {
        let supports_escapes = get_variable("TERM").is_some_and(|term| term != "dumb");
        if form != AnswerFormat::Text || !stdout().is_terminal() || !supports_escapes {
            return Self::Plain(AnswerWriter::new(form));
        }
        let styles = MarkdownStyles::new(get_variable("NO_COLOR").is_none());
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
            Self::Plain(_) => super::output::print_lines(&strip_control_characters(text)),
            Self::Terminal(view) => {
                view.append_text(&strip_control_characters(text), terminal_size())?;
                view.finish_text(terminal_size())
            }
        }
    }
}
