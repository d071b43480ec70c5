//! Handles interruptions: Ctrl-C, `SIGTERM` from a supervisor, `SIGHUP` from a closed terminal.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use tokio::sync::watch;

use super::failure::Code;

/// Interval of the checks whether the terminal of the program is still open.
#[cfg(unix)]
const TERMINAL_CHECK: Duration = Duration::from_secs(1);

/// Time from the second interruption until the process is ended by force. Without a limit, a write
/// to a full pipe could block the process forever.
const EXIT_TIMEOUT: Duration = Duration::from_millis(800);

/// Counter of the interruptions since the program started. All clones share the counter.
#[derive(Debug, Clone)]
pub(crate) struct Interrupts(Arc<InterruptState>);

#[derive(Debug)]
struct InterruptState {
    count: watch::Sender<u32>,
    /// Number of Ctrl-C presses that cancelled a run and did not end the program.
    presses: watch::Sender<u32>,
    captures_keys: AtomicBool,
}

/// Receiver of the Ctrl-C presses that cancel a run and do not end the program.
#[derive(Debug, Clone)]
pub(crate) struct CtrlCPresses {
    state: Arc<InterruptState>,
    seen: watch::Receiver<u32>,
}

/// Waits for the next Ctrl-C press. Waits forever if `presses` is `None`.
pub(crate) async fn wait_for_ctrl_c_press(presses: Option<&mut CtrlCPresses>) {
    match presses {
        // An error is impossible: `presses` owns the sender, so the channel stays open.
        Some(presses) => {
            let _ = presses.seen.changed().await;
        }
        None => std::future::pending().await,
    }
}

impl CtrlCPresses {
    /// Marks the Ctrl-C presses so far as handled, so that only later presses cancel the next run.
    pub(crate) fn clear_ctrl_c_presses(&mut self) {
        self.seen.borrow_and_update();
    }

    /// Counts a Ctrl-C press that the line editor received as a key and not as a signal.
    pub(crate) fn count_ctrl_c_key(&self) {
        self.state.presses.send_modify(|count| *count += 1);
    }
}

impl Interrupts {
    /// Starts to listen for signals. Needs a Tokio runtime with more than one worker thread.
    pub(crate) fn listen_for_signals() -> io::Result<Self> {
        let state = Arc::new(InterruptState {
            count: watch::Sender::new(0),
            presses: watch::Sender::new(0),
            captures_keys: AtomicBool::new(false),
        });
        receive_signals(&state)?;
        Ok(Self(state))
    }

    /// Captures Ctrl-C, so that a press does not end the program. The result receives the presses.
    pub(crate) fn capture_ctrl_c(&self) -> CtrlCPresses {
        self.0.captures_keys.store(true, Ordering::Relaxed);
        CtrlCPresses {
            state: Arc::clone(&self.0),
            seen: self.0.presses.subscribe(),
        }
    }

    /// Ends the capture of Ctrl-C, so that the next press ends the program.
    pub(crate) fn release_ctrl_c(&self) {
        self.0.captures_keys.store(false, Ordering::Relaxed);
    }

    /// Counts an interruption when the terminal of standard input is closed. Not every closed
    /// terminal sends `SIGHUP`, and a line editor would read a closed terminal forever.
    #[cfg(unix)]
    pub(crate) fn detect_closed_terminal(&self) {
        let state = Arc::clone(&self.0);
        tokio::spawn(async move {
            while rustix::termios::tcgetattr(io::stdin()).is_ok() {
                tokio::time::sleep(TERMINAL_CHECK).await;
            }
            state.count_closed_terminal();
        });
    }

    #[cfg(not(unix))]
    pub(crate) fn detect_closed_terminal(&self) {}

    pub(crate) fn is_interrupted(&self) -> bool {
        *self.0.count.borrow() > 0
    }

    /// Waits for the first interruption. Returns immediately if it has already occurred.
    pub(crate) async fn wait_for_first_interruption(&self) {
        self.wait_for_interruptions(1).await;
    }

    pub(crate) async fn wait_for_second_interruption(&self) {
        self.wait_for_interruptions(2).await;
    }

    async fn wait_for_interruptions(&self, times: u32) {
        let mut count = self.0.count.subscribe();
        // An error is impossible: `self` owns the sender, so the channel stays open.
        let _ = count.wait_for(|count| *count >= times).await;
    }
}

impl InterruptState {
    /// Counts a Ctrl-C: as a key press while Ctrl-C is captured, otherwise as an interruption.
    fn count_ctrl_c(&self) {
        if self.captures_keys.load(Ordering::Relaxed) {
            self.presses.send_modify(|count| *count += 1);
        } else {
            self.count_interruption();
        }
    }

    fn count_interruption(&self) {
        self.count.send_modify(|count| *count += 1);
        if *self.count.borrow() == 2 {
            thread::spawn(exit_after_timeout);
        }
    }

    /// Counts a closed terminal only once, because the shell and the system may both report it.
    #[cfg(unix)]
    fn count_closed_terminal(&self) {
        self.count.send_modify(|count| *count = (*count).max(1));
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a separate thread, because every worker of the runtime may be blocked in a write"
)]
fn exit_after_timeout() {
    thread::sleep(EXIT_TIMEOUT);
    std::process::exit(i32::from(Code::Interrupted as u8));
}

/// Starts one task for each kind of signal. The task counts the signals that the process receives.
#[cfg(unix)]
fn receive_signals(state: &Arc<InterruptState>) -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let reactions = [
        (
            SignalKind::interrupt(),
            InterruptState::count_ctrl_c as fn(&InterruptState),
        ),
        (SignalKind::hangup(), InterruptState::count_closed_terminal),
        (SignalKind::terminate(), InterruptState::count_interruption),
    ];
    for (kind, react) in reactions {
        let (mut signals, state) = (signal(kind)?, Arc::clone(state));
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                react(&state);
            }
        });
    }
    Ok(())
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "fails on Unix")]
fn receive_signals(state: &Arc<InterruptState>) -> io::Result<()> {
    let state = Arc::clone(state);
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() {
            state.count_ctrl_c();
        }
    });
    Ok(())
}
