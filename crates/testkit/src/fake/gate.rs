//! Points at which the server waits for the test.

use std::sync::Arc;

use tokio::sync::watch;

/// Something that happens once and stays so.
#[derive(Debug, Clone)]
pub(super) struct Latch(Arc<watch::Sender<bool>>);

impl Latch {
    pub(super) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    pub(super) fn set(&self) {
        self.0.send_replace(true);
    }

    pub(super) fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    pub(super) async fn wait(&self) {
        // The sender is ours, so it cannot be gone.
        let _ = self.0.subscribe().wait_for(|set| *set).await;
    }
}

/// A point in an [`Answer`](super::Answer) at which the server waits until the test opens it. This
/// is how a test knows what has happened on the other side, without waiting for time to pass.
///
/// Clones are the same gate. Open once, it stays open for every answer that has it.
#[derive(Debug, Clone)]
pub struct Gate {
    reached: Latch,
    opened: Latch,
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Self {
            reached: Latch::new(),
            opened: Latch::new(),
        }
    }

    /// Lets the server go on.
    pub fn open(&self) {
        self.opened.set();
    }

    /// Waits until the server stands at it: everything before it is on its way to the client.
    pub async fn reached(&self) {
        self.reached.wait().await;
    }

    /// The server's side.
    pub(super) async fn pass(&self) {
        self.reached.set();
        self.opened.wait().await;
    }
}
