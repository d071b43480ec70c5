//! Takes secrets out of what is written down.

use std::{collections::BTreeMap, fmt};

use serde_json::{Map, Value};
use switchboard_domain::ModelEvent;
use switchboard_orchestration::audit::{Redactor, SizeLimits};

/// What stands where a secret stood.
const REDACTED: &str = "[redacted]";

/// Shorter values are placeholders (`ollama`, `none`), and words of every text too.
const MIN_SECRET_BYTES: usize = 8;

/// Deeper values are not looked into, and left out.
const MAX_DEPTH: usize = 128;

/// What must come back to a provider byte by byte, whatever is in it: what only reads like a key is none.
const OPAQUE: &str = "provider_state";

/// The bytes of media and of resources, as base64.
const BYTES: [&str; 2] = ["data", "blob"];

/// Takes secrets out of a recording. Cheap to clone when nothing is known.
#[derive(Clone)]
pub struct Scrubber {
    /// The longest first, so that none hides in another.
    known: Vec<String>,
    /// Finds what reads like a secret.
    likely: Redactor,
}

impl Default for Scrubber {
    fn default() -> Self {
        let everything = SizeLimits {
            text: usize::MAX,
            items: usize::MAX,
            total: usize::MAX,
        };
        Self {
            known: Vec::new(),
            likely: Redactor::default().with_limits(everything),
        }
    }
}

impl Scrubber {
    /// One that knows these values: keys and tokens of the configuration. Those shorter than 8 bytes are left
    /// out. What reads like a key or stands under a secret's name is found in any case.
    pub fn new<S: Into<String>>(secrets: impl IntoIterator<Item = S>) -> Self {
        let mut known: Vec<String> = secrets.into_iter().map(Into::into).collect();
        known.retain(|secret| secret.trim().len() >= MIN_SECRET_BYTES);
        known.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        known.dedup();
        Self {
            known,
            ..Self::default()
        }
    }

    /// A text without the values that are known.
    fn exact(&self, text: &str) -> String {
        let mut clean = text.to_owned();
        for secret in &self.known {
            if clean.contains(secret.as_str()) {
                clean = clean.replace(secret.as_str(), REDACTED);
            }
        }
        clean
    }

    /// A text without them, and without what reads like one.
    pub(super) fn text(&self, text: &str) -> String {
        self.likely.text(&self.exact(text))
    }

    /// A value without them; numbers and names stay.
    pub(super) fn value(&self, value: Value) -> Value {
        self.walk(value, false, 0)
    }

    fn walk(&self, value: Value, exact: bool, depth: usize) -> Value {
        if depth > MAX_DEPTH {
            return Value::String("[too deep]".to_owned());
        }
        match value {
            Value::String(text) if exact => Value::String(self.exact(&text)),
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(items) => items
                .into_iter()
                .map(|item| self.walk(item, exact, depth + 1))
                .collect(),
            Value::Object(fields) => Value::Object(self.fields(fields, exact, depth)),
            other => other,
        }
    }

    fn fields(&self, fields: Map<String, Value>, exact: bool, depth: usize) -> Map<String, Value> {
        let cleaned = fields.into_iter().map(|(name, value)| {
            // A schema has objects under such names, and a value that is none hides nothing.
            let is_secret = Redactor::is_secret_name(&name)
                && matches!(&value, Value::String(text) if !text.is_empty());
            let value = if is_secret && !exact {
                Value::String(REDACTED.to_owned())
            } else {
                {
                    let is_bytes = value.is_string() && BYTES.contains(&name.as_str());
                    self.walk(value, exact || is_bytes || name == OPAQUE, depth + 1)
                }
            };
            (self.exact(&name), value)
        });
        cleaned.collect()
    }

    /// The events of one answer without them. A secret that is spread over several pieces is found: the first
    /// piece then has the whole text, and those after it have none.
    pub(super) fn events(&self, events: &mut [(u64, ModelEvent)]) {
        let mut pieces: BTreeMap<(u32, u8), Vec<usize>> = BTreeMap::new();
        for (at, (_, event)) in events.iter().enumerate() {
            let key = match event {
                ModelEvent::TextDelta { index, .. } => (*index, 0),
                ModelEvent::ReasoningDelta { index, .. } => (*index, 1),
                ModelEvent::ToolInputDelta { index, .. } => (*index, 2),
                _ => continue,
            };
            pieces.entry(key).or_default().push(at);
        }
        for ((_, kind), places) in pieces {
            let mut whole = String::new();
            for at in &places {
                if let Some(text) = piece(&mut events[*at].1) {
                    whole.push_str(text);
                }
            }
            let clean = if kind == 2 {
                self.json(&whole)
            } else {
                self.text(&whole)
            };
            if clean == whole {
                continue;
            }
            let mut clean = Some(clean);
            for at in places {
                if let Some(text) = piece(&mut events[at].1) {
                    *text = clean.take().unwrap_or_default();
                }
            }
        }
    }

    /// JSON text; as it was written where nothing is in it, and also where it is not JSON.
    fn json(&self, text: &str) -> String {
        match serde_json::from_str::<Value>(text) {
            Ok(value) => {
                let clean = self.value(value.clone());
                if clean == value {
                    text.to_owned()
                } else {
                    clean.to_string()
                }
            }
            Err(_) => self.text(text),
        }
    }
}

/// The text that an event adds.
fn piece(event: &mut ModelEvent) -> Option<&mut String> {
    match event {
        ModelEvent::TextDelta { text, .. } | ModelEvent::ReasoningDelta { text, .. } => Some(text),
        ModelEvent::ToolInputDelta { json, .. } => Some(json),
        _ => None,
    }
}

/// Says how many secrets are known, and none of them.
impl fmt::Debug for Scrubber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scrubber")
            .field("known", &self.known.len())
            .finish_non_exhaustive()
    }
}
