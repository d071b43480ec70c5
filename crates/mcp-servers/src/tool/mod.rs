//! Tools of bundled servers.

mod arguments;
mod schema;
pub(crate) mod server;

use std::{borrow::Cow, pin::Pin, sync::Arc};

use rmcp::model::{CallToolResult, ContentBlock, JsonObject, MetaObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use switchboard_domain::json_schema::SchemaValidator;

/// The name and description of a bundled server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BundledServer {
    /// Name of the server on the command line and in the protocol.
    pub name: &'static str,
    /// Display name of the server.
    pub title: &'static str,
    /// Purpose of the server in one line, without a full stop.
    pub description: &'static str,
}

/// An HTML page of MCP Apps (extension `io.modelcontextprotocol/ui`, 2026-01-26). Hosts display the
/// calls of a tool in it.
#[derive(Debug)]
pub(crate) struct AppPage {
    /// URI of the page as a resource, which starts with `ui://`.
    pub(crate) uri: &'static str,
    /// Name of the page as a resource.
    pub(crate) name: &'static str,
    /// The HTML document. It contains all scripts and styles, because hosts block the network.
    pub(crate) html: &'static str,
}

/// The result of a tool call, as text and as structured content.
pub(crate) struct ToolOutput<T> {
    /// The complete result as text, for models and people.
    pub(crate) text: String,
    /// The structured content of the result, for programs.
    pub(crate) data: T,
}

/// An error of a tool call. The model receives it as a result with `isError`, because it cannot see
/// protocol errors.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolError {
    /// The server refuses the call. The text contains the reason and a solution.
    #[error("{0}")]
    Refused(String),
    /// Another process has locked the data file.
    #[error("Another process has locked the data. Nothing was changed. Try again later.")]
    Busy,
    /// The database failed. Its error message is only written to the log.
    #[error("The database failed. The server log contains the reason.")]
    Database(#[source] rusqlite::Error),
}

/// The result of a tool function. The model receives a [`ToolOutput`] as a tool result, and a
/// [`ToolError`] as a tool result with `isError`.
pub(crate) type ToolResult<T> = Result<ToolOutput<T>, ToolError>;

impl From<String> for ToolError {
    fn from(text: String) -> Self {
        Self::Refused(text)
    }
}

impl From<&str> for ToolError {
    fn from(text: &str) -> Self {
        Self::Refused(text.to_owned())
    }
}

/// Returns the default value `N` of a numeric argument. In `serde(default)` it is written as
/// `default_number::<25>`.
pub(crate) fn default_number<const N: usize>() -> usize {
    N
}

type Call =
    Box<dyn Fn(JsonObject) -> Pin<Box<dyn Future<Output = CallToolResult> + Send>> + Send + Sync>;

/// A tool of a bundled server, with its definition and compiled input schema.
pub(crate) struct BundledTool {
    definition: Tool,
    input_schema: Value,
    /// Validator of the arguments. `None` if the input schema does not compile. Then the arguments
    /// are only checked by their deserialization.
    validator: Option<SchemaValidator>,
    call: Call,
    app: Option<&'static AppPage>,
}

impl BundledTool {
    /// Creates a tool whose annotations state that it only reads data of this server.
    /// [`map_annotations`](Self::map_annotations) changes the annotations. The input and output
    /// schemas come from the types `I` and `O`, and the doc comments of their fields are
    /// descriptions for the model. Each call receives a copy of `state` and the validated
    /// arguments.
    pub(crate) fn new<S, I, O, F>(
        name: &'static str,
        title: &'static str,
        description: impl Into<Cow<'static, str>>,
        state: S,
        function: impl Fn(S, I) -> F + Clone + Send + Sync + 'static,
    ) -> Self
    where
        S: Clone + Send + Sync + 'static,
        I: DeserializeOwned + JsonSchema + Send,
        O: Serialize + JsonSchema,
        F: Future<Output = ToolResult<O>> + Send,
    {
        // Clients with protocol version 2025-03-26 read the title of a tool from its annotations.
        let annotations = ToolAnnotations::with_title(title)
            .read_only(true)
            .destructive(false)
            .idempotent(true)
            .open_world(false);
        let definition = Tool::new(name, description, JsonObject::new())
            .with_title(title)
            .with_raw_output_schema(Arc::new(schema::output_schema::<O>()))
            .with_annotations(annotations);
        let call: Call = Box::new(move |arguments| {
            let (state, function) = (state.clone(), function.clone());
            Box::pin(async move {
                match serde_json::from_value(Value::Object(arguments)) {
                    Ok(input) => to_call_result(name, function(state, input).await),
                    Err(error) => error_result(format!("The arguments are invalid: {error}.")),
                }
            })
        });
        let tool = Self {
            definition,
            input_schema: Value::Null,
            validator: None,
            call,
            app: None,
        };
        tool.with_input_schema(schema::input_schema::<I>())
    }

    fn with_input_schema(mut self, schema: JsonObject) -> Self {
        self.input_schema = Value::Object(schema.clone());
        self.definition.input_schema = Arc::new(schema);
        let validator = arguments::compile_validator(&self.input_schema).inspect_err(|error| {
            tracing::error!(tool = %self.definition.name, %error, "invalid input schema");
        });
        self.validator = validator.ok();
        self
    }

    /// Changes the input schema with `change` and compiles the validator again.
    pub(crate) fn map_input_schema(self, change: impl FnOnce(&mut JsonObject)) -> Self {
        let mut schema = self.definition.input_schema.as_ref().clone();
        change(&mut schema);
        self.with_input_schema(schema)
    }

    /// Removes the argument `name` from the input schema, including the list of required arguments.
    pub(crate) fn without_argument(self, name: &str) -> Self {
        self.map_input_schema(|schema| {
            // Uses `retain`, because `remove` would change the order of the other arguments.
            if let Some(Value::Object(properties)) = schema.get_mut("properties") {
                properties.retain(|argument, _| argument != name);
            }
            if let Some(Value::Array(required)) = schema.get_mut("required") {
                required.retain(|argument| argument != name);
            }
        })
    }

    /// Replaces the tool annotations by the result of `change`. Annotations are hints for clients,
    /// such as `readOnlyHint`.
    pub(crate) fn map_annotations(
        mut self,
        change: impl FnOnce(ToolAnnotations) -> ToolAnnotations,
    ) -> Self {
        self.definition.annotations = self.definition.annotations.map(change);
        self
    }

    /// Sets the page that displays the calls of the tool.
    pub(crate) fn with_app(mut self, app: &'static AppPage) -> Self {
        let mut meta = MetaObject::new();
        meta.0
            .insert("ui".to_owned(), json!({"resourceUri": app.uri}));
        self.definition = self.definition.with_meta(meta);
        self.app = Some(app);
        self
    }

    pub(crate) fn definition(&self) -> &Tool {
        &self.definition
    }

    /// Validates the arguments and executes the tool. Errors become results with `isError`.
    pub(crate) async fn call(&self, arguments: JsonObject) -> CallToolResult {
        let schema = &self.input_schema;
        let arguments = arguments::normalize_arguments(schema, arguments);
        if let Some(validator) = &self.validator {
            let violations = arguments::list_violations(validator, schema, &arguments);
            if !violations.is_empty() {
                return error_result(violations.join(" "));
            }
        }
        (self.call)(arguments).await
    }
}

fn to_call_result<T: Serialize>(tool: &str, result: ToolResult<T>) -> CallToolResult {
    let ToolOutput { text, data } = match result {
        Ok(output) => output,
        Err(error) => {
            if let ToolError::Database(source) = &error {
                tracing::error!(tool, error = %source, "database failed");
            }
            return error_result(error.to_string());
        }
    };
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    match serde_json::to_value(data) {
        Ok(data) => result.structured_content = Some(data),
        Err(error) => {
            tracing::error!(tool, %error, "failed to serialize the output");
            return error_result("The result could not be converted to JSON.");
        }
    }
    result
}

fn error_result(text: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}
