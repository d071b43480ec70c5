//! Points at which the server waits for the test.

use std::sync::Arc;

use tokio::sync::watch;

/// A one-time event.
#[derive(Debug, Clone, Default)]
pub(super) struct Latch(Arc<watch::Sender<bool>>);

impl Latch {
    pub(super) fn set(&self) {
        self.0.send_replace(true);
    }

    pub(super) fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    pub(super) async fn wait(&self) {
        // An error means that the sender was dropped, but `self` owns it.
        let _ = self.0.subscribe().wait_for(|set| *set).await;
    }
}

/// A point in an [`Answer`](super::Answer) at which the server waits until the test opens it. A
/// test uses gates to observe the progress of the other side without sleeping.
///
/// Clones are the same gate. An open gate stays open for every answer that contains it.
#[derive(Debug, Clone, Default)]
pub struct Gate {
    reached: Latch,
    opened: Latch,
}

impl Gate {
    /// Creates a closed gate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens the gate.
    pub fn open(&self) {
        self.opened.set();
    }

    /// Waits until the server has reached the gate and has sent everything before it.
    pub async fn reached(&self) {
        self.reached.wait().await;
    }

    /// Marks the gate as reached and waits until it is open.
    pub(super) async fn pass(&self) {
        self.reached.set();
        self.opened.wait().await;
    }
}
