//! Where there are no process groups, nobody watches them.

/// Does nothing; see `watchdog.rs` for what it does on Unix.
#[derive(Clone, Default)]
pub(crate) struct Watchdog;

impl Watchdog {
    #[allow(clippy::unused_async, reason = "the same interface as on Unix")]
    pub(crate) async fn end(&self) {}

    #[allow(clippy::unused_async, reason = "the same interface as on Unix")]
    pub(crate) async fn end_with_program(&self) -> Remains {
        Remains
    }
}

/// What [`McpHost::close_at_exit`](crate::McpHost::close_at_exit) leaves: nothing.
#[derive(Debug)]
#[must_use]
pub struct Remains;

impl Remains {
    /// Does nothing.
    pub fn reap(self) {}
}
