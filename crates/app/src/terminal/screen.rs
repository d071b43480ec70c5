//! Standard error during a run: tool cards, notes and progress.

use std::{
    collections::{HashMap, HashSet},
    io::IsTerminal as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use switchboard_orchestration::{Outcome, RunEventKind, RunReport};

use tokio::sync::{OwnedMutexGuard, watch};

use super::{
    card::{Card, End, provider_block},
    print_line, print_warning,
};

/// Interval of progress updates.
const UPDATE_INTERVAL: Duration = Duration::from_millis(100);

/// Output on standard error during a run. Clones share one state, so that a question can remove the
/// progress bars.
#[derive(Clone)]
pub(crate) struct Screen {
    state: Arc<Mutex<State>>,
    /// Lock held during a question, so that only one question is shown at a time.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Ids of calls whose approval request was shown.
    questions: Arc<watch::Sender<HashSet<String>>>,
}

struct State {
    /// Progress bars. `None` without a terminal.
    bars: Option<MultiProgress>,
    /// Whether tool calls are shown in addition to warnings and errors.
    shows_cards: bool,
    waiting: Option<ProgressBar>,
    calls: HashMap<String, Call>,
}

struct Call {
    card: Card,
    bar: Option<ProgressBar>,
}

impl Screen {
    /// Creates a screen. `shows_cards` selects whether tool calls are shown.
    pub(crate) fn new(shows_cards: bool) -> Self {
        let bars = std::io::stderr()
            .is_terminal()
            .then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr()));
        let state = State {
            bars,
            shows_cards,
            waiting: None,
            calls: HashMap::new(),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            turn: Arc::default(),
            questions: Arc::default(),
        }
    }

    /// Shows a progress message until the next event.
    pub(crate) fn show_progress(&self, what: &str) {
        self.state().wait_for(what);
    }

    /// Removes the progress bars.
    pub(crate) fn pause(&self) {
        self.state().pause();
    }

    /// Shows an event of a run.
    pub(crate) fn show(&self, event: &RunEventKind) {
        self.state().show(event);
        match event {
            RunEventKind::ToolAwaitingApproval { id } => self.questions.send_modify(|all| {
                all.insert(id.clone());
            }),
            RunEventKind::RunFinished { .. } => self.questions.send_modify(HashSet::clear),
            _ => {}
        }
    }

    /// Waits until the approval request of this call was shown.
    pub(super) async fn question_shown(&self, id: &str) {
        let mut questions = self.questions.subscribe();
        // The channel stays open, because its sender is a field of `self`.
        let _ = questions.wait_for(|all| all.contains(id)).await;
    }

    /// Waits for other questions to end. The returned guard marks a question in progress.
    pub(super) async fn turn(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.turn).lock_owned().await
    }

    /// Returns whether a question is in progress.
    pub(crate) fn is_asking(&self) -> bool {
        self.turn.try_lock().is_err()
    }

    /// Waits until no question is in progress.
    pub(crate) async fn no_question(&self) {
        drop(self.turn.lock().await);
    }

    /// Returns the formatted call that an approval request is about.
    pub(super) fn question(&self, id: &str) -> Option<String> {
        let state = self.state();
        state.calls.get(id).map(|call| call.card.asked())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn show(&mut self, event: &RunEventKind) {
        match event {
            RunEventKind::ToolsUnavailable { problem } => {
                self.line(|| print_warning(&format!("{}: {}", problem.server, problem.message)));
            }
            RunEventKind::ModelCallStarted { model, .. } => {
                self.wait_for(&format!("asking {model}"));
            }
            RunEventKind::ReasoningDelta { .. } => self.wait_for("thinking"),
            RunEventKind::TextDelta { .. } => self.pause(),
            RunEventKind::ToolInputStarted { name, .. } => {
                self.wait_for(&format!("preparing {name}"));
            }
            RunEventKind::ProviderBlock { kind, text } if self.shows_cards => {
                self.stop_waiting();
                self.line(|| print_line(provider_block(kind, text.as_deref())));
            }
            RunEventKind::ModelCallRetried {
                attempt,
                delay_ms,
                reason,
                ..
            } => {
                self.line(|| print_warning(&asked_again(reason, *delay_ms, *attempt)));
                self.wait_for("asking again");
            }
            RunEventKind::ModelCallFinished { .. } | RunEventKind::ModelCallFailed { .. } => {
                self.stop_waiting();
            }
            RunEventKind::Warning { warning } => self.line(|| print_warning(&warning.message)),
            RunEventKind::ToolPlanned {
                id,
                server,
                tool,
                input,
            } => {
                let call = Call {
                    card: Card::new(server.as_deref(), tool, input),
                    bar: None,
                };
                self.calls.insert(id.clone(), call);
            }
            RunEventKind::ToolStarted { id } => self.call_started(id),
            RunEventKind::ToolProgressed { id, progress } => {
                let part = match progress.total {
                    Some(total) if total > 0.0 => {
                        format!("{:.0} %", 100.0 * progress.progress / total)
                    }
                    _ => String::new(),
                };
                let message = progress.message.as_deref().unwrap_or_default();
                if let Some(call) = self.calls.get(id)
                    && let Some(bar) = &call.bar
                {
                    bar.set_message(call.card.running(Some(format!("{part} {message}").trim())));
                }
            }
            RunEventKind::ToolFinished {
                id,
                is_error,
                attempts,
                duration_ms,
                content,
                ..
            } => {
                let Some(call) = self.calls.remove(id) else {
                    return;
                };
                if let Some(bar) = &call.bar {
                    bar.finish_and_clear();
                }
                let duration = Duration::from_millis(*duration_ms);
                let end = match (*is_error, *attempts) {
                    (true, 0) => End::NotRun,
                    (true, _) => End::Failed(duration),
                    (false, _) => End::Done(duration),
                };
                if self.shows_cards {
                    self.line(|| print_line(call.card.ended(end, content)));
                }
            }
            RunEventKind::RunFinished { report } => {
                self.pause();
                print_end(report);
            }
            _ => {}
        }
    }

    fn call_started(&mut self, id: &str) {
        self.stop_waiting();
        if let Some(bars) = &self.bars
            && let Some(call) = self.calls.get_mut(id)
        {
            let bar = add_spinner(bars);
            bar.set_message(call.card.running(None));
            call.bar = Some(bar);
        }
    }

    fn wait_for(&mut self, what: &str) {
        let Some(bars) = &self.bars else {
            return;
        };
        let bar = self.waiting.get_or_insert_with(|| add_spinner(bars));
        bar.set_message(super::one_line(what, 60));
    }

    fn stop_waiting(&mut self) {
        if let Some(bar) = self.waiting.take() {
            bar.finish_and_clear();
        }
    }

    fn pause(&mut self) {
        self.stop_waiting();
        for call in self.calls.values_mut() {
            if let Some(bar) = call.bar.take() {
                bar.finish_and_clear();
            }
        }
    }

    /// Calls `write` while the progress bars are hidden, so that its output appears above them.
    fn line(&self, write: impl FnOnce()) {
        match &self.bars {
            Some(bars) => bars.suspend(write),
            None => write(),
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.pause();
    }
}

/// Returns the line about a model call that is repeated after a pause.
fn asked_again(reason: &str, delay_ms: u64, attempt: u32) -> String {
    let pause = match delay_ms {
        0..1000 => String::new(),
        _ => format!(" in {} s", delay_ms.div_ceil(1000)),
    };
    format!("{reason}. The model is asked again{pause} (attempt {attempt}).")
}

/// Prints how a run ended without an answer.
fn print_end(report: &RunReport) {
    let message = report
        .error
        .as_ref()
        .map_or("no answer", |error| error.message.as_str());
    match report.outcome {
        Outcome::Completed => {}
        Outcome::Limited => print_warning(&format!("stopped at a limit: {message}")),
        Outcome::Failed => super::print_error(&anyhow::anyhow!("{message}")),
        Outcome::Cancelled => super::print_note("interrupted"),
    }
}

fn add_spinner(bars: &MultiProgress) -> ProgressBar {
    // Without colours, because the bar would not respect `NO_COLOR`.
    let style = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = bars.add(ProgressBar::new_spinner().with_style(style));
    bar.enable_steady_tick(UPDATE_INTERVAL);
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_pauses_are_shown_in_seconds() {
        let again = |delay_ms| asked_again("acme: busy", delay_ms, 2);
        assert_eq!(
            again(999),
            "acme: busy. The model is asked again (attempt 2)."
        );
        let expected = "acme: busy. The model is asked again in 31 s (attempt 2).";
        assert_eq!(again(30_001), expected);
    }
}
