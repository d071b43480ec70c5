//! Sets the input mode of the terminal.

/// Guard that turns off echo and line buffering of the terminal (`ECHO` and `ICANON`). Characters
/// that the user types while an answer is printed do not appear in the answer. The line editor
/// reads them later. Ctrl-C still sends a signal. Dropping the guard restores the previous mode.
#[derive(Debug)]
pub(crate) struct RawMode {
    #[cfg(unix)]
    before: Option<rustix::termios::Termios>,
}

impl RawMode {
    #[cfg(unix)]
    pub(crate) fn enable_raw_mode() -> Self {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let before = tcgetattr(std::io::stdin()).ok();
        if let Some(before) = &before {
            let mut raw_mode = before.clone();
            raw_mode
                .local_modes
                .remove(LocalModes::ECHO | LocalModes::ICANON);
            // An error is ignored. In this case, characters that the user types appear in the
            // output.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &raw_mode);
        }
        Self { before }
    }

    #[cfg(not(unix))]
    pub(crate) fn enable_raw_mode() -> Self {
        Self {}
    }
}

#[cfg(unix)]
impl Drop for RawMode {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        if let Some(before) = &self.before {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
    }
}
