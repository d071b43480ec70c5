//! Log messages that a server sends through the protocol (`notifications/message`).

#![allow(deprecated, reason = "servers of every version still log")]

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use rmcp::model::LoggingMessageNotificationParam;
use serde::Serialize;
use serde_json::Value;
use switchboard_domain::redact::Redactor;

use crate::{config::log_level::LogLevel, server::stderr::printable};

/// Number of messages that are kept.
const MAX_MESSAGES: usize = 50;
/// Maximum size in bytes of a kept message.
const MAX_MESSAGE: usize = 2000;

/// A log message of a server: untrusted text without control characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogMessage {
    /// The severity.
    pub level: LogLevel,
    /// The component of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logger: Option<String>,
    /// The message. Data that is not text is JSON. Longer messages are cut after 2,000 bytes and
    /// end with an ellipsis.
    pub text: String,
}

/// The last log messages of one server.
#[derive(Default)]
pub(crate) struct LogTail(Mutex<VecDeque<LogMessage>>);

impl LogTail {
    pub(crate) fn messages(&self) -> Vec<LogMessage> {
        self.lock().iter().cloned().collect()
    }

    /// Keeps a message and passes it to `tracing`. Drops messages below `min_level`, which not
    /// every server respects.
    pub(crate) fn record(
        &self,
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
        let message = LogMessage {
            level,
            logger: message.logger.map(|logger| clean(redactor, &logger)),
            text: clean(redactor, &text),
        };
        let logger = message.logger.as_deref().unwrap_or_default();
        let text = message.text.as_str();
        match level {
            LogLevel::Debug => tracing::debug!(server, logger, text, "server log"),
            LogLevel::Info | LogLevel::Notice => {
                tracing::info!(server, logger, text, "server log");
            }
            LogLevel::Warning => tracing::warn!(server, logger, text, "server log"),
            _ => tracing::error!(server, logger, ?level, text, "server log"),
        }
        let mut messages = self.lock();
        if messages.len() == MAX_MESSAGES {
            messages.pop_front();
        }
        messages.push_back(message);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<LogMessage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Redacts before it cuts, because a part of a secret would not be recognized.
fn clean(redactor: &Redactor, text: &str) -> String {
    let text = redactor.redact_known(text);
    let end = text.floor_char_boundary(MAX_MESSAGE);
    let mut clean = printable(&text[..end]);
    if end < text.len() {
        clean.push('…');
    }
    clean
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

    fn message(level: LoggingLevel, data: Value) -> LoggingMessageNotificationParam {
        LoggingMessageNotificationParam::new(level, data).with_logger("db \u{1b}[1mx")
    }

    #[test]
    fn the_last_messages_are_kept_short_and_redacted() {
        let tail = LogTail::default();
        let record = |level, data| {
            tail.record("s", &redactor(), LogLevel::Info, message(level, data));
        };
        for number in 0..MAX_MESSAGES {
            record(LoggingLevel::Info, json!(number));
        }
        record(LoggingLevel::Debug, json!("below the level"));
        record(LoggingLevel::Error, json!({"key": "sk-secret-1"}));
        let long = format!("{}sk-secret-1", "ä".repeat(MAX_MESSAGE / 2 - 2));
        record(LoggingLevel::Emergency, json!(long));
        let messages = tail.messages();
        assert_eq!(messages.len(), MAX_MESSAGES);
        assert_eq!(messages[0].text, "2");
        assert_eq!(
            messages[MAX_MESSAGES - 2],
            LogMessage {
                level: LogLevel::Error,
                logger: Some("db x".to_owned()),
                text: r#"{"key":"[redacted]"}"#.to_owned(),
            }
        );
        let last = &messages[MAX_MESSAGES - 1];
        assert_eq!(last.level, LogLevel::Emergency);
        assert!(last.text.ends_with("[red…"), "{}", last.text);
    }
}
