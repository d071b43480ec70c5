//! Prints tool calls, notes and progress to standard error during a run.

use std::{
    collections::{HashMap, HashSet},
    io::IsTerminal as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};
use switchboard_orchestration::{Outcome, RunEventKind, RunReport};

use tokio::sync::{OwnedMutexGuard, watch};

use super::{
    print_line, print_warning,
    tool_card::{ToolCallEnding, ToolCard, format_provider_tool_call},
};

/// Interval at which the spinner on standard error is redrawn.
const UPDATE_INTERVAL: Duration = Duration::from_millis(100);

/// Output on standard error during a run. All clones share one spinner, which is removed before a
/// question is printed.
#[derive(Clone)]
pub(crate) struct Screen {
    state: Arc<Mutex<ScreenState>>,
    /// Lock that a question holds, so that only one question is on the screen at a time.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Ids of the tool uses whose event `ToolAwaitingApproval` was shown. The approval question
    /// waits for this event, so that earlier output is printed before the question.
    questions: Arc<watch::Sender<HashSet<String>>>,
}

struct ScreenState {
    is_terminal: bool,
    /// Whether tool calls are printed. Warnings and errors are always printed.
    shows_cards: bool,
    spinner: Option<ProgressBar>,
    /// Texts of the planned and running tool calls, by tool use id.
    calls: HashMap<String, ToolCard>,
}

impl Screen {
    /// Creates the output on standard error. With `shows_cards`, tool calls are printed.
    pub(crate) fn new(shows_cards: bool) -> Self {
        let state = ScreenState {
            is_terminal: std::io::stderr().is_terminal(),
            shows_cards,
            spinner: None,
            calls: HashMap::new(),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            turn: Arc::default(),
            questions: Arc::default(),
        }
    }

    /// Shows a spinner with the message `what` until an event of the run changes or removes it.
    /// Shows nothing if standard error is not a terminal.
    pub(crate) fn show_progress(&self, what: &str) {
        self.lock_state().show_spinner(what);
    }

    pub(crate) fn remove_spinner(&self) {
        self.lock_state().remove_spinner();
    }

    pub(crate) fn show_event(&self, event: &RunEventKind) {
        self.lock_state().show_event(event);
        match event {
            RunEventKind::ToolAwaitingApproval { id } => self.questions.send_modify(|all| {
                all.insert(id.clone());
            }),
            RunEventKind::RunFinished { .. } => self.questions.send_modify(HashSet::clear),
            _ => {}
        }
    }

    /// Waits until the event `ToolAwaitingApproval` of the tool use `id` was shown.
    pub(super) async fn wait_until_question_shown(&self, id: &str) {
        let mut questions = self.questions.subscribe();
        // An error is impossible: `self` owns the sender, so the channel stays open.
        let _ = questions.wait_for(|all| all.contains(id)).await;
    }

    /// Waits until no other question is on the screen. The returned guard reserves the screen.
    pub(super) async fn wait_for_question_turn(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.turn).lock_owned().await
    }

    /// Returns whether a question is on the screen at the moment.
    pub(crate) fn is_question_open(&self) -> bool {
        self.turn.try_lock().is_err()
    }

    /// Waits until no question is on the screen.
    pub(crate) async fn wait_for_no_question(&self) {
        drop(self.turn.lock().await);
    }

    /// Returns the question whether the tool call `id` may run. `None` if the call is unknown.
    pub(super) fn format_tool_call_question(&self, id: &str) -> Option<String> {
        let state = self.lock_state();
        state.calls.get(id).map(ToolCard::format_approval_question)
    }

    fn lock_state(&self) -> MutexGuard<'_, ScreenState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ScreenState {
    fn show_event(&mut self, event: &RunEventKind) {
        match event {
            RunEventKind::ToolsUnavailable { problem } => {
                self.print_above_spinner(|| {
                    print_warning(&format!("{}: {}", problem.server, problem.message));
                });
            }
            RunEventKind::ModelCallStarted { model, .. } => {
                self.show_spinner(&format!("waiting for {model}"));
            }
            RunEventKind::ReasoningDelta { .. } => self.show_spinner("thinking"),
            RunEventKind::TextDelta { .. } => self.remove_spinner(),
            RunEventKind::ToolInputStarted { name, .. } => {
                self.show_spinner(&format!("preparing {name}"));
            }
            RunEventKind::ProviderBlock { kind, text } if self.shows_cards => {
                self.remove_spinner();
                self.print_above_spinner(|| {
                    print_line(format_provider_tool_call(kind, text.as_deref()));
                });
            }
            RunEventKind::ModelCallRetried {
                attempt,
                delay_ms,
                reason,
                ..
            } => {
                self.print_above_spinner(|| {
                    print_warning(&format_model_retry(reason, *delay_ms, *attempt));
                });
                self.show_spinner("retrying");
            }
            RunEventKind::ModelCallFinished { .. } | RunEventKind::ModelCallFailed { .. } => {
                self.remove_spinner();
            }
            RunEventKind::Warning { warning } => {
                self.print_above_spinner(|| print_warning(&warning.message));
            }
            RunEventKind::ToolPlanned {
                id,
                server,
                tool,
                input,
            } => {
                let card = ToolCard::new(server.as_deref(), tool, input);
                self.calls.insert(id.clone(), card);
            }
            RunEventKind::ToolStarted { id } => {
                if let Some(card) = self.calls.get(id) {
                    self.show_spinner(&card.format_running_call(None));
                }
            }
            RunEventKind::ToolProgressed { id, progress } => {
                let part = match progress.total {
                    Some(total) if total > 0.0 => {
                        format!("{:.0}%", 100.0 * progress.progress / total)
                    }
                    _ => String::new(),
                };
                let message = progress.message.as_deref().unwrap_or_default();
                if let Some(card) = self.calls.get(id) {
                    let progress = format!("{part} {message}");
                    self.show_spinner(&card.format_running_call(Some(progress.trim())));
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
                let Some(card) = self.calls.remove(id) else {
                    return;
                };
                let duration = Duration::from_millis(*duration_ms);
                let end = match (*is_error, *attempts) {
                    (true, 0) => ToolCallEnding::NotRun,
                    (true, _) => ToolCallEnding::Failed(duration),
                    (false, _) => ToolCallEnding::Done(duration),
                };
                if self.calls.is_empty() {
                    self.remove_spinner();
                }
                if self.shows_cards {
                    self.print_above_spinner(|| print_line(card.format_ended_call(end, content)));
                }
            }
            RunEventKind::RunFinished { report } => {
                self.remove_spinner();
                print_run_failure(report);
            }
            _ => {}
        }
    }

    fn show_spinner(&mut self, what: &str) {
        if self.is_terminal {
            let spinner = self.spinner.get_or_insert_with(create_spinner);
            spinner.set_message(super::to_one_line(what, 200));
        }
    }

    fn remove_spinner(&mut self) {
        if let Some(spinner) = self.spinner.take() {
            spinner.finish_and_clear();
        }
    }

    /// Calls `write` while the spinner is hidden, so that the output of `write` is above it.
    fn print_above_spinner(&self, write: impl FnOnce()) {
        match &self.spinner {
            Some(spinner) => spinner.suspend(write),
            None => write(),
        }
    }
}

impl Drop for ScreenState {
    fn drop(&mut self) {
        self.remove_spinner();
    }
}

/// Returns the message about a model call that has failed and is repeated after a pause.
fn format_model_retry(reason: &str, delay_ms: u64, attempt: u32) -> String {
    let pause = match delay_ms {
        0..1000 => String::new(),
        _ => format!(" in {} s", delay_ms.div_ceil(1000)),
    };
    format!("{reason}. Retrying{pause} (attempt {attempt}).")
}

/// Prints the reason why a run ended without a complete answer.
fn print_run_failure(report: &RunReport) {
    let error = report.error.as_ref();
    let message = error.map_or("no answer", |error| error.message.as_str());
    match report.outcome {
        Outcome::Completed => {}
        Outcome::Limited => print_warning(&format!("stopped at a limit: {message}")),
        Outcome::Failed => super::print_error(&anyhow::anyhow!("{message}")),
        Outcome::Cancelled => super::print_note("interrupted"),
    }
}

fn create_spinner() -> ProgressBar {
    // The spinner has no colours, because the progress library ignores `NO_COLOR`.
    let style = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::new_spinner().with_style(style);
    bar.enable_steady_tick(UPDATE_INTERVAL);
    bar
}
