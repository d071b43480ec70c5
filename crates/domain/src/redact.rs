//! Removal of secrets from text, JSON values and tool outputs.
//!
//! A [`Redactor`] replaces two kinds of secrets by [`REDACTED`]:
//!
//! - *known* secrets: values from the configuration, the environment or a request, also as other
//!   programs write them (escaped in JSON, URL-encoded, as base64 or hexadecimal);
//! - *likely* secrets: values under a name such as `api_key`, and text that looks like a token.
//!
//! The methods `redact_known…` remove only known secrets. They suit data that must otherwise stay
//! as it is, such as a tool result for the model. The other methods remove both kinds. They suit
//! logs and records, and they also limit the size. No redactor can recognize every secret.
//!
//! ```
//! use serde_json::json;
//! use switchboard_domain::redact::Redactor;
//!
//! let redactor = Redactor::default().with_secrets(["correct horse"]);
//! assert_eq!(redactor.redact_known("?q=correct%20horse"), "?q=[redacted]");
//! assert_eq!(
//!     redactor.redact_value(&json!({"user": "ada", "api_key": "k-1"})),
//!     json!({"user": "ada", "api_key": "[redacted]"})
//! );
//!
//! // Clones and redactors derived from this one see secrets that are added later.
//! let of_server = redactor.clone().with_secrets(["of-the-server"]);
//! redactor.add_secret("of-a-client");
//! assert_eq!(of_server.redact_known("of-a-client"), "[redacted]");
//! ```

mod known_secrets;
mod likely_secrets;
mod secret_names;
mod secret_spellings;

use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

use serde_json::{Map, Value};

use self::known_secrets::{KnownSecrets, TextKind};
use crate::{MAX_DOCUMENT_DEPTH, MediaSource, ToolContent, ToolOutput};

/// The text that replaces a secret.
pub const REDACTED: &str = "[redacted]";

/// Size limits of redacted text and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedactionLimits {
    /// Maximum size of one text in bytes.
    pub text: usize,
    /// Maximum number of items in one array, or of members in one object.
    pub items: usize,
    /// Approximate maximum size in bytes of all texts and member names in one JSON value.
    pub total: usize,
}

impl RedactionLimits {
    /// Size limits for output that is never shortened.
    pub const UNLIMITED: Self = Self {
        text: usize::MAX,
        items: usize::MAX,
        total: usize::MAX,
    };
}

impl Default for RedactionLimits {
    /// Returns the limits of an audit record: 1,000 bytes of text, 50 items, 8,000 bytes in total.
    fn default() -> Self {
        Self {
            text: 1_000,
            items: 50,
            total: 8_000,
        }
    }
}

/// Remover of known and likely secrets; see the [module documentation](self).
///
/// Clones are cheap. `Debug` prints only the number of known secrets.
#[derive(Clone, Default)]
pub struct Redactor {
    known: Arc<KnownSecrets>,
    /// Secrets from [`Redactor::add_secret`]. Clones of this redactor, and redactors that the
    /// `with_…` methods derive from it, share this list.
    added: Arc<RwLock<KnownSecrets>>,
    limits: RedactionLimits,
}

impl Redactor {
    /// Maximum number of secrets from [`Redactor::add_secret`]. The oldest ones are dropped.
    pub const MAX_ADDED_SECRETS: usize = 1_024;
    /// Maximum total bytes of secrets from [`Redactor::add_secret`]. The oldest are dropped.
    pub const MAX_ADDED_BYTES: usize = 256 * 1_024;

    /// Returns a redactor that also removes these secrets.
    ///
    /// Ignores white space around a secret, and secrets shorter than 8 bytes. Also removes the
    /// token of a header such as `Bearer TOKEN` where it occurs without `Bearer`. A secret that
    /// looks like a word (`postgres`) is redacted only where it is not a part of a longer word.
    #[must_use]
    pub fn with_secrets<S: AsRef<str>>(mut self, secrets: impl IntoIterator<Item = S>) -> Self {
        let known = Arc::make_mut(&mut self.known);
        for secret in secrets {
            known.insert(secret.as_ref());
        }
        self
    }

    /// Returns a redactor that also removes these secrets, given as pairs of name and value.
    ///
    /// A value is redacted even where it is a part of a longer word. Values of less than 8 bytes
    /// are ignored, or of less than 4 bytes if the name suggests a secret.
    #[must_use]
    pub fn with_named_secrets<'s>(
        mut self,
        secrets: impl IntoIterator<Item = (&'s str, &'s str)>,
    ) -> Self {
        let known = Arc::make_mut(&mut self.known);
        for (name, secret) in secrets {
            known.insert_named_secret(name, secret);
        }
        self
    }

    /// Returns a redactor that limits redacted text and values to these sizes.
    #[must_use]
    pub fn with_limits(mut self, limits: RedactionLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Adds a secret to this redactor, to its clones and to all redactors derived from them.
    ///
    /// Keeps the newest secrets up to [`Self::MAX_ADDED_SECRETS`] and [`Self::MAX_ADDED_BYTES`].
    pub fn add_secret(&self, secret: &str) {
        let mut added = self.added.write().unwrap_or_else(PoisonError::into_inner);
        added.insert(secret);
        added.drop_oldest_secrets(Self::MAX_ADDED_SECRETS, Self::MAX_ADDED_BYTES);
    }

    /// Returns the number of known secrets, including those from [`Redactor::add_secret`].
    pub fn secret_count(&self) -> usize {
        self.known.len() + self.lock_added_secrets().len()
    }

    /// Returns whether a value with this name is probably a secret.
    ///
    /// Any spelling is recognized: `api_key`, `apiKey`, `X-API-Key`. Counts (`max_tokens`) and
    /// positions (`page_token`) are not secrets.
    pub fn is_secret_name(name: &str) -> bool {
        secret_names::is_secret_name(name)
    }

    /// Returns whether a URL parameter with this name is probably a secret.
    ///
    /// Unlike [`Redactor::is_secret_name`], also recognizes `key`, `sig` and `signature`.
    pub fn is_secret_parameter(name: &str) -> bool {
        secret_names::is_secret_parameter(name)
    }

    /// Returns whether this value with this name is probably a secret.
    ///
    /// Unlike [`Redactor::is_secret_name`], also recognizes the plural of a secret's name
    /// (`tokens`) if the value contains a text that is not a number. Booleans and empty texts are
    /// not secrets.
    pub fn is_secret(name: &str, value: &Value) -> bool {
        secret_names::is_secret(name, value)
    }

    /// Removes known secrets from a text.
    ///
    /// Also removes an incomplete secret directly before the character `…`, where a longer text was
    /// truncated.
    pub fn redact_known<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.replace_known_secrets(text, TextKind::Text)
    }

    /// Removes known secrets from the name of a JSON member, a tool or a server.
    ///
    /// A secret that looks like a word, such as `postgres`, stays. Otherwise programs could not
    /// find the member, tool or server by its name.
    pub fn redact_known_in_name<'t>(&self, name: &'t str) -> Cow<'t, str> {
        self.replace_known_secrets(name, TextKind::Name)
    }

    /// Replaces the known secrets in a tool output. Does not search the bytes of images, audio and
    /// resources.
    pub fn redact_known_in_output(&self, output: &mut ToolOutput) {
        if self.secret_count() > 0 {
            for part in &mut output.content {
                self.redact_known_in_content(part);
            }
            if let Some(structured) = &mut output.structured {
                self.redact_known_in_value(structured);
            }
        }
    }

    /// Replaces the known secrets in the texts, numbers and member names of a JSON value. A number
    /// that contains a secret becomes a string. In a member name, a secret that looks like a word
    /// stays, as in [`Self::redact_known_in_name`].
    pub fn redact_known_in_value(&self, value: &mut Value) {
        *value = ValueRedactor::new(self, true).redact_json_value(value, 0);
    }

    /// Removes known and likely secrets from a text and truncates it to [`RedactionLimits::text`].
    /// A note at the end of a truncated text states the number of omitted bytes.
    pub fn redact_text(&self, text: &str) -> String {
        self.redact_and_truncate(text, self.limits.text, TextKind::Text)
    }

    /// Removes known and likely secrets from a JSON value and limits its size.
    ///
    /// A note in the place of omitted items states their number.
    pub fn redact_value(&self, value: &Value) -> Value {
        ValueRedactor::new(self, false).redact_json_value(value, 0)
    }

    /// Returns tool content as a JSON array without known and likely secrets. The
    /// [`RedactionLimits`] of the redactor limit the number and the size of its items.
    ///
    /// A short description replaces the bytes of media and resources.
    pub fn redact_content(&self, content: &[ToolContent]) -> Value {
        let mut value_redactor = ValueRedactor::new(self, false);
        let parts = content.iter().take(self.limits.items).map(|part| {
            let shown = match part {
                ToolContent::Resource {
                    uri,
                    text: None,
                    blob: Some(blob),
                    ..
                } => format!("[resource {uri}, {} bytes of base64]", blob.len()).into(),
                ToolContent::Unknown { value } => value.clone(),
                other => Value::from(other.as_text()),
            };
            value_redactor.redact_json_value(&shown, 0)
        });
        parts.collect()
    }

    fn lock_added_secrets(&self) -> RwLockReadGuard<'_, KnownSecrets> {
        self.added.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn replace_known_secrets<'t>(&self, text: &'t str, place: TextKind) -> Cow<'t, str> {
        let mut ranges = self.known.find_secrets(text, place);
        ranges.extend(self.lock_added_secrets().find_secrets(text, place));
        if ranges.is_empty() {
            return Cow::Borrowed(text);
        }
        ranges.sort_unstable_by_key(|range| range.start);
        let mut clean = String::with_capacity(text.len());
        let mut end = 0;
        for range in ranges {
            // Secrets that overlap are replaced by one `REDACTED`.
            if range.start >= end {
                clean.push_str(&text[end..range.start]);
                clean.push_str(REDACTED);
            }
            end = end.max(range.end);
        }
        clean.push_str(&text[end..]);
        Cow::Owned(clean)
    }

    fn redact_known_in_content(&self, part: &mut ToolContent) {
        let replace = |text: &mut String| *text = self.redact_known(text).into_owned();
        match part {
            ToolContent::Text { text } => replace(text),
            ToolContent::Image(media) | ToolContent::Audio(media) => {
                if let MediaSource::Url(url) = &mut media.source {
                    replace(url);
                }
            }
            ToolContent::Resource { uri, text, .. } => {
                replace(uri);
                text.iter_mut().for_each(replace);
            }
            ToolContent::ResourceLink {
                uri,
                name,
                description,
                ..
            } => {
                replace(uri);
                replace(name);
                description.iter_mut().for_each(replace);
            }
            ToolContent::Unknown { value } => self.redact_known_in_value(value),
        }
    }

    /// Removes secrets from a text, and then truncates the text to `limit` bytes. The truncation is
    /// the last step, because it could cut a secret in half, which would then not be recognized.
    fn redact_and_truncate(&self, text: &str, limit: usize, kind: TextKind) -> String {
        // Only the start of a large text is searched: the bytes up to the limit, and enough further
        // bytes to recognize a secret that starts before the limit and ends after it.
        let longest = self
            .known
            .longest_spelling_bytes()
            .max(self.lock_added_secrets().longest_spelling_bytes());
        let searched = limit.saturating_add(longest).saturating_add(256);
        let searched = &text[..text.floor_char_boundary(searched)];
        let known_removed = self.replace_known_secrets(searched, kind);
        let mut clean = likely_secrets::redact_likely_secrets(&known_removed);
        let not_searched = text.len() - searched.len();
        if clean.len() <= limit && not_searched == 0 {
            return clean;
        }
        let end = clean.floor_char_boundary(limit);
        let omitted = clean.len() - end + not_searched;
        clean.truncate(end);
        format!("{clean}… [{omitted} more bytes]")
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor")
            .field("secrets", &self.secret_count())
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// State of the conversion of one JSON value to its redacted copy.
struct ValueRedactor<'r> {
    redactor: &'r Redactor,
    /// Whether only known secrets are removed. The size of the copy is then not limited.
    known_only: bool,
    limits: RedactionLimits,
    /// Number of bytes of texts and member names that may still be added to the copy without
    /// exceeding [`RedactionLimits::total`].
    left: usize,
}

impl<'r> ValueRedactor<'r> {
    fn new(redactor: &'r Redactor, known_only: bool) -> Self {
        let limits = if known_only {
            RedactionLimits::UNLIMITED
        } else {
            redactor.limits
        };
        Self {
            redactor,
            known_only,
            limits,
            left: limits.total,
        }
    }

    fn redact_json_value(&mut self, value: &Value, depth: usize) -> Value {
        if depth > MAX_DOCUMENT_DEPTH {
            return Value::from("[too deep]");
        }
        match value {
            Value::String(text) => {
                let limit = self.limits.text.min(self.left);
                let text = self.redact_string(text, limit, TextKind::Text);
                self.left = self.left.saturating_sub(text.len());
                Value::String(text)
            }
            // Numbers are searched too, because a password may consist of digits.
            Value::Number(number) if self.redactor.secret_count() > 0 => {
                match self.redactor.redact_known(&number.to_string()) {
                    Cow::Borrowed(_) => value.clone(),
                    Cow::Owned(clean) => Value::String(clean),
                }
            }
            Value::Array(items) => {
                let mut clean = Vec::new();
                for item in items {
                    if self.has_reached_limit(clean.len()) {
                        clean.push(Value::from(format!("[{} more]", items.len() - clean.len())));
                        break;
                    }
                    self.left = self.left.saturating_sub(1);
                    clean.push(self.redact_json_value(item, depth + 1));
                }
                Value::Array(clean)
            }
            Value::Object(members) => Value::Object(self.redact_members(members, depth)),
            other => other.clone(),
        }
    }

    fn redact_members(&mut self, members: &Map<String, Value>, depth: usize) -> Map<String, Value> {
        let mut clean = Map::new();
        for (name, value) in members {
            if self.has_reached_limit(clean.len()) {
                let more = format!("[{} more]", members.len() - clean.len());
                clean.insert("…".to_owned(), more.into());
                break;
            }
            let is_secret =
                !self.known_only && !value.is_null() && Redactor::is_secret(name, value);
            let name = self.redact_string(name, self.limits.text, TextKind::Name);
            self.left = self.left.saturating_sub(name.len().max(1));
            let value = if is_secret {
                Value::from(REDACTED)
            } else {
                self.redact_json_value(value, depth + 1)
            };
            clean.insert(name, value);
        }
        clean
    }

    fn redact_string(&self, text: &str, limit: usize, kind: TextKind) -> String {
        if self.known_only {
            self.redactor.replace_known_secrets(text, kind).into_owned()
        } else {
            self.redactor.redact_and_truncate(text, limit, kind)
        }
    }

    fn has_reached_limit(&self, count: usize) -> bool {
        count >= self.limits.items || self.left == 0
    }
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
