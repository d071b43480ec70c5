//! Values that the client of a run sends, to be used in tool inputs.

use std::{collections::BTreeSet, fmt, sync::Arc};

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::template::HIDDEN;

/// Maximum size in bytes of a text value from a client. A longer text is an error.
const MAX_CLIENT_TEXT: usize = 8192;

/// Named values that a client sends with one run, such as an access token. `Debug` prints the names
/// only.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ClientContext(Arc<Map<String, Value>>);

impl ClientContext {
    /// Creates the named values of a client. A null value counts as not sent.
    pub fn new(mut values: Map<String, Value>) -> Self {
        values.retain(|_, value| !value.is_null());
        Self(Arc::new(values))
    }

    /// Returns whether the client sent no values.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the values that are strings. Each of them may be a secret and must be redacted in
    /// tool results.
    pub fn text_values(&self) -> impl Iterator<Item = &str> {
        self.0.values().filter_map(Value::as_str)
    }

    pub(super) fn context_values(&self) -> &Map<String, Value> {
        &self.0
    }

    /// Returns an error if a name is not in `allowed`. Also returns an error if a value is an
    /// array, an object or a string of more than 8,192 bytes.
    pub(super) fn validate_client_values(
        &self,
        allowed: &BTreeSet<String>,
    ) -> Result<(), ClientContextError> {
        for (name, value) in self.0.iter() {
            let name = name.clone();
            if !allowed.contains(&name) {
                let allowed = allowed.iter().cloned().collect();
                return Err(ClientContextError::Unknown { name, allowed });
            }
            match value {
                Value::Array(_) | Value::Object(_) => {
                    return Err(ClientContextError::Compound { name });
                }
                Value::String(text) if text.len() > MAX_CLIENT_TEXT => {
                    return Err(ClientContextError::TooLong { name });
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for ClientContext {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Map::deserialize(deserializer).map(Self::new)
    }
}

impl fmt::Debug for ClientContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for name in self.0.keys() {
            map.entry(name, &format_args!("{HIDDEN}"));
        }
        map.finish()
    }
}

/// An error about a value that a client sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientContextError {
    /// The name is not allowed: no configured value has the placeholder `${client.NAME}` for it.
    #[error(
        "unknown context value `{name}`{}",
        if allowed.is_empty() { "; clients cannot send any".to_owned() }
        else { format!("; clients can send: {}", allowed.join(", ")) }
    )]
    Unknown {
        /// Name of the value that is not allowed.
        name: String,
        /// Names of the values that clients may send.
        allowed: Vec<String>,
    },
    /// The value is an array or an object.
    #[error("the context value `{name}` must be a string, a number or a boolean")]
    Compound {
        /// Name of the value that is an array or an object.
        name: String,
    },
    /// The value is a string of more than 8,192 bytes.
    #[error("the context value `{name}` is longer than {MAX_CLIENT_TEXT} bytes")]
    TooLong {
        /// Name of the value that is too long.
        name: String,
    },
}

impl ClientContextError {
    /// Returns the name of the value that caused the error.
    pub fn value_name(&self) -> &str {
        match self {
            Self::Unknown { name, .. } | Self::Compound { name } | Self::TooLong { name } => name,
        }
    }
}
