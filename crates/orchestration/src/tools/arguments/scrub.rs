//! Takes values that the host gave out of what comes back.

use std::{borrow::Cow, sync::Arc};

use serde_json::{Map, Value};
use switchboard_domain::{Media, MediaSource, ToolContent, ToolOutput};

use super::template::ContextTemplate;

/// What stands in the place of a hidden value.
pub(super) const HIDDEN: &str = "[hidden]";
/// Shorter values are ordinary words (`main`, `8080`); striking them out would only make results
/// unreadable.
const SHORTEST: usize = 8;
/// The same for a value whose key says that it is a secret.
const SHORTEST_SECRET: usize = 4;

/// The texts that are struck out, the longest first, so that no tail of one that contains another stays.
/// Prints nothing of itself.
#[derive(Clone, Default)]
pub(super) struct Scrubber {
    needles: Arc<[String]>,
}

impl Scrubber {
    /// Every text within `values`, and how it looks in JSON text and in addresses. Numbers and the like
    /// are no secrets.
    pub(super) fn new<'a>(
        values: impl IntoIterator<Item = (&'a String, &'a ContextTemplate)>,
        client: &Map<String, Value>,
    ) -> Self {
        let mut needles = Vec::new();
        for (name, value) in values {
            value.each_secret(name, client, &mut |key, text| {
                collect(key, text, &mut needles);
            });
        }
        needles.sort_unstable_by(|a: &String, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        needles.dedup();
        Self {
            needles: needles.into(),
        }
    }

    /// The text without them; `None` if there are none in it.
    pub(super) fn text(&self, text: &str) -> Option<String> {
        let mut clean: Cow<'_, str> = Cow::Borrowed(text);
        for needle in self.needles.iter() {
            if clean.contains(needle.as_str()) {
                clean = Cow::Owned(clean.replace(needle.as_str(), HIDDEN));
            }
        }
        match clean {
            Cow::Borrowed(_) => None,
            Cow::Owned(clean) => Some(clean),
        }
    }

    /// Whether something was struck out. Bytes (images, audio, blobs) are not looked into.
    pub(super) fn output(&self, output: &mut ToolOutput) -> bool {
        if self.needles.is_empty() {
            return false;
        }
        let mut hidden = false;
        for piece in &mut output.content {
            hidden |= self.piece(piece);
        }
        if let Some(structured) = &mut output.structured {
            hidden |= self.value(structured);
        }
        hidden
    }

    fn piece(&self, piece: &mut ToolContent) -> bool {
        match piece {
            ToolContent::Text { text } => self.string(text),
            ToolContent::Image(media) | ToolContent::Audio(media) => self.media(media),
            ToolContent::Resource {
                uri,
                media_type: _,
                text,
                blob: _,
            } => self.string(uri) | self.optional(text),
            ToolContent::ResourceLink {
                uri,
                name,
                media_type: _,
                description,
            } => self.string(uri) | self.string(name) | self.optional(description),
            ToolContent::Unknown { value } => self.value(value),
            _ => false,
        }
    }

    fn media(&self, media: &mut Media) -> bool {
        match &mut media.source {
            MediaSource::Url(url) => self.string(url),
            _ => false,
        }
    }

    fn optional(&self, text: &mut Option<String>) -> bool {
        text.as_mut().is_some_and(|text| self.string(text))
    }

    fn string(&self, text: &mut String) -> bool {
        match self.text(text) {
            Some(clean) => {
                *text = clean;
                true
            }
            None => false,
        }
    }

    fn value(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => self.string(text),
            Value::Array(items) => items
                .iter_mut()
                .fold(false, |hidden, item| self.value(item) | hidden),
            Value::Object(object) => {
                let mut hidden = object
                    .values_mut()
                    .fold(false, |hidden, item| self.value(item) | hidden);
                if object.keys().any(|key| self.text(key).is_some()) {
                    let renamed: Map<String, Value> = std::mem::take(object)
                        .into_iter()
                        .map(|(key, value)| (self.text(&key).unwrap_or(key), value))
                        .collect();
                    *object = renamed;
                    hidden = true;
                }
                hidden
            }
            _ => false,
        }
    }
}

fn collect(key: &str, text: &str, needles: &mut Vec<String>) {
    let shortest = if is_secret(key) {
        SHORTEST_SECRET
    } else {
        SHORTEST
    };
    let trimmed = text.trim();
    // `Bearer …`: tools repeat the token without its scheme.
    let token = trimmed
        .split_once(' ')
        .map_or(trimmed, |(_, token)| token.trim());
    for form in [text, trimmed, token] {
        if form.len() >= shortest {
            needles.push(form.to_owned());
            needles.extend(other_forms(form));
        }
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [
        "token",
        "secret",
        "password",
        "passwd",
        "key",
        "auth",
        "credential",
        "cookie",
    ]
    .iter()
    .any(|word| name.contains(word))
}

/// The text as it stands in JSON text and in the query of an address, where that is another text.
fn other_forms(text: &str) -> impl Iterator<Item = String> {
    let json = Value::from(text).to_string();
    let json = json[1..json.len() - 1].to_owned();
    let mut address = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            address.push(char::from(byte));
        } else {
            address.push('%');
            let digits = [byte >> 4, byte & 15];
            let digits = digits.map(|digit| char::from_digit(u32::from(digit), 16).unwrap_or('0'));
            address.extend(digits.map(|digit| digit.to_ascii_uppercase()));
        }
    }
    let text = text.to_owned();
    [json, address]
        .into_iter()
        .filter(move |form| *form != text)
}
