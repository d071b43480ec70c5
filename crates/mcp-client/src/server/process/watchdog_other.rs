//! A watchdog that does nothing, for systems without process groups.

/// The watchdog of one host. See `watchdog.rs` for Unix.
#[derive(Clone, Default)]
pub(crate) struct Watchdog;

impl Watchdog {
    #[allow(clippy::unused_async, reason = "the same interface as on Unix")]
    pub(crate) async fn end(&self) {}

    #[allow(clippy::unused_async, reason = "the same interface as on Unix")]
    pub(crate) async fn end_with_program(&self) -> UnreapedWatchdog {
        UnreapedWatchdog
    }
}

/// The watchdog process after [`McpHost::close_at_exit`](crate::McpHost::close_at_exit): none.
#[derive(Debug)]
#[must_use]
pub struct UnreapedWatchdog;

impl UnreapedWatchdog {
    /// Does nothing.
    pub fn reap(self) {}
}
