//! Watchdog for systems without process groups, which does nothing.

/// Placeholder for the watchdog on systems without process groups. `watchdog.rs` contains the Unix
/// version.
#[derive(Clone, Default)]
pub(crate) struct Watchdog;

impl Watchdog {
    #[allow(clippy::unused_async, reason = "the same interface as on Unix")]
    pub(crate) async fn stop_shell(&self) {}
}
