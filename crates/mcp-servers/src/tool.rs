//! What a tool of a bundled server is.

use std::{borrow::Cow, pin::Pin, sync::Arc};

use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use switchboard_domain::json_schema::SchemaValidator;

use crate::{arguments, schema, sqlite};

/// A tool, as a type: its name and texts, what it takes, what it gives and what it does.
pub(crate) trait BundledTool: Send + Sync + 'static {
    /// The arguments. Its schema is the tool's input schema; the documentation comments of its
    /// fields are what the model reads about them.
    type Input: DeserializeOwned + JsonSchema + Send;
    /// The structured content. Its schema is the tool's output schema.
    type Output: Serialize + JsonSchema;

    /// The name it is called by.
    const NAME: &'static str;
    /// Its name for people.
    const TITLE: &'static str;
    /// What it does and when to use it, for the model.
    const DESCRIPTION: &'static str;

    /// Returns what a client may assume about a call. The default is a tool that only reads data
    /// of this server.
    fn annotations(&self) -> ToolAnnotations {
        ToolAnnotations::new()
            .read_only(true)
            .destructive(false)
            .idempotent(true)
            .open_world(false)
    }

    /// Takes the place of [`Self::DESCRIPTION`] where the text depends on the settings.
    fn description(&self) -> Option<String> {
        None
    }

    /// Fits the schema of the arguments to the settings.
    fn adjust_input(&self, _schema: &mut JsonObject) {}

    /// Does it. The arguments have been checked against the schema.
    fn call(
        &self,
        input: Self::Input,
    ) -> impl Future<Output = Result<Answer<Self::Output>, ToolError>> + Send;
}

/// What a tool gives: the same twice.
pub(crate) struct Answer<T> {
    /// For models and people: complete, in few words.
    pub(crate) text: String,
    /// For programs.
    pub(crate) data: T,
}

/// Why a tool gave no answer. The text goes to the model as a result with `isError`: it can do
/// something about it, which it could not about a protocol error.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolError {
    /// What was asked for cannot be done; the text says why, and what can.
    #[error("{0}")]
    Refused(String),
    /// Another process holds the data file.
    #[error(
        "The data is in use by another process and nothing was changed. Try again in a moment."
    )]
    Busy,
    /// The database failed. Its own words are for the log: the model can do nothing with them.
    #[error("The database failed, so there is no result. The server's log has the reason.")]
    Database(#[source] rusqlite::Error),
}

impl From<rusqlite::Error> for ToolError {
    fn from(error: rusqlite::Error) -> Self {
        if sqlite::is_busy(&error) {
            Self::Busy
        } else {
            Self::Database(error)
        }
    }
}

type Call =
    Box<dyn Fn(JsonObject) -> Pin<Box<dyn Future<Output = CallToolResult> + Send>> + Send + Sync>;

/// A [`BundledTool`] of any type, ready to be listed and called.
pub(crate) struct ServedTool {
    definition: Tool,
    /// `None` if the schema does not compile; then only the type itself checks. No schema of ours is
    /// like that, as the tests see to.
    validator: Option<SchemaValidator>,
    call: Call,
}

impl ServedTool {
    pub(crate) fn new<T: BundledTool>(tool: T) -> Self {
        let mut input = schema::input::<T::Input>();
        tool.adjust_input(&mut input);
        let validator = arguments::validator(&input)
            .inspect_err(|error| tracing::error!(tool = T::NAME, %error, "schema does not compile"))
            .ok();
        let mut annotations = tool.annotations();
        // The title stands twice: clients of 2025-03-26 look for it among the annotations.
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

    /// Checks the arguments and calls the tool. Whatever goes wrong is in the result.
    pub(crate) async fn call(&self, arguments: JsonObject) -> CallToolResult {
        let schema = &self.definition.input_schema;
        let arguments = arguments::normalize(schema, arguments);
        let faults = self
            .validator
            .as_ref()
            .map(|validator| arguments::faults(validator, schema, &arguments));
        match faults {
            Some(faults) if !faults.is_empty() => refuse(faults.join(" ")),
            _ => (self.call)(arguments).await,
        }
    }
}

async fn run<T: BundledTool>(tool: &T, arguments: JsonObject) -> CallToolResult {
    let input = match serde_json::from_value(Value::Object(arguments)) {
        Ok(input) => input,
        Err(error) => return refuse(format!("The arguments cannot be read: {error}.")),
    };
    match tool.call(input).await {
        Ok(Answer { text, data }) => match serde_json::to_value(data) {
            Ok(data) => {
                let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
                result.structured_content = Some(data);
                result
            }
            Err(error) => {
                tracing::error!(tool = T::NAME, %error, "output cannot be written as JSON");
                refuse("The result cannot be written as JSON.")
            }
        },
        Err(error) => {
            if let ToolError::Database(source) = &error {
                tracing::error!(tool = T::NAME, error = %source, "database failed");
            }
            refuse(error.to_string())
        }
    }
}

fn refuse(text: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}
