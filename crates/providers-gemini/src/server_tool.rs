//! Tools that the API runs itself.
//!
//! Sources: the types of the official SDK (google-genai 3.4.0) and the API's guide to tool
//! combination.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use switchboard_domain::JsonObject;

/// A tool that the API runs while the model answers. Its calls and results become
/// [`Part::Opaque`](switchboard_domain::Part::Opaque) parts, which are sent back unchanged.
///
/// Models before Gemini 3 do not accept server tools together with functions. In such a request,
/// the server tools are omitted with a warning.
///
/// Examples in a configuration file: `{type: google_search}` and `{type: raw, declaration:
/// {codeExecution: {}}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ServerTool {
    /// The API's web search, whose name in requests is `googleSearch`.
    GoogleSearch(GoogleSearch),
    /// Any other tool of the API, declared as JSON.
    Raw(RawServerTool),
}

/// The settings of `googleSearch`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GoogleSearch {
    /// Whether the search returns images besides web pages.
    pub images: bool,
    /// The time range to which the search results are restricted. `None` means no restriction.
    pub time_range: Option<TimeRange>,
}

/// A time range for search results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimeRange {
    /// Start of the time range in the format of RFC 3339, such as `2026-01-01T00:00:00Z`.
    pub start: String,
    /// End of the time range in the format of RFC 3339. The range excludes this time.
    pub end: String,
}

/// A tool of the API without a type in this crate, declared as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawServerTool {
    /// The entry for the request field `tools`: an object with one field, the name of the tool.
    pub declaration: JsonObject,
}

impl ServerTool {
    /// Creates a web search tool with default settings.
    pub fn google_search() -> Self {
        Self::GoogleSearch(GoogleSearch::default())
    }

    /// Creates a tool from its entry for the request field `tools`.
    pub fn from_declaration(declaration: JsonObject) -> Self {
        Self::Raw(RawServerTool { declaration })
    }

    /// Returns the name by which a [`ToolChoice`](switchboard_domain::ToolChoice) selects the tool,
    /// such as `google_search`. A tool that is declared as JSON ([`Self::Raw`]) is named after its
    /// field, in snake case: `google_maps` for `googleMaps`.
    pub fn name(&self) -> Cow<'static, str> {
        match self {
            Self::GoogleSearch(_) => Cow::Borrowed("google_search"),
            Self::Raw(raw) => {
                let field = raw.declaration.keys().next();
                Cow::Owned(field.map(|it| to_snake_case(it)).unwrap_or_default())
            }
        }
    }

    /// Returns the tool's entry for the request field `tools`.
    pub(crate) fn to_declaration(&self) -> JsonObject {
        match self {
            Self::GoogleSearch(search) => {
                JsonObject::from_iter([("googleSearch".to_owned(), search.settings_json())])
            }
            Self::Raw(raw) => raw.declaration.clone(),
        }
    }

    /// Returns the reason why the API would refuse the configuration of the tool for every model.
    /// Returns `None` if the configuration has no known fault.
    pub(crate) fn find_configuration_error(&self) -> Option<String> {
        match self {
            Self::GoogleSearch(GoogleSearch {
                time_range: Some(TimeRange { start, end }),
                ..
            }) => (start.trim().is_empty() || end.trim().is_empty())
                .then(|| "set start and end in `time_range` of google_search".to_owned()),
            Self::Raw(raw) => (raw.declaration.len() != 1).then(|| {
                "set exactly one field, such as googleMaps, in the declaration of a raw server \
                 tool"
                    .to_owned()
            }),
            _ => None,
        }
    }
}

impl GoogleSearch {
    fn settings_json(&self) -> Value {
        let mut settings = json!({});
        if self.images {
            settings["searchTypes"] = json!({"webSearch": {}, "imageSearch": {}});
        }
        if let Some(TimeRange { start, end }) = &self.time_range {
            settings["timeRangeFilter"] = json!({"startTime": start, "endTime": end});
        }
        settings
    }
}

/// Converts a name to snake case: `googleMaps` becomes `google_maps`.
fn to_snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len());
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: Value) -> Result<ServerTool, serde_json::Error> {
        serde_json::from_value(value)
    }

    #[test]
    fn each_is_read_from_configuration_and_has_its_declaration() {
        let span = json!({"start": "2026-01-01T00:00:00Z", "end": "2026-02-01T00:00:00Z"});
        for (written, name, sent) in [
            (
                json!({"type": "google_search"}),
                "google_search",
                json!({"googleSearch": {}}),
            ),
            (
                json!({"type": "google_search", "images": true, "time_range": span}),
                "google_search",
                json!({"googleSearch": {
                    "searchTypes": {"webSearch": {}, "imageSearch": {}},
                    "timeRangeFilter": {"startTime": "2026-01-01T00:00:00Z",
                                        "endTime": "2026-02-01T00:00:00Z"},
                }}),
            ),
            (
                json!({"type": "raw", "declaration": {"googleMaps": {"enableWidget": true}}}),
                "google_maps",
                json!({"googleMaps": {"enableWidget": true}}),
            ),
        ] {
            let tool = read(written).unwrap();
            assert_eq!(tool.name(), name);
            assert_eq!(Value::Object(tool.to_declaration()), sent);
            assert_eq!(tool.find_configuration_error(), None);
            // A tool is equal after serialization and deserialization.
            assert_eq!(read(serde_json::to_value(&tool).unwrap()).unwrap(), tool);
        }
    }

    #[test]
    fn a_wrong_word_is_named() {
        for (written, word) in [
            (json!({"type": "bing"}), "bing"),
            (json!({"type": "google_search", "sites": []}), "sites"),
            (
                json!({"type": "google_search", "time_range": {"start": "x"}}),
                "end",
            ),
        ] {
            let error = read(written).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn what_the_api_would_refuse_is_told_first() {
        for declaration in [json!({}), json!({"googleMaps": {}, "urlContext": {}})] {
            let raw = read(json!({"type": "raw", "declaration": declaration})).unwrap();
            assert!(
                raw.find_configuration_error()
                    .unwrap()
                    .contains("one field")
            );
        }
        let open = json!({"type": "google_search", "time_range": {"start": "", "end": "x"}});
        assert!(
            read(open)
                .unwrap()
                .find_configuration_error()
                .unwrap()
                .contains("time_range")
        );
    }
}
