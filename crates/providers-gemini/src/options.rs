//! What the mapping may be told beside the request.

/// What the mapping may be told beside the request.
///
/// ```
/// use switchboard_providers_gemini::{GeminiOptions, SchemaForm};
///
/// let old_proxy = GeminiOptions { schemas: SchemaForm::OpenApi, ..GeminiOptions::default() };
/// assert!(old_proxy.include_thoughts);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GeminiOptions {
    /// In which form schemas are sent.
    pub schemas: SchemaForm,
    /// Whether the model's thoughts are asked for where thinking is.
    pub include_thoughts: bool,
    /// Sends the model's own thoughts and signatures back to it. Off for one more try when the API
    /// says that a signature is wrong or missing.
    pub replay_thoughts: bool,
}

impl Default for GeminiOptions {
    fn default() -> Self {
        Self {
            schemas: SchemaForm::JsonSchema,
            include_thoughts: true,
            replay_thoughts: true,
        }
    }
}

/// In which form the schemas of tools and answers are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SchemaForm {
    /// `parametersJsonSchema` and `responseJsonSchema`: JSON Schema, as far as the API knows it.
    JsonSchema,
    /// `parameters` and `responseSchema`: the older subset of OpenAPI, for servers that know no
    /// other.
    OpenApi,
}
