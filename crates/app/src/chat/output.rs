//! Prints answers of `chat`, with rendered Markdown at a terminal.

use std::io::{self, Stdout, stdout};

use switchboard_orchestration::{RunEvent, RunEventKind};

use super::{
    markdown::{Look, View},
    raw_mode::{reflows, size},
};
use crate::{
    config::environment::Environment,
    terminal::{
        Screen,
        output::{Answer, AskOutput},
        without_controls,
    },
};

/// Destination of the answers in a conversation.
#[derive(Debug)]
pub(crate) enum Output {
    /// A terminal, with rendered Markdown.
    Terminal(Box<View<Stdout>>),
    /// A pipe or file, which receives the text unchanged.
    Plain(Answer),
}

impl Output {
    pub(crate) fn new(form: AskOutput, is_terminal: bool, environment: &Environment) -> Self {
        if !is_terminal {
            return Self::Plain(Answer::new(form));
        }
        let colours = environment.get("NO_COLOR").is_none();
        let reflows = reflows(
            environment.get("TERM"),
            environment.get("XTERM_VERSION").is_some(),
        );
        Self::Terminal(Box::new(View::new(stdout(), Look::new(colours), reflows)))
    }

    /// Prints an event of a run.
    pub(crate) fn show(&mut self, event: &RunEvent, screen: &Screen) -> io::Result<()> {
        let kind = &event.kind;
        match self {
            Self::Plain(answer) => answer.show(event, screen),
            Self::Terminal(view) => match kind {
                RunEventKind::TextDelta { text } => {
                    screen.show(kind);
                    view.push(&without_controls(text), size())
                }
                // These events change only the temporary progress rows below the answer.
                RunEventKind::ReasoningDelta { .. }
                | RunEventKind::ToolInputStarted { .. }
                | RunEventKind::ToolInputDelta { .. }
                | RunEventKind::ToolProgressed { .. } => {
                    screen.show(kind);
                    Ok(())
                }
                // These messages appear above the answer, which continues below them.
                RunEventKind::Warning { .. }
                | RunEventKind::ToolsUnavailable { .. }
                | RunEventKind::ServerChanged { .. }
                | RunEventKind::ProviderBlock { .. } => view.above(size(), || screen.show(kind)),
                _ => {
                    view.finish(size())?;
                    screen.show(kind);
                    Ok(())
                }
            },
        }
    }

    /// Prints a complete text, such as an earlier answer.
    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        match self {
            Self::Plain(_) => crate::terminal::output::lines(&without_controls(text)),
            Self::Terminal(view) => {
                view.push(&without_controls(text), size())?;
                view.finish(size())
            }
        }
    }
}
