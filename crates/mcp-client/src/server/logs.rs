//! What a server logs through the protocol (`notifications/message`).

#![allow(deprecated, reason = "servers of both eras still log so")]

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{redact::Redactor, server::stderr::printable};

/// Messages kept.
const LINES: usize = 50;
/// Bytes kept of one message.
const LINE_BYTES: usize = 2000;

/// How grave a server's message is, as in RFC 5424 and MCP; later is graver.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// For its own developers.
    Debug,
    /// Ordinary.
    #[default]
    Info,
    /// Ordinary, and worth knowing.
    Notice,
    /// Something may be wrong.
    Warning,
    /// Something went wrong.
    Error,
    /// A part of it is out of order.
    Critical,
    /// Somebody must act at once.
    Alert,
    /// It is of no use any more.
    Emergency,
}

impl LogLevel {
    pub(crate) fn to_mcp(self) -> LoggingLevel {
        match self {
            Self::Debug => LoggingLevel::Debug,
            Self::Info => LoggingLevel::Info,
            Self::Notice => LoggingLevel::Notice,
            Self::Warning => LoggingLevel::Warning,
            Self::Error => LoggingLevel::Error,
            Self::Critical => LoggingLevel::Critical,
            Self::Alert => LoggingLevel::Alert,
            Self::Emergency => LoggingLevel::Emergency,
        }
    }

    fn of_mcp(level: LoggingLevel) -> Self {
        match level {
            LoggingLevel::Debug => Self::Debug,
            LoggingLevel::Info => Self::Info,
            LoggingLevel::Notice => Self::Notice,
            LoggingLevel::Warning => Self::Warning,
            LoggingLevel::Error => Self::Error,
            LoggingLevel::Critical => Self::Critical,
            LoggingLevel::Alert => Self::Alert,
            LoggingLevel::Emergency => Self::Emergency,
        }
    }
}

/// One message that a server logged; untrusted text without control characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogLine {
    /// How grave it is.
    pub level: LogLevel,
    /// Which part of the server says it, if it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logger: Option<String>,
    /// The message: the text as it came, or JSON where it is no text. Cut after 2000 bytes, which an
    /// ellipsis shows.
    pub text: String,
}

/// The last messages of one server, shared between those who hear them and those who show them.
#[derive(Clone, Default)]
pub(crate) struct LogTail(Arc<Mutex<VecDeque<LogLine>>>);

impl LogTail {
    pub(crate) fn lines(&self) -> Vec<LogLine> {
        self.lock().iter().cloned().collect()
    }

    /// Keeps a message and hands it on to `tracing`, unless it is less grave than `least`. (Servers
    /// are told so; not all of them heed it.)
    pub(crate) fn take(
        &self,
        server: &str,
        redactor: &Redactor,
        least: LogLevel,
        message: LoggingMessageNotificationParam,
    ) {
        let level = LogLevel::of_mcp(message.level);
        if level < least {
            return;
        }
        let text = match message.data {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let line = LogLine {
            level,
            logger: message.logger.map(|logger| clean(redactor, &logger)),
            text: clean(redactor, &text),
        };
        let logger = line.logger.as_deref().unwrap_or_default();
        let text = line.text.as_str();
        match level {
            LogLevel::Debug => tracing::debug!(server, logger, text, "server log"),
            LogLevel::Info | LogLevel::Notice => {
                tracing::info!(server, logger, text, "server log");
            }
            LogLevel::Warning => tracing::warn!(server, logger, text, "server log"),
            _ => tracing::error!(server, logger, ?level, text, "server log"),
        }
        let mut lines = self.lock();
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<LogLine>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Secrets go first: cut in two they would not be found.
fn clean(redactor: &Redactor, text: &str) -> String {
    let text = redactor.clean(text);
    let end = text.floor_char_boundary(LINE_BYTES);
    let mut kept = printable(&text[..end]);
    if end < text.len() {
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::ServerConfig;

    fn redactor() -> Redactor {
        let mut config = ServerConfig::stdio("s", "c", [""; 0]);
        config.secrets = vec!["sk-secret-1".into()];
        Redactor::new(&config)
    }

    fn message(level: LoggingLevel, data: Value) -> LoggingMessageNotificationParam {
        LoggingMessageNotificationParam::new(level, data).with_logger("db \u{1b}[1mx")
    }

    #[test]
    fn the_last_messages_are_kept_short_and_clean() {
        let tail = LogTail::default();
        let take = |level, data| {
            tail.take("s", &redactor(), LogLevel::Info, message(level, data));
        };
        for number in 0..LINES {
            take(LoggingLevel::Info, json!(number));
        }
        take(LoggingLevel::Debug, json!("not wanted"));
        take(LoggingLevel::Error, json!({"key": "sk-secret-1"}));
        let long = format!("{}sk-secret-1", "ä".repeat(LINE_BYTES / 2 - 2));
        take(LoggingLevel::Emergency, json!(long));
        let lines = tail.lines();
        assert_eq!(lines.len(), LINES);
        assert_eq!(lines[0].text, "2");
        assert_eq!(
            lines[LINES - 2],
            LogLine {
                level: LogLevel::Error,
                logger: Some("db x".to_owned()),
                text: r#"{"key":"[redacted]"}"#.to_owned(),
            }
        );
        let last = &lines[LINES - 1];
        assert_eq!(last.level, LogLevel::Emergency);
        assert!(last.text.ends_with("[red…"), "{}", last.text);
    }

    #[test]
    fn levels_are_the_protocols() {
        let mut before = None;
        for word in [
            "debug",
            "info",
            "notice",
            "warning",
            "error",
            "critical",
            "alert",
            "emergency",
        ] {
            let ours: LogLevel = serde_json::from_value(json!(word)).unwrap();
            assert_eq!(serde_json::to_value(ours.to_mcp()).unwrap(), json!(word));
            assert_eq!(LogLevel::of_mcp(ours.to_mcp()), ours);
            assert!(before < Some(ours), "{word}");
            before = Some(ours);
        }
    }
}
