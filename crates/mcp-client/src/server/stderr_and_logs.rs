//! The last output of an MCP server: lines of its standard error, and log messages that it sends
//! (`notifications/message`).

#![allow(deprecated, reason = "servers of every version still log")]

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use anstream::adapter::strip_str;
use rmcp::model::LoggingMessageNotificationParam;
use serde::Serialize;
use serde_json::Value;
use switchboard_domain::redact::Redactor;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

use crate::{config::LogLevel, primitives::sync::lock_mutex};

/// Maximum number of stored lines of standard error per server. Older lines are dropped.
pub(crate) const MAX_LINES: usize = 20;
/// Maximum number of stored log messages per server. Older messages are dropped.
pub(crate) const MAX_LOGS: usize = 50;
/// Maximum size in bytes of a stored line or log message. Longer text is cut.
const MAX_SIZE: usize = 2000;
/// Number of bytes of a standard error line in which secrets are redacted. The line is then cut to
/// [`MAX_SIZE`]. The first limit is much larger, so that a secret at the second limit is complete.
const MAX_READ: usize = 16 * 1024;

/// Log message that an MCP server sent. The text is untrusted. Secrets and control characters other
/// than tabs were removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogMessage {
    /// Severity that the server gave the message.
    pub level: LogLevel,
    /// Component of the server that logged the message, if the server names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logger: Option<String>,
    /// Text of the message. Data that is not text is shown as JSON. Longer messages are cut after
    /// 2,000 bytes and end with an ellipsis.
    pub text: String,
}

/// Buffer for the last `max` items of a sequence. If the buffer is full, a new item replaces the
/// oldest item.
pub(crate) struct RingBuffer<T> {
    max: usize,
    items: Mutex<VecDeque<T>>,
}

impl<T: Clone> RingBuffer<T> {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max,
            items: Mutex::default(),
        }
    }

    pub(crate) fn to_vec(&self) -> Vec<T> {
        lock_mutex(&self.items).iter().cloned().collect()
    }

    pub(crate) fn clear(&self) {
        lock_mutex(&self.items).clear();
    }

    fn push(&self, item: T) {
        let mut items = lock_mutex(&self.items);
        if items.len() == self.max {
            items.pop_front();
        }
        items.push_back(item);
    }
}

/// Reads and stores the standard error of a process until it closes. Without a reader, the process
/// would block when the pipe is full.
pub(crate) async fn read_stderr(
    tail: Arc<RingBuffer<String>>,
    server: String,
    redactor: Redactor,
    stderr: impl AsyncRead + Unpin,
) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    let mut is_rest = false;
    let max = MAX_READ as u64;
    while let Ok(1..) = (&mut stderr).take(max).read_until(b'\n', &mut line).await {
        let is_cut = line.len() == MAX_READ && !line.ends_with(b"\n");
        if !is_rest {
            let text = sanitize_text(&redactor, &String::from_utf8_lossy(&line));
            tracing::debug!(server, line = text, "stderr");
            tail.push(text);
        }
        is_rest = is_cut;
        line.clear();
    }
}

/// Stores a log message and forwards it to `tracing`. Drops messages below `min_level`, because not
/// every server respects the level.
pub(crate) fn record_log(
    tail: &RingBuffer<LogMessage>,
    server: &str,
    redactor: &Redactor,
    min_level: LogLevel,
    message: LoggingMessageNotificationParam,
) {
    let level = LogLevel::from_mcp(message.level);
    if level < min_level {
        return;
    }
    let text = match message.data {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let text = sanitize_text(redactor, &text);
    let logger = message.logger.as_deref();
    let logger = logger.map(|logger| sanitize_text(redactor, logger));
    match level {
        LogLevel::Debug => tracing::debug!(server, logger, text, "server log"),
        LogLevel::Info | LogLevel::Notice => tracing::info!(server, logger, text, "server log"),
        LogLevel::Warning => tracing::warn!(server, logger, text, "server log"),
        _ => tracing::error!(server, logger, ?level, text, "server log"),
    }
    tail.push(LogMessage {
        level,
        logger,
        text,
    });
}

/// Redacts secrets, and then cuts the text to [`MAX_SIZE`]. In the reverse order, a secret that is
/// cut in half would not be recognized.
fn sanitize_text(redactor: &Redactor, text: &str) -> String {
    let text = redactor.redact_known(text);
    let end = text.floor_char_boundary(MAX_SIZE);
    let mut clean = strip_control_characters(&text[..end]);
    if end < text.len() {
        clean.push('…');
    }
    clean
}

/// Removes escape sequences and control characters except tabs, because terminals show the text.
fn strip_control_characters(text: &str) -> String {
    let mut text = strip_str(text.trim_end()).to_string();
    text.retain(|c| c == '\t' || !c.is_control());
    text
}

#[cfg(test)]
mod tests {
    use rmcp::model::LoggingLevel;
    use serde_json::json;

    use super::*;
    use crate::config::ServerConfig;

    fn redactor() -> Redactor {
        let mut config = ServerConfig::stdio("s", "c", [""; 0]);
        config.secrets = vec!["sk-secret-1".into()];
        config.server_redactor()
    }

    #[tokio::test]
    async fn the_last_lines_are_kept_short_and_redacted() {
        let lines: Vec<String> = (0..30).map(|i| format!("line {i}\r\n")).collect();
        let mut text = lines.concat();
        text.push_str(&"x".repeat(5000));
        text.push_str("\n\u{1b}[31mred\u{1b}[0m \u{7}key sk-secret-1\nunfinished");
        let tail = Arc::new(RingBuffer::new(MAX_LINES));
        read_stderr(tail.clone(), "s".into(), redactor(), text.as_bytes()).await;
        let lines = tail.to_vec();
        assert_eq!(lines.len(), MAX_LINES);
        assert_eq!(lines[0], "line 13");
        assert_eq!(lines[17].chars().count(), MAX_SIZE + 1);
        assert_eq!(lines[18], "red key [redacted]");
        assert_eq!(lines[19], "unfinished");
    }

    #[tokio::test]
    async fn a_secret_at_the_cut_of_a_line_is_redacted() {
        let tail = Arc::new(RingBuffer::new(MAX_LINES));
        let text = format!("{}sk-secret-1\nnext", "x".repeat(MAX_SIZE - 4));
        read_stderr(tail.clone(), "s".into(), redactor(), text.as_bytes()).await;
        let lines = tail.to_vec();
        assert!(lines[0].ends_with("x[red…"), "{}", lines[0]);
        assert_eq!(lines[1], "next");
    }

    #[test]
    fn the_last_messages_are_kept_short_and_redacted() {
        let tail = RingBuffer::new(MAX_LOGS);
        let record = |level, data| {
            let message = LoggingMessageNotificationParam::new(level, data);
            let message = message.with_logger("db \u{1b}[1mx");
            record_log(&tail, "s", &redactor(), LogLevel::Info, message);
        };
        for number in 0..MAX_LOGS {
            record(LoggingLevel::Info, json!(number));
        }
        record(LoggingLevel::Debug, json!("below the level"));
        record(LoggingLevel::Error, json!({"key": "sk-secret-1"}));
        let long = format!("{}sk-secret-1", "ä".repeat(MAX_SIZE / 2 - 2));
        record(LoggingLevel::Emergency, json!(long));
        let messages = tail.to_vec();
        assert_eq!(messages.len(), MAX_LOGS);
        assert_eq!(messages[0].text, "2");
        assert_eq!(
            messages[MAX_LOGS - 2],
            LogMessage {
                level: LogLevel::Error,
                logger: Some("db x".to_owned()),
                text: r#"{"key":"[redacted]"}"#.to_owned(),
            }
        );
        let last = &messages[MAX_LOGS - 1];
        assert_eq!(last.level, LogLevel::Emergency);
        assert!(last.text.ends_with("[red…"), "{}", last.text);
    }
}
