//! Standard error during a run: cards, notes, and what is being waited for.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    io::IsTerminal as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use switchboard_orchestration::{Outcome, RunEventKind, RunReport};

use tokio::sync::watch;

use super::{
    card::{Card, End, provider_block},
    say, say_warning,
};

/// How often something that is waited for is drawn anew.
const TICK: Duration = Duration::from_millis(100);

/// What stands on standard error. Cheap to clone; all clones are the same screen, so that whoever
/// asks a person something can hold it still.
#[derive(Clone)]
pub struct Screen {
    state: Arc<Mutex<State>>,
    /// Whoever asks a person something holds it, so that no question writes into another.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// The calls of which it was told that somebody is asked about them.
    questions: Arc<watch::Sender<HashSet<String>>>,
    asking: Arc<watch::Sender<bool>>,
}

/// Somebody is asked something.
pub(super) struct Turn {
    asking: Arc<watch::Sender<bool>>,
    _turn: tokio::sync::OwnedMutexGuard<()>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.asking.send_replace(false);
    }
}

struct State {
    /// Drawn over and over; `None` where standard error is no terminal.
    bars: Option<MultiProgress>,
    /// Whether calls are shown, not only what is wrong.
    shows_cards: bool,
    waiting: Option<ProgressBar>,
    calls: HashMap<String, Call>,
}

struct Call {
    card: Card,
    bar: Option<ProgressBar>,
    denied: bool,
}

impl Screen {
    /// A screen. `shows_cards` is for runs whose answer people read.
    pub fn new(shows_cards: bool) -> Self {
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
            asking: Arc::default(),
        }
    }

    /// Shows that something is waited for, until the next thing happens.
    pub fn wait_for(&self, what: &str) {
        self.state().wait_for(what);
    }

    /// Takes away what is drawn over and over, so that something else can be written.
    pub fn hold_still(&self) {
        self.state().hold_still();
    }

    /// Shows one thing that happened.
    pub fn show(&self, event: &RunEventKind) {
        self.state().show(event);
        match event {
            RunEventKind::ToolAwaitingApproval { id } => self.questions.send_modify(|all| {
                all.insert(id.clone());
            }),
            RunEventKind::RunFinished { .. } => self.questions.send_modify(HashSet::clear),
            _ => {}
        }
    }

    /// Waits until it was told that somebody is asked about this call.
    pub(super) async fn told_of_question(&self, id: &str) {
        let mut questions = self.questions.subscribe();
        // The sender is in this value.
        let _ = questions.wait_for(|all| all.contains(id)).await;
    }

    /// Waits until nobody else asks a person something. Until it is dropped, somebody is asked.
    pub(super) async fn turn(&self) -> Turn {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        self.asking.send_replace(true);
        Turn {
            asking: Arc::clone(&self.asking),
            _turn: turn,
        }
    }

    /// Whether somebody is asked something.
    pub(crate) fn is_asking(&self) -> bool {
        *self.asking.borrow()
    }

    /// Waits until nobody is asked anything.
    pub(crate) async fn asks_nothing(&self) {
        let mut asking = self.asking.subscribe();
        // The sender is in this value.
        let _ = asking.wait_for(|asking| !asking).await;
    }

    /// The call that a person is asked about, on one line.
    pub(super) fn question(&self, id: &str) -> Option<String> {
        let state = self.state();
        state.calls.get(id).map(|call| call.card.asked())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Screen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Screen").finish_non_exhaustive()
    }
}

impl State {
    fn show(&mut self, event: &RunEventKind) {
        match event {
            RunEventKind::ToolsUnavailable { problem } => {
                self.line(|| say_warning(&format!("{}: {}", problem.server, problem.message)));
            }
            RunEventKind::ModelCallStarted { model, .. } => {
                self.wait_for(&format!("asking {model}"));
            }
            RunEventKind::ReasoningDelta { .. } => self.wait_for("thinking"),
            RunEventKind::TextDelta { .. } => self.hold_still(),
            RunEventKind::ToolInputStarted { name, .. } => {
                self.wait_for(&format!("preparing {name}"));
            }
            RunEventKind::ProviderBlock { kind, text } if self.shows_cards => {
                self.stop_waiting();
                self.line(|| say(provider_block(kind, text.as_deref())));
            }
            RunEventKind::ModelCallRetried {
                attempt,
                delay_ms,
                reason,
                ..
            } => {
                self.line(|| say_warning(&asked_again(reason, *delay_ms, *attempt)));
                self.wait_for("asking again");
            }
            RunEventKind::ModelCallFinished { .. } | RunEventKind::ModelCallFailed { .. } => {
                self.stop_waiting();
            }
            RunEventKind::Warning { warning } => self.line(|| say_warning(&warning.message)),
            RunEventKind::ToolPlanned {
                id,
                server,
                tool,
                input,
            } => {
                let call = Call {
                    card: Card::new(server.as_deref(), tool, input),
                    bar: None,
                    denied: false,
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
            RunEventKind::ToolDenied { id, .. } => {
                if let Some(call) = self.calls.get_mut(id) {
                    call.denied = true;
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
                    _ if call.denied => End::NotRun,
                    (true, _) => End::Failed(duration),
                    (false, _) => End::Done(duration),
                };
                if self.shows_cards {
                    self.line(|| say(call.card.ended(end, content)));
                }
            }
            RunEventKind::RunFinished { report } => {
                self.hold_still();
                say_end(report);
            }
            _ => {}
        }
    }

    fn call_started(&mut self, id: &str) {
        self.stop_waiting();
        if let Some(bars) = &self.bars
            && let Some(call) = self.calls.get_mut(id)
        {
            let bar = bars.add(spinner());
            bar.set_message(call.card.running(None));
            bar.enable_steady_tick(TICK);
            call.bar = Some(bar);
        }
    }

    fn wait_for(&mut self, what: &str) {
        let Some(bars) = &self.bars else {
            return;
        };
        let bar = self.waiting.get_or_insert_with(|| {
            let bar = bars.add(spinner());
            bar.enable_steady_tick(TICK);
            bar
        });
        bar.set_message(super::one_line(what, 60));
    }

    fn stop_waiting(&mut self) {
        if let Some(bar) = self.waiting.take() {
            bar.finish_and_clear();
        }
    }

    fn hold_still(&mut self) {
        self.stop_waiting();
        for call in self.calls.values_mut() {
            if let Some(bar) = call.bar.take() {
                bar.finish_and_clear();
            }
        }
    }

    /// Writes a line above what is drawn over and over.
    fn line(&self, write: impl FnOnce()) {
        match &self.bars {
            Some(bars) => bars.suspend(write),
            None => write(),
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.hold_still();
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

/// Says how a run ended, if it did not end with an answer.
fn say_end(report: &RunReport) {
    let message = report
        .error
        .as_ref()
        .map_or("no answer", |error| error.message.as_str());
    match report.outcome {
        Outcome::Completed => {}
        Outcome::Limited => say_warning(&format!("stopped at a limit: {message}")),
        Outcome::Failed => super::say_error(&anyhow::anyhow!("{message}")),
        Outcome::Cancelled => super::say_note("interrupted"),
    }
}

fn spinner() -> ProgressBar {
    // No colours: the line would have to be stripped of them where they are not wanted.
    let style = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    ProgressBar::new_spinner().with_style(style)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_named_in_whole_seconds_unless_it_is_short() {
        let again = |delay_ms| asked_again("acme: busy", delay_ms, 2);
        assert_eq!(
            again(999),
            "acme: busy. The model is asked again (attempt 2)."
        );
        let expected = "acme: busy. The model is asked again in 31 s (attempt 2).";
        assert_eq!(again(30_001), expected);
    }
}
