//! Tools of bundled servers.

mod arguments;
mod schema;
pub(crate) mod server;

use std::{borrow::Cow, pin::Pin, sync::Arc};

use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
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

/// A tool of a bundled server.
pub(crate) trait BundledTool: Send + Sync + 'static {
    /// Arguments of the tool. Their schema is the input schema of the tool, and the doc comments of
    /// the fields are descriptions for the model.
    type Input: DeserializeOwned + JsonSchema + Send;
    /// Structured content of the tool's result. Its schema is the output schema of the tool.
    type Output: Serialize + JsonSchema;

    /// Name of the tool in the protocol.
    const NAME: &'static str;
    /// Display name of the tool.
    const TITLE: &'static str;
    /// Description of the tool for the model.
    const DESCRIPTION: &'static str;

    /// Returns the tool annotations for clients. By default, the tool only reads data of this
    /// server.
    fn annotations(&self) -> ToolAnnotations {
        ToolAnnotations::new()
            .read_only(true)
            .destructive(false)
            .idempotent(true)
            .open_world(false)
    }

    /// Returns a description that depends on the settings. It replaces [`Self::DESCRIPTION`].
    fn description(&self) -> Option<String> {
        None
    }

    /// Adjusts the input schema of the tool to the settings.
    fn adjust_input(&self, _schema: &mut JsonObject) {}

    /// Executes a tool call. The arguments have been validated against the schema.
    fn call(
        &self,
        input: Self::Input,
    ) -> impl Future<Output = Result<ToolOutput<Self::Output>, ToolError>> + Send;
}

/// Removes an argument from an input schema.
pub(crate) fn remove_argument(schema: &mut JsonObject, name: &str) {
    // `retain`, because `remove` would change the order of the other arguments.
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.retain(|argument, _| argument != name);
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|argument| argument != name);
    }
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
    /// The call is refused. The text contains the reason and a solution.
    #[error("{0}")]
    Refused(String),
    /// Another process has locked the data file.
    #[error("Another process has locked the data. Nothing was changed. Try again later.")]
    Busy,
    /// The database failed. Its error message is only written to the log.
    #[error("The database failed. The log of the server contains the reason.")]
    Database(#[source] rusqlite::Error),
}

type Call =
    Box<dyn Fn(JsonObject) -> Pin<Box<dyn Future<Output = CallToolResult> + Send>> + Send + Sync>;

/// A [`BundledTool`] with its definition and compiled input schema.
pub(crate) struct ServedTool {
    definition: Tool,
    /// Validator of the arguments. `None` if the schema does not compile, which tests rule out.
    validator: Option<SchemaValidator>,
    call: Call,
}

impl ServedTool {
    pub(crate) fn new<T: BundledTool>(tool: T) -> Self {
        let mut input = schema::input::<T::Input>();
        tool.adjust_input(&mut input);
        let validator = arguments::validator(&input)
            .inspect_err(|error| {
                tracing::error!(tool = T::NAME, %error, "failed to compile the \
                input schema");
            })
            .ok();
        let mut annotations = tool.annotations();
        // Clients with protocol version 2025-03-26 read the title of a tool from its annotations.
        annotations.title = Some(T::TITLE.to_owned());
        let description = tool.description();
        let description = description.map_or(Cow::Borrowed(T::DESCRIPTION), Cow::Owned);
        let definition = Tool::new(T::NAME, description, input)
            .with_title(T::TITLE)
            .with_raw_output_schema(Arc::new(schema::output::<T::Output>()))
            .with_annotations(annotations);
        let tool = Arc::new(tool);
        let call: Call = Box::new(move |arguments| {
            let tool = Arc::clone(&tool);
            Box::pin(async move { run(tool.as_ref(), arguments).await })
        });
        Self {
            definition,
            validator,
            call,
        }
    }

    pub(crate) fn definition(&self) -> &Tool {
        &self.definition
    }

    /// Validates the arguments and executes the tool. Errors become results with `isError`.
    pub(crate) async fn call(&self, arguments: JsonObject) -> CallToolResult {
        let schema = &self.definition.input_schema;
        let arguments = arguments::normalize(schema, arguments);
        let violations = self
            .validator
            .as_ref()
            .map(|validator| arguments::violations(validator, schema, &arguments));
        match violations {
            Some(violations) if !violations.is_empty() => error_result(violations.join(" ")),
            _ => (self.call)(arguments).await,
        }
    }
}

async fn run<T: BundledTool>(tool: &T, arguments: JsonObject) -> CallToolResult {
    let input = match serde_json::from_value(Value::Object(arguments)) {
        Ok(input) => input,
        Err(error) => return error_result(format!("The arguments are invalid: {error}.")),
    };
    match tool.call(input).await {
        Ok(ToolOutput { text, data }) => match serde_json::to_value(data) {
            Ok(data) => {
                let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
                result.structured_content = Some(data);
                result
            }
            Err(error) => {
                tracing::error!(tool = T::NAME, %error, "failed to serialize the output");
                error_result("The result could not be converted to JSON.")
            }
        },
        Err(error) => {
            if let ToolError::Database(source) = &error {
                tracing::error!(tool = T::NAME, error = %source, "database failed");
            }
            error_result(error.to_string())
        }
    }
}

fn error_result(text: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}
