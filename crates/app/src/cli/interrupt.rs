//! Ctrl-C, being asked to end, and the terminal going away.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;

use super::Code;

/// How long the program may take to end after a second interruption, before it is ended whatever it
/// does: it may be stuck in writing to somebody who does not read.
const PATIENCE: Duration = Duration::from_secs(3);

/// Counts interruptions from the start of the program on: Ctrl-C, `SIGTERM` from a supervisor,
/// `SIGHUP` from a terminal that was closed. None is lost while nobody waits. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Interrupts {
    seen: watch::Receiver<u32>,
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
    /// Listens from now on. Needs a runtime of several threads.
    pub(super) fn listen() -> Self {
        let (count, seen) = watch::channel(0);
        let (keys, _) = watch::channel(0);
        let interrupts = Self {
            seen,
            keys: Arc::new(keys),
            taken: Arc::default(),
        };
        let (keys, taken) = (Arc::clone(&interrupts.keys), Arc::clone(&interrupts.taken));
        tokio::spawn(async move {
            let mut signals = Signals::new();
            loop {
                let is_key = signals.next().await;
                if is_key && taken.load(Ordering::Relaxed) {
                    keys.send_modify(|count| *count += 1);
                    continue;
                }
                count.send_modify(|count| *count += 1);
                if *count.borrow() == 2 {
                    tokio::spawn(leave());
                }
            }
        });
        interrupts
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

/// Ends the program where it does not end by itself.
#[expect(
    clippy::disallowed_methods,
    reason = "the only way out of a write that blocks for ever; nothing is left to be lost"
)]
async fn leave() {
    tokio::time::sleep(PATIENCE).await;
    std::process::exit(i32::from(Code::Interrupted as u8));
}

#[cfg(unix)]
struct Signals {
    /// Each with whether it is Ctrl-C.
    streams: Vec<(bool, tokio::signal::unix::Signal)>,
}

#[cfg(unix)]
impl Signals {
    /// A signal that cannot be had is left out.
    fn new() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let kinds = [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
        ];
        Self {
            streams: kinds
                .into_iter()
                .filter_map(|kind| Some((kind == SignalKind::interrupt(), signal(kind).ok()?)))
                .collect(),
        }
    }

    /// Waits for the next one. Whether it is Ctrl-C.
    async fn next(&mut self) -> bool {
        std::future::poll_fn(|context| {
            let mut streams = self.streams.iter_mut();
            let ready = streams.find_map(|(is_key, stream)| {
                stream.poll_recv(context).is_ready().then_some(*is_key)
            });
            match ready {
                Some(is_key) => std::task::Poll::Ready(is_key),
                None => std::task::Poll::Pending,
            }
        })
        .await
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> Self {
        Self
    }

    async fn next(&mut self) -> bool {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        true
    }
}
