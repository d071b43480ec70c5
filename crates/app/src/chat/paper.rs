//! What answers are written on.

use std::io::{self, Stdout, stdout};

use switchboard_orchestration::{RunEvent, RunEventKind};

use super::{
    markdown::{Look, View},
    quiet::{reflows, size},
};
use crate::{
    cli::{AskOutput, output::Answer},
    environment::Environment,
    terminal::{Screen, without_controls},
};

/// Where answers go.
#[derive(Debug)]
pub(crate) enum Paper {
    /// A terminal: Markdown is shown as what it means.
    Terminal(Box<View<Stdout>>),
    /// Anything else: answers are written as they come.
    Plain(Answer),
}

impl Paper {
    /// A terminal with or without colours.
    pub(crate) fn terminal(environment: &Environment) -> Self {
        let colours = environment.get("NO_COLOR").is_none();
        let reflows = reflows(
            environment.get("TERM"),
            environment.get("XTERM_VERSION").is_some(),
        );
        Self::Terminal(Box::new(View::new(stdout(), Look::new(colours), reflows)))
    }

    pub(crate) fn plain(form: AskOutput) -> Self {
        Self::Plain(Answer::new(form))
    }

    /// Shows an event on it and on the screen, each in its place.
    pub(crate) fn show(&mut self, event: &RunEvent, screen: &Screen) -> io::Result<()> {
        let kind = &event.kind;
        match self {
            Self::Plain(answer) => {
                let on_screen_first = matches!(kind, RunEventKind::TextDelta { .. });
                if on_screen_first {
                    screen.show(kind);
                }
                answer.write(event)?;
                // Somebody reads along.
                answer.flush()?;
                if !on_screen_first {
                    screen.show(kind);
                }
                Ok(())
            }
            Self::Terminal(view) => match kind {
                RunEventKind::TextDelta { text } => {
                    screen.show(kind);
                    view.push(&without_controls(text), size())
                }
                // These are drawn below what is there, and taken away again.
                RunEventKind::ReasoningDelta { .. }
                | RunEventKind::ToolInputStarted { .. }
                | RunEventKind::ToolInputDelta { .. }
                | RunEventKind::ToolProgressed { .. } => {
                    screen.show(kind);
                    Ok(())
                }
                // In the middle of an answer: it goes on below.
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

    /// Writes a whole text, such as an answer of another day.
    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        match self {
            Self::Plain(_) => crate::cli::output::lines(&without_controls(text)),
            Self::Terminal(view) => {
                view.push(&without_controls(text), size())?;
                view.finish(size())
            }
        }
    }
}
