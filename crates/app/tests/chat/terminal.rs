//! The program at a pseudo-terminal: tests send keys and read the screen.

use std::{
    ffi::OsStr,
    io::{Read as _, Write as _},
    path::Path,
    process::Child,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use pty_process::{
    Size,
    blocking::{Command, Pty, open},
};

/// Maximum time until an expected text is on the screen. It is long, because a busy machine is
/// slow.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The program with its pseudo-terminal.
pub(crate) struct Terminal {
    pty: Arc<Pty>,
    child: Child,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    screen: Mutex<Screen>,
    changed: Condvar,
}

impl Seen {
    /// Locks the screen, even if a failed test panicked while it held the lock.
    fn screen(&self) -> MutexGuard<'_, Screen> {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Screen {
    parser: vt100::Parser,
    /// All bytes that the program wrote, with its escape sequences.
    raw: Vec<u8>,
    ended: bool,
}

impl Default for Screen {
    fn default() -> Self {
        Self {
            parser: vt100::Parser::new(24, 80, 2_000),
            raw: Vec::new(),
            ended: false,
        }
    }
}

impl Terminal {
    /// Starts a program in a folder, on a screen of this size. The program has only these
    /// environment variables.
    pub(crate) fn start<'v>(
        program: &Path,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
        folder: &Path,
        variables: impl IntoIterator<Item = (&'v str, String)>,
        (rows, columns): (u16, u16),
    ) -> Self {
        let (pty, pts) = open().unwrap();
        pty.resize(Size::new(rows, columns)).unwrap();
        let child = Command::new(program)
            .args(args)
            .current_dir(folder)
            .env_clear()
            .envs(variables)
            .spawn(pts)
            .unwrap();
        let seen = Arc::new(Seen::default());
        seen.screen().parser.screen_mut().set_size(rows, columns);
        let pty = Arc::new(pty);
        let (reader, watched) = (Arc::clone(&pty), Arc::clone(&seen));
        std::thread::spawn(move || read(&reader, &watched));
        Self { pty, child, seen }
    }

    /// Sends keys to the program.
    pub(crate) fn keys(&self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).unwrap();
    }

    /// Types a line and presses Enter.
    pub(crate) fn line(&self, text: &str) {
        self.keys(text);
        self.shows(text.lines().last().unwrap_or(text));
        self.keys("\r");
    }

    /// Changes the size of the terminal window.
    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        let mut screen = self.seen.screen();
        screen.parser.screen_mut().set_size(rows, columns);
        self.pty.resize(Size::new(rows, columns)).unwrap();
    }

    /// Waits until the text is on the screen.
    #[track_caller]
    pub(crate) fn shows(&self, text: &str) -> String {
        self.wait_for(&format!("{text:?} on the screen"), |screen| {
            screen.contains(text)
        })
    }

    /// Waits until the screen ends with an empty prompt.
    #[track_caller]
    pub(crate) fn wait_for_prompt(&self) -> String {
        self.wait_for("prompt", is_ready)
    }

    /// Waits for a text and then for the prompt.
    #[track_caller]
    pub(crate) fn answers(&self, text: &str) -> String {
        self.shows(text);
        self.wait_for_prompt()
    }

    /// Waits for a text and then for the mark `›`, after which the user answers a question.
    #[track_caller]
    pub(crate) fn asks(&self, text: &str) -> String {
        self.shows(text);
        self.wait_for("question", |screen| screen.ends_with('›'))
    }

    /// Waits until the text of the screen is as `wanted`.
    #[track_caller]
    pub(crate) fn wait_for(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let screen = self.wait_until(what, |screen| {
            screen.ended || wanted(&everything(&mut screen.parser))
        });
        assert!(wanted(&screen), "no {what}; at the end:\n{screen}");
        screen
    }

    /// Waits for a state of the screen. Returns the text of the screen.
    #[track_caller]
    fn wait_until(&self, what: &str, is_reached: impl Fn(&mut Screen) -> bool) -> String {
        let deadline = Instant::now() + TIMEOUT;
        let mut screen = self.seen.screen();
        while !is_reached(&mut screen) {
            let left = deadline.saturating_duration_since(Instant::now());
            let shown = everything(&mut screen.parser);
            assert!(!left.is_zero(), "no {what}; on the screen:\n{shown}");
            let waited = self.seen.changed.wait_timeout(screen, left);
            screen = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        everything(&mut screen.parser)
    }

    /// Waits until the program has ended, and returns its exit code.
    #[track_caller]
    pub(crate) fn end(&mut self) -> i32 {
        self.wait_until("end", |screen| screen.ended);
        let status = self.child.wait().unwrap();
        status.code().unwrap_or(-1)
    }

    /// Ends the conversation with Ctrl-D.
    #[track_caller]
    pub(crate) fn quit(&mut self) {
        self.keys("\u{4}");
        assert_eq!(self.end(), 0);
    }

    /// Kills the process.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Returns all bytes that the program wrote, with its escape sequences, as text.
    pub(crate) fn raw(&self) -> String {
        let screen = self.seen.screen();
        String::from_utf8_lossy(&screen.raw).into_owned()
    }

    /// Returns the text on the screen, including the rows that were scrolled out of view.
    pub(crate) fn screen(&self) -> String {
        everything(&mut self.seen.screen().parser)
    }

    /// Reads the screen with its colours.
    #[allow(dead_code, reason = "the picture of the documentation is made with it")]
    pub(crate) fn look<T>(&self, look: impl FnOnce(&vt100::Screen) -> T) -> T {
        look(self.seen.screen().parser.screen())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The program of a failed test is ended too.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns whether the screen ends with an empty prompt.
pub(crate) fn is_ready(screen: &str) -> bool {
    screen.trim_end().ends_with('❯')
}

/// Returns all rows that the terminal has shown, without blank rows at both ends.
fn everything(parser: &mut vt100::Parser) -> String {
    let screen = parser.screen_mut();
    let (height, width) = screen.size();
    screen.set_scrollback(usize::MAX);
    let mut above = screen.scrollback();
    let mut rows = Vec::new();
    while above > 0 {
        screen.set_scrollback(above);
        rows.extend(screen.rows(0, width).next());
        above -= 1;
    }
    screen.set_scrollback(0);
    rows.extend(screen.rows(0, width).take(usize::from(height)));
    let rows: Vec<&str> = rows.iter().map(|row| row.trim_end()).collect();
    rows.join("\n").trim_end().to_owned()
}

/// Reads the output of the program, and answers its queries for the position of the cursor.
fn read(pty: &Pty, seen: &Seen) {
    const WHERE: &[u8] = b"\x1b[6n";
    let mut bytes = [0; 4_096];
    loop {
        // The program has ended if no process has the other end open.
        let count = match (&*pty).read(&mut bytes) {
            Ok(0) | Err(_) => break,
            Ok(count) => count,
        };
        let mut screen = seen.screen();
        for &byte in &bytes[..count] {
            screen.raw.push(byte);
            screen.parser.process(&[byte]);
            if screen.raw.ends_with(WHERE) {
                let (row, column) = screen.parser.screen().cursor_position();
                let answer = format!("\x1b[{};{}R", row + 1, column + 1);
                // The error is ignored, because the program may have ended meanwhile.
                let _ = (&*pty).write_all(answer.as_bytes());
            }
        }
        drop(screen);
        seen.changed.notify_all();
    }
    seen.screen().ended = true;
    seen.changed.notify_all();
}
