//! Takes what must not be kept out of what is kept.

use std::fmt;

use serde_json::{Map, Value};
use switchboard_domain::ToolContent;

use super::{known::KnownSecrets, names, secrets::without_secrets};

/// What stands where a secret stood.
pub(super) const REDACTED: &str = "[redacted]";

/// Deeper values are not looked into.
const MAX_DEPTH: usize = 32;

/// How much of a value is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeLimits {
    /// Bytes of one text.
    pub text: usize,
    /// Items of one list and fields of one object.
    pub items: usize,
    /// Bytes of all texts and names of one value together, roughly.
    pub total: usize,
}

impl Default for SizeLimits {
    /// 1,000 bytes of a text, 50 items, 8,000 bytes in all.
    fn default() -> Self {
        Self {
            text: 1_000,
            items: 50,
            total: 8_000,
        }
    }
}

/// Makes values and texts fit to be kept: without secrets and of bounded size.
///
/// A secret is what stands under a name like `token`, `api_key`, `password`, `authorization` or
/// `cookie`, what reads like a key or a bearer token, and every text that it was told of. None of
/// this can know every secret there is. Cheap to clone.
#[derive(Clone, Default)]
pub struct Redactor {
    known: KnownSecrets,
    limits: SizeLimits,
}

impl Redactor {
    /// Also hides these texts wherever they stand, in the spellings that [`KnownSecrets`] knows. Those shorter
    /// than 8 bytes are left out.
    #[must_use]
    pub fn with_secrets<S: Into<String>>(mut self, secrets: impl IntoIterator<Item = S>) -> Self {
        self.known = self.known.with(secrets);
        self
    }

    /// Keeps more or less of a value.
    #[must_use]
    pub fn with_limits(mut self, limits: SizeLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Whether what is called so is taken for a secret: `api_key`, `accessToken`, `Set-Cookie`, but
    /// not `max_tokens`.
    pub fn is_secret_name(name: &str) -> bool {
        names::is_secret_name(name)
    }

    /// Whether this value under this name is taken for one: also under a name for several, such as `tokens`, where numbers
    /// are counts.
    pub fn is_secret(name: &str, value: &Value) -> bool {
        names::is_secret(name, value)
    }

    /// A text without secrets, cut to [`SizeLimits::text`].
    pub fn text(&self, text: &str) -> String {
        self.cut(text, self.limits.text)
    }

    /// A value without secrets, cut to size. What was left out is counted in its place.
    pub fn value(&self, value: &Value) -> Value {
        let mut left = self.limits.total;
        self.take(value, 0, &mut left)
    }

    /// What a tool gave, without secrets and without the bytes of media.
    pub fn content(&self, content: &[ToolContent]) -> Value {
        let mut left = self.limits.total;
        let pieces = content.iter().map(|piece| self.piece(piece));
        let shown: Vec<Value> = pieces
            .take(self.limits.items)
            .map(|piece| self.take(&piece, 0, &mut left))
            .collect();
        Value::Array(shown)
    }

    /// A piece of a result as text; media and bytes by their kind and size.
    fn piece(&self, piece: &ToolContent) -> Value {
        let text = match piece {
            ToolContent::Resource {
                uri,
                text: None,
                blob: Some(blob),
                ..
            } => format!("[resource {uri}, {} bytes of base64]", blob.len()),
            ToolContent::Unknown { value } => return self.value(value),
            other => other.as_text(),
        };
        Value::String(text)
    }

    fn take(&self, value: &Value, depth: usize, left: &mut usize) -> Value {
        if depth > MAX_DEPTH {
            return Value::String("[too deep]".to_owned());
        }
        match value {
            Value::String(text) => {
                let shown = self.cut(text, self.limits.text.min(*left));
                *left = left.saturating_sub(shown.len());
                Value::String(shown)
            }
            Value::Array(items) => {
                let mut shown = Vec::new();
                for item in items {
                    if shown.len() >= self.limits.items || *left == 0 {
                        let more = items.len() - shown.len();
                        shown.push(Value::String(format!("[{more} more]")));
                        break;
                    }
                    *left = left.saturating_sub(1);
                    shown.push(self.take(item, depth + 1, left));
                }
                Value::Array(shown)
            }
            Value::Object(fields) => Value::Object(self.take_fields(fields, depth, left)),
            other => other.clone(),
        }
    }

    fn take_fields(
        &self,
        fields: &Map<String, Value>,
        depth: usize,
        left: &mut usize,
    ) -> Map<String, Value> {
        let mut shown = Map::new();
        for (name, value) in fields {
            if shown.len() >= self.limits.items || *left == 0 {
                let more = fields.len() - shown.len();
                shown.insert("…".to_owned(), Value::String(format!("[{more} more]")));
                break;
            }
            // What a name says of its value is read before the name is cut.
            let secret = names::is_secret(name, value) && !value.is_null();
            let name = self.cut(name, self.limits.text);
            *left = left.saturating_sub(name.len().max(1));
            let value = if secret {
                Value::String(REDACTED.to_owned())
            } else {
                self.take(value, depth + 1, left)
            };
            shown.insert(name, value);
        }
        shown
    }

    /// Hides first and cuts then: a secret that was cut in the middle would not be known any more.
    fn cut(&self, text: &str, limit: usize) -> String {
        // Of a text of megabytes only the part that is shown is looked at, and so much more that no
        // known secret is cut at its end.
        let looked_at = if text.len() <= limit {
            text
        } else {
            let longest = self.known.longest();
            &text[..text.floor_char_boundary(limit.saturating_add(longest + 256))]
        };
        let mut clean = without_secrets(&self.known.strike_out(looked_at));
        let unseen = text.len() - looked_at.len();
        if clean.len() <= limit && unseen == 0 {
            return clean;
        }
        let kept = clean.floor_char_boundary(limit);
        let cut_off = clean.len() - kept + unseen;
        clean.truncate(kept);
        format!("{clean}… [{cut_off} bytes more]")
    }
}

/// Says how many secrets are known, and none of them.
impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor")
            .field("known", &self.known.count())
            .field("limits", &self.limits)
            .finish()
    }
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
