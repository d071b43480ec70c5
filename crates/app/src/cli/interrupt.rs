//! Ctrl-C, being asked to end, and the terminal going away.

use std::time::Duration;

use tokio::sync::watch;

use super::Code;

/// How long the program may take to end after a second interruption, before it is ended whatever it
/// does: it may be stuck in writing to somebody who does not read.
const PATIENCE: Duration = Duration::from_secs(3);

/// Counts interruptions from the start of the program on: Ctrl-C, `SIGTERM` from a supervisor,
/// `SIGHUP` from a terminal that was closed. None is lost while nobody waits. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Interrupts(watch::Receiver<u32>);

impl Interrupts {
    /// Listens from now on. Needs a runtime of several threads.
    pub(super) fn listen() -> Self {
        let (count, seen) = watch::channel(0);
        tokio::spawn(async move {
            let mut signals = Signals::new();
            loop {
                signals.next().await;
                count.send_modify(|count| *count += 1);
                if *count.borrow() == 2 {
                    tokio::spawn(leave());
                }
            }
        });
        Self(seen)
    }

    /// Waits for the first interruption, or not at all if there was one.
    pub(super) async fn first(&self) {
        self.reached(1).await;
    }

    /// Waits for the second one.
    pub(super) async fn second(&self) {
        self.reached(2).await;
    }

    async fn reached(&self, times: u32) {
        let mut seen = self.0.clone();
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
    streams: Vec<tokio::signal::unix::Signal>,
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
                .filter_map(|kind| signal(kind).ok())
                .collect(),
        }
    }

    async fn next(&mut self) {
        std::future::poll_fn(|context| {
            let ready = self
                .streams
                .iter_mut()
                .any(|stream| stream.poll_recv(context).is_ready());
            if ready {
                std::task::Poll::Ready(())
            } else {
                std::task::Poll::Pending
            }
        })
        .await;
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> Self {
        Self
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
