//! Ctrl-C, being asked to end, and the terminal going away.

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

use super::Code;

/// Interval of the checks whether the terminal is still there.
#[cfg(unix)]
const TERMINAL_CHECK: Duration = Duration::from_secs(1);

/// How long the program may take to end after a second interruption, before it is ended whatever it
/// does: it may be stuck in writing to somebody who does not read.
const PATIENCE: Duration = Duration::from_secs(3);

/// Counts interruptions from the start of the program on: Ctrl-C, `SIGTERM` from a supervisor,
/// `SIGHUP` from a terminal that was closed. None is lost while nobody waits. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Interrupts {
    seen: watch::Receiver<u32>,
    count: Arc<watch::Sender<u32>>,
    /// Ctrl-C stops something else than the program, which counts it here.
    keys: Arc<watch::Sender<u32>>,
    taken: Arc<AtomicBool>,
}

/// Ctrl-C, where it does not end the program.
#[derive(Debug, Clone)]
pub(crate) struct Presses {
    count: Arc<watch::Sender<u32>>,
    seen: watch::Receiver<u32>,
}

impl Presses {
    /// Waits for the next one that was not seen yet.
    pub(crate) async fn next(&mut self) {
        if self.seen.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Takes those until now for seen.
    pub(crate) fn forget(&mut self) {
        self.seen.borrow_and_update();
    }

    /// Counts one that came as a key and not as a signal.
    pub(crate) fn press(&self) {
        self.count.send_modify(|count| *count += 1);
    }
}

impl Interrupts {
    /// Listens from now on, on a thread of its own: whoever asks to end is heard while all others are busy, or stuck in
    /// a write. Fails where there can be no such thread.
    pub(super) fn listen() -> io::Result<Self> {
        let (count, seen) = watch::channel(0);
        let (keys, _) = watch::channel(0);
        let count = Arc::new(count);
        let interrupts = Self {
            seen,
            count: Arc::clone(&count),
            keys: Arc::new(keys),
            taken: Arc::default(),
        };
        let (keys, taken) = (Arc::clone(&interrupts.keys), Arc::clone(&interrupts.taken));
        let signals = Signals::new()?;
        thread::Builder::new()
            .name("interrupts".to_owned())
            .spawn(move || count_them(signals, &count, &keys, &taken))?;
        Ok(interrupts)
    }

    /// From now on Ctrl-C does not end the program: it is told to whoever holds what this gives.
    pub(crate) fn take_keys(&self) -> Presses {
        self.taken.store(true, Ordering::Relaxed);
        Presses {
            count: Arc::clone(&self.keys),
            seen: self.keys.subscribe(),
        }
    }

    /// Gives Ctrl-C back.
    pub(crate) fn give_keys_back(&self) {
        self.taken.store(false, Ordering::Relaxed);
    }

    /// Counts a hang-up when the terminal of standard input is gone. It need not send `SIGHUP`, and a
    /// line editor reads a dead terminal for ever. Runs on the runtime until then.
    #[cfg(unix)]
    pub(crate) fn watch_terminal(&self) {
        let count = Arc::clone(&self.count);
        tokio::spawn(async move {
            while rustix::termios::tcgetattr(io::stdin()).is_ok() {
                tokio::time::sleep(TERMINAL_CHECK).await;
            }
            hang_up(&count);
        });
    }

    #[cfg(not(unix))]
    pub(crate) fn watch_terminal(&self) {}

    /// Returns whether there was an interruption.
    pub(crate) fn is_interrupted(&self) -> bool {
        *self.seen.borrow() > 0
    }

    /// Waits for the first interruption, or not at all if there was one.
    pub(crate) async fn first(&self) {
        self.reached(1).await;
    }

    /// Waits for the second one.
    pub(crate) async fn second(&self) {
        self.reached(2).await;
    }

    async fn reached(&self, times: u32) {
        let mut seen = self.seen.clone();
        if seen.wait_for(|count| *count >= times).await.is_err() {
            // The listener is gone with the runtime; nothing will come.
            std::future::pending::<()>().await;
        }
    }
}

/// Counts interruptions for as long as the program lives, and ends it where it does not end by itself.
fn count_them(
    signals: Signals,
    count: &watch::Sender<u32>,
    keys: &watch::Sender<u32>,
    taken: &AtomicBool,
) {
    signals.each(|signal| {
        match signal {
            Signal::Key if taken.load(Ordering::Relaxed) => {
                keys.send_modify(|count| *count += 1);
                return;
            }
            #[cfg(unix)]
            Signal::HangUp => {
                hang_up(count);
                return;
            }
            _ => count.send_modify(|count| *count += 1),
        }
        if *count.borrow() == 2 {
            leave();
        }
    });
}

/// Counts a hang-up of the terminal once. The shell and the system may both send a signal.
#[cfg(unix)]
fn hang_up(count: &watch::Sender<u32>) {
    count.send_if_modified(|count| {
        let is_first = *count == 0;
        *count = (*count).max(1);
        is_first
    });
}

/// A reason to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    /// Ctrl-C.
    Key,
    /// The terminal went away.
    #[cfg(unix)]
    HangUp,
    /// A supervisor wants the program to end.
    #[cfg(unix)]
    End,
}

/// Ends the program where it does not end by itself. Further interruptions say nothing new.
#[expect(
    clippy::disallowed_methods,
    reason = "a thread that does nothing else, and the only way out of a write that blocks for ever; nothing is left to be lost"
)]
fn leave() {
    thread::sleep(PATIENCE);
    std::process::exit(i32::from(Code::Interrupted as u8));
}

#[cfg(unix)]
struct Signals(signal_hook::iterator::Signals);

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP]).map(Self)
    }

    /// Tells of each from now on. Does not return.
    fn each(mut self, mut tell: impl FnMut(Signal)) {
        use signal_hook::consts::{SIGHUP, SIGINT};
        for signal in self.0.forever() {
            tell(match signal {
                SIGINT => Signal::Key,
                SIGHUP => Signal::HangUp,
                _ => Signal::End,
            });
        }
    }
}

#[cfg(not(unix))]
struct Signals(tokio::runtime::Runtime);

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Self> {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().build().map(Self)
    }

    /// Tells of each from now on. Does not return, unless none can be had.
    fn each(self, mut tell: impl FnMut(Signal)) {
        while self.0.block_on(tokio::signal::ctrl_c()).is_ok() {
            tell(Signal::Key);
        }
    }
}
