//! The user's location, for the web searches of providers.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_domain::JsonObject;

/// The user's approximate location. Every field is optional.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UserLocation {
    /// City of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub city: Option<String>,
    /// Region of the user, such as a state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Country of the user, as a two-letter code (ISO 3166-1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
    /// Time zone of the user, such as `Europe/Berlin` (IANA).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
}

impl UserLocation {
    /// Returns the location in the form of a web search tool, with the type `approximate`.
    pub fn to_declaration(&self) -> Value {
        let mut declaration = JsonObject::from_iter([("type".to_owned(), "approximate".into())]);
        if let Ok(Value::Object(fields)) = serde_json::to_value(self) {
            declaration.extend(fields);
        }
        declaration.into()
    }
}
