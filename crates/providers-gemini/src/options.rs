//! What the mapping may be told beside the request.

use serde::Deserialize;

use crate::ServerTool;

/// What the mapping may be told beside the request.
///
/// ```
/// use switchboard_providers_gemini::{GeminiOptions, SchemaForm};
///
/// let old_proxy = GeminiOptions { schemas: SchemaForm::OpenApi, ..GeminiOptions::default() };
/// assert!(old_proxy.include_thoughts);
/// ```
///
/// A configuration file may hold any of its fields:
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
    /// In which form schemas are sent.
    pub schemas: SchemaForm,
    /// Whether the model's thoughts are asked for where thinking is.
    pub include_thoughts: bool,
    /// Sends the model's own thoughts and signatures back to it. Off for one more try when the API
    /// says that a signature is wrong or missing.
    pub replay_thoughts: bool,
    /// Tools that the API runs on its own side, declared after those of the request. One whose name
    /// a tool of the request has too is left out, with a warning.
    ///
    /// Beside functions the request asks for `includeServerSideToolInvocations`, which Vertex AI does
    /// not know; what [`ChatRequest::extra`](switchboard_domain::ChatRequest::extra) says wins.
    pub server_tools: Vec<ServerTool>,
}

impl Default for GeminiOptions {
    fn default() -> Self {
        Self {
            schemas: SchemaForm::JsonSchema,
            include_thoughts: true,
            replay_thoughts: true,
            server_tools: Vec::new(),
        }
    }
}

/// In which form the schemas of tools and answers are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SchemaForm {
    /// `parametersJsonSchema` and `responseJsonSchema`: JSON Schema, as far as the API knows it.
    #[serde(rename = "json_schema")]
    JsonSchema,
    /// `parameters` and `responseSchema`: the older subset of OpenAPI, for servers that know no
    /// other.
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
            ("json_schema", SchemaForm::JsonSchema),
            ("openapi", SchemaForm::OpenApi),
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
