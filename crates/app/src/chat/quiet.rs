//! The terminal while no line is read from it.

use super::markdown::Size;

/// How big the terminal is that standard output goes to.
pub(crate) fn size() -> Size {
    #[cfg(unix)]
    if let Ok(size) = rustix::termios::tcgetwinsize(std::io::stdout())
        && size.ws_col > 0
    {
        return Size {
            columns: usize::from(size.ws_col),
            rows: usize::from(size.ws_row.max(1)),
        };
    }
    Size {
        columns: 80,
        rows: 24,
    }
}

/// Whether the terminal breaks its rows again when it is made narrower. Most do; these cut them.
pub(crate) fn reflows(term: Option<&str>, xterm: bool) -> bool {
    let cuts = ["linux", "vt100", "vt220", "screen", "xterm-mono"];
    !xterm && !term.is_some_and(|term| cuts.contains(&term))
}

/// What is typed is not written to the screen, on which something else is being written, and is kept for the next
/// line, Ctrl-D too. Ctrl-C stays a signal. Dropping it undoes it.
#[derive(Debug)]
pub(crate) struct Quiet {
    #[cfg(unix)]
    before: Option<rustix::termios::Termios>,
}

impl Quiet {
    #[cfg(unix)]
    pub(crate) fn begin() -> Self {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let before = tcgetattr(std::io::stdin()).ok();
        if let Some(before) = &before {
            let mut quiet = before.clone();
            quiet
                .local_modes
                .remove(LocalModes::ECHO | LocalModes::ICANON);
            // A terminal that does not do so shows what is typed.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &quiet);
        }
        Self { before }
    }

    #[cfg(not(unix))]
    pub(crate) fn begin() -> Self {
        Self {}
    }
}

#[cfg(unix)]
impl Drop for Quiet {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        if let Some(before) = &self.before {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
    }
}
