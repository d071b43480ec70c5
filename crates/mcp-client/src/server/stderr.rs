//! The last lines of a server's standard error.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use switchboard_domain::redact::Redactor;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use crate::error::last_lines;

/// Number of lines that are kept.
const MAX_LINES: usize = 20;
/// Maximum size in bytes of a kept line.
const MAX_LINE: usize = 2000;

/// The last lines.
#[derive(Clone, Default)]
pub(crate) struct StderrTail(Arc<Mutex<VecDeque<String>>>);

impl StderrTail {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lock().iter().cloned().collect()
    }

    /// Returns the last lines for an error message.
    pub(crate) fn last_lines(&self) -> Vec<String> {
        last_lines(&self.lines()).to_vec()
    }

    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    fn push(&self, line: String) {
        let mut lines = self.lock();
        if lines.len() == MAX_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads until the end of the output. A server blocks when nobody reads the pipe and it is
    /// full.
    pub(crate) async fn read_all(
        self,
        server: String,
        redactor: Redactor,
        stderr: impl AsyncRead + Unpin,
    ) {
        let mut stderr = BufReader::new(stderr);
        let mut line = Vec::new();
        let mut cut = false;
        loop {
            let (used, ended) = match stderr.fill_buf().await {
                Ok([]) | Err(_) => break,
                Ok(bytes) => {
                    let end = bytes.iter().position(|byte| *byte == b'\n');
                    let part = &bytes[..end.unwrap_or(bytes.len())];
                    let room = MAX_LINE.saturating_sub(line.len()).min(part.len());
                    line.extend_from_slice(&part[..room]);
                    cut |= room < part.len();
                    (end.map_or(bytes.len(), |end| end + 1), end.is_some())
                }
            };
            stderr.consume(used);
            if ended {
                self.push_line(&server, &redactor, &mut line, &mut cut);
            }
        }
        if !line.is_empty() {
            self.push_line(&server, &redactor, &mut line, &mut cut);
        }
    }

    fn push_line(&self, server: &str, redactor: &Redactor, line: &mut Vec<u8>, cut: &mut bool) {
        let text = printable(&String::from_utf8_lossy(line));
        let mut text = redactor.redact_known(&text).into_owned();
        if std::mem::take(cut) {
            text.push('…');
        }
        line.clear();
        tracing::debug!(server, line = text, "stderr");
        self.push(text);
    }
}

/// Removes colours and control characters, because the lines are shown in terminals.
pub(crate) fn printable(line: &str) -> String {
    let mut chars = line.trim_end().chars().peekable();
    let mut out = String::with_capacity(line.len());
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            // A control sequence starts with ESC [ and ends with a byte from @ to ~.
            if chars.next_if_eq(&'[').is_some() {
                for c in chars.by_ref() {
                    if ('@'..='~').contains(&c) {
                        break;
                    }
                }
            }
        } else if c == '\t' || !c.is_control() {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ServerConfig, ServerTransport};

    async fn tail_of(text: &str) -> Vec<String> {
        let mut config = ServerConfig::stdio("s", "c", [""; 0]);
        if let ServerTransport::Stdio { env, .. } = &mut config.transport {
            env.push(("KEY".into(), "sk-secret-1".into()));
        }
        let tail = StderrTail::default();
        tail.clone()
            .read_all("s".into(), config.server_redactor(), text.as_bytes())
            .await;
        tail.lines()
    }

    #[tokio::test]
    async fn the_last_lines_are_kept_short_and_redacted() {
        let lines: Vec<String> = (0..30).map(|i| format!("line {i}\r\n")).collect();
        let mut text = lines.concat();
        text.push_str(&"x".repeat(5000));
        text.push_str("\n\u{1b}[31mred\u{1b}[0m \u{7}key sk-secret-1\nunfinished");
        let lines = tail_of(&text).await;
        assert_eq!(lines.len(), MAX_LINES);
        assert_eq!(lines[0], "line 13");
        assert_eq!(lines[17].chars().count(), MAX_LINE + 1);
        assert_eq!(lines[18], "red key [redacted]");
        assert_eq!(lines[19], "unfinished");
    }
}
