//! Options of the mapping between requests and the Gemini API.

use serde::Deserialize;

use crate::ServerTool;

/// Options of the mapping between requests and the Gemini API.
///
/// ```
/// use switchboard_providers_gemini::{GeminiOptions, SchemaLanguage};
///
/// let old_proxy = GeminiOptions { schemas: SchemaLanguage::OpenApi, ..GeminiOptions::default() };
/// assert!(old_proxy.include_thoughts);
/// ```
///
/// Every field is optional in a configuration file:
///
/// ```
/// # use switchboard_providers_gemini::{GeminiOptions, ServerTool};
/// let options: GeminiOptions =
///     serde_json::from_str(r#"{"server_tools": [{"type": "google_search"}]}"#)?;
/// assert_eq!(options.server_tools, [ServerTool::google_search()]);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GeminiOptions {
    /// The schema language of the tool and answer schemas in requests: JSON Schema or OpenAPI.
    pub schemas: SchemaLanguage,
    /// Whether a request asks thinking models to include their thoughts in the answer.
    pub include_thoughts: bool,
    /// Whether the model's own thoughts and thought signatures are sent back to it in later
    /// requests. After the API has refused a signature, a second attempt omits them.
    pub replay_thoughts: bool,
    /// Tools that the API runs itself. In the request field `tools`, they follow the functions of
    /// the request. A server tool with the name of one of these functions is omitted with a
    /// warning.
    ///
    /// A request with both functions and server tools sets the field
    /// `includeServerSideToolInvocations`, which Vertex AI does not support.
    /// [`ChatRequest::extra`](switchboard_domain::ChatRequest::extra) can override the field.
    pub server_tools: Vec<ServerTool>,
}

impl Default for GeminiOptions {
    fn default() -> Self {
        Self {
            schemas: SchemaLanguage::JsonSchema,
            include_thoughts: true,
            replay_thoughts: true,
            server_tools: Vec::new(),
        }
    }
}

/// The schema language in which the schemas of tools and answers are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SchemaLanguage {
    /// The API's subset of JSON Schema, in `parametersJsonSchema` and `responseJsonSchema`.
    #[serde(rename = "json_schema")]
    JsonSchema,
    /// The older subset of OpenAPI, in `parameters` and `responseSchema`, for older servers.
    OpenApi,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn options_are_read_from_configuration() {
        let read = serde_json::from_value::<GeminiOptions>;
        assert_eq!(read(json!({})).unwrap(), GeminiOptions::default());
        for (written, form) in [
            ("json_schema", SchemaLanguage::JsonSchema),
            ("openapi", SchemaLanguage::OpenApi),
        ] {
            let options = read(json!({"schemas": written, "include_thoughts": false})).unwrap();
            assert_eq!(options.schemas, form);
            assert!(!options.include_thoughts && options.replay_thoughts);
        }
        for (written, word) in [
            (json!({"server_tool": []}), "server_tool"),
            (json!({"server_tools": [{"type": "bing"}]}), "bing"),
            (json!({"schemas": "xml"}), "xml"),
        ] {
            let error = read(written).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
