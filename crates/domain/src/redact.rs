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
mod spellings;

use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

use serde_json::{Map, Value};

use self::known_secrets::{KnownSecrets, Place};
use crate::{MAX_DOCUMENT_DEPTH, MediaSource, ToolContent, ToolOutput};

/// The replacement of a secret.
pub const REDACTED: &str = "[redacted]";

/// Size limits of redacted text and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeLimits {
    /// Maximum bytes of one text.
    pub text: usize,
    /// Maximum items of one list and members of one object.
    pub items: usize,
    /// Approximate maximum bytes of all texts and names of one value.
    pub total: usize,
}

impl SizeLimits {
    /// No limits.
    pub const UNLIMITED: Self = Self {
        text: usize::MAX,
        items: usize::MAX,
        total: usize::MAX,
    };
}

impl Default for SizeLimits {
    /// Returns the limits of an audit record: 1,000 bytes of text, 50 items, 8,000 bytes in total.
    fn default() -> Self {
        Self {
            text: 1_000,
            items: 50,
            total: 8_000,
        }
    }
}

/// Removes secrets; see the [module documentation](self).
///
/// Clones are cheap. `Debug` prints only the number of known secrets.
#[derive(Clone, Default)]
pub struct Redactor {
    known: Arc<KnownSecrets>,
    /// Shared with every clone and every redactor derived from this one.
    added: Arc<RwLock<KnownSecrets>>,
    limits: SizeLimits,
}

impl Redactor {
    /// Maximum number of secrets that [`Redactor::add_secret`] keeps.
    pub const MAX_ADDED_SECRETS: usize = 1_024;
    /// Maximum bytes of all secrets that [`Redactor::add_secret`] keeps.
    pub const MAX_ADDED_BYTES: usize = 256 * 1_024;

    /// Returns a redactor that also knows these secrets.
    ///
    /// Ignores white space around a secret, and secrets shorter than 8 bytes. Also knows the token
    /// of a header such as `Bearer TOKEN` without its scheme. A secret that looks like a word
    /// (`postgres`) is redacted only where it is not a part of a longer word.
    #[must_use]
    pub fn with_secrets<S: AsRef<str>>(mut self, secrets: impl IntoIterator<Item = S>) -> Self {
        let known = Arc::make_mut(&mut self.known);
        for secret in secrets {
            known.insert(secret.as_ref());
        }
        self
    }

    /// Returns a redactor that also knows these named secrets.
    ///
    /// They are redacted inside longer words too. The minimum length is 4 bytes if the name
    /// suggests a secret, else 8.
    #[must_use]
    pub fn with_named_secrets<'s>(
        mut self,
        secrets: impl IntoIterator<Item = (&'s str, &'s str)>,
    ) -> Self {
        let known = Arc::make_mut(&mut self.known);
        for (name, secret) in secrets {
            known.insert_named(name, secret);
        }
        self
    }

    /// Returns a redactor with other size limits.
    #[must_use]
    pub fn with_limits(mut self, limits: SizeLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Adds a secret to this redactor, to its clones and to all redactors derived from them.
    ///
    /// Keeps the newest secrets up to [`Self::MAX_ADDED_SECRETS`] and [`Self::MAX_ADDED_BYTES`].
    pub fn add_secret(&self, secret: &str) {
        let mut added = self.added.write().unwrap_or_else(PoisonError::into_inner);
        added.insert(secret);
        added.drop_oldest(Self::MAX_ADDED_SECRETS, Self::MAX_ADDED_BYTES);
    }

    /// Returns the number of known secrets.
    pub fn secret_count(&self) -> usize {
        self.known.len() + self.added().len()
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
    /// `key` and `sig` are secrets here, but not in a JSON object.
    pub fn is_secret_parameter(name: &str) -> bool {
        secret_names::is_secret_parameter(name)
    }

    /// Returns whether this value with this name is probably a secret.
    ///
    /// Unlike [`Redactor::is_secret_name`], recognizes plural names (`tokens`) of values that are
    /// not just numbers.
    pub fn is_secret(name: &str, value: &Value) -> bool {
        secret_names::is_secret(name, value)
    }

    /// Removes known secrets from a text.
    ///
    /// Also removes the beginning of a secret before `…`, where an excerpt was cut.
    pub fn redact_known<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.without_known(text, Place::Text)
    }

    /// Removes known secrets from the name of a member, a tool or a server.
    ///
    /// Secrets that look like words stay, because another program would not recognize the name.
    pub fn redact_known_in_name<'t>(&self, name: &'t str) -> Cow<'t, str> {
        self.without_known(name, Place::Name)
    }

    /// Replaces the known secrets in a tool output. Does not search the bytes of images, audio and
    /// resources.
    pub fn redact_known_in_output(&self, output: &mut ToolOutput) {
        if self.secret_count() > 0 {
            for part in &mut output.content {
                self.redact_known_in_part(part);
            }
            if let Some(structured) = &mut output.structured {
                self.redact_known_in_value(structured);
            }
        }
    }

    /// Replaces the known secrets in a value.
    pub fn redact_known_in_value(&self, value: &mut Value) {
        *value = Walk::known_only(self).value(value, 0);
    }

    /// Removes known and likely secrets from a text and limits its size.
    pub fn redact_text(&self, text: &str) -> String {
        self.limited(text, self.limits.text)
    }

    /// Removes known and likely secrets from a value and limits its size.
    ///
    /// Notes the number of omitted items in their place.
    pub fn redact_value(&self, value: &Value) -> Value {
        Walk::all(self).value(value, 0)
    }

    /// Returns tool content as a list without known and likely secrets, with limited size.
    ///
    /// Names media and bytes instead of including them.
    pub fn redact_content(&self, content: &[ToolContent]) -> Value {
        let mut walk = Walk::all(self);
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
            walk.value(&shown, 0)
        });
        parts.collect()
    }

    fn added(&self) -> RwLockReadGuard<'_, KnownSecrets> {
        self.added.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn without_known<'t>(&self, text: &'t str, place: Place) -> Cow<'t, str> {
        let mut ranges = self.known.find(text, place);
        ranges.extend(self.added().find(text, place));
        if ranges.is_empty() {
            return Cow::Borrowed(text);
        }
        ranges.sort_unstable_by_key(|range| range.start);
        let mut clean = String::with_capacity(text.len());
        let mut end = 0;
        for range in ranges {
            // Overlapping secrets get one replacement.
            if range.start >= end {
                clean.push_str(&text[end..range.start]);
                clean.push_str(REDACTED);
            }
            end = end.max(range.end);
        }
        clean.push_str(&text[end..]);
        Cow::Owned(clean)
    }

    fn redact_known_in_part(&self, part: &mut ToolContent) {
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

    /// Removes secrets before cutting: part of a secret would not be recognized.
    fn limited(&self, text: &str, limit: usize) -> String {
        // Searches only the shown part of a large text, and enough behind it to recognize a secret
        // at the cut.
        let longest = self.known.longest().max(self.added().longest());
        let searched = limit.saturating_add(longest).saturating_add(256);
        let searched = &text[..text.floor_char_boundary(searched)];
        let mut clean = likely_secrets::redact(&self.redact_known(searched));
        let not_searched = text.len() - searched.len();
        if clean.len() <= limit && not_searched == 0 {
            return clean;
        }
        let end = clean.floor_char_boundary(limit);
        let omitted = clean.len() - end + not_searched;
        clean.truncate(end);
        format!("{clean}… [{omitted} bytes more]")
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

/// One pass over a JSON value.
struct Walk<'r> {
    redactor: &'r Redactor,
    known_only: bool,
    limits: SizeLimits,
    /// Bytes left of [`SizeLimits::total`].
    left: usize,
}

impl<'r> Walk<'r> {
    fn all(redactor: &'r Redactor) -> Self {
        Self {
            redactor,
            known_only: false,
            limits: redactor.limits,
            left: redactor.limits.total,
        }
    }

    fn known_only(redactor: &'r Redactor) -> Self {
        Self {
            redactor,
            known_only: true,
            limits: SizeLimits::UNLIMITED,
            left: usize::MAX,
        }
    }

    fn value(&mut self, value: &Value, depth: usize) -> Value {
        if depth > MAX_DOCUMENT_DEPTH {
            return Value::from("[too deep]");
        }
        match value {
            Value::String(text) => {
                let text = self.text(text, self.limits.text.min(self.left));
                self.left = self.left.saturating_sub(text.len());
                Value::String(text)
            }
            // A password may consist of digits.
            Value::Number(number) if self.redactor.secret_count() > 0 => {
                match self.redactor.redact_known(&number.to_string()) {
                    Cow::Borrowed(_) => value.clone(),
                    Cow::Owned(clean) => Value::String(clean),
                }
            }
            Value::Array(items) => {
                let mut clean = Vec::new();
                for item in items {
                    if self.is_full(clean.len()) {
                        clean.push(Value::from(format!("[{} more]", items.len() - clean.len())));
                        break;
                    }
                    self.left = self.left.saturating_sub(1);
                    clean.push(self.value(item, depth + 1));
                }
                Value::Array(clean)
            }
            Value::Object(members) => Value::Object(self.members(members, depth)),
            other => other.clone(),
        }
    }

    fn members(&mut self, members: &Map<String, Value>, depth: usize) -> Map<String, Value> {
        let mut clean = Map::new();
        for (name, value) in members {
            if self.is_full(clean.len()) {
                let more = format!("[{} more]", members.len() - clean.len());
                clean.insert("…".to_owned(), more.into());
                break;
            }
            let is_secret =
                !self.known_only && !value.is_null() && Redactor::is_secret(name, value);
            let name = self.text(name, self.limits.text);
            self.left = self.left.saturating_sub(name.len().max(1));
            let value = if is_secret {
                Value::from(REDACTED)
            } else {
                self.value(value, depth + 1)
            };
            clean.insert(name, value);
        }
        clean
    }

    fn text(&self, text: &str, limit: usize) -> String {
        if self.known_only {
            self.redactor.redact_known(text).into_owned()
        } else {
            self.redactor.limited(text, limit)
        }
    }

    fn is_full(&self, count: usize) -> bool {
        count >= self.limits.items || self.left == 0
    }
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
