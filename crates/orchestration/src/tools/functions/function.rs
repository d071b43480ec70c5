//! A Rust function as a tool.

use std::{fmt, pin::Pin, sync::Arc};

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use switchboard_domain::{SharedObject, ToolCall, ToolDefinition, ToolOrigin, ToolOutput};

use crate::tools::create_error_output;

pub(super) type OutputFuture = Pin<Box<dyn Future<Output = ToolOutput> + Send>>;
pub(super) type FunctionBody = Arc<dyn Fn(ToolCall) -> OutputFuture + Send + Sync>;

/// Maximum length of a tool name, in bytes. Every provider accepts names of this length.
const MAX_NAME_BYTES: usize = 64;

/// A Rust function that models can call as a tool: a tool definition and the function body.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
/// use switchboard_orchestration::tools::functions::Function;
///
/// /// A position on Earth.
/// #[derive(Deserialize, JsonSchema)]
/// struct Place {
///     /// The town's name.
///     town: String,
/// }
///
/// #[derive(Serialize)]
/// struct Weather {
///     celsius: f64,
/// }
///
/// let weather = Function::new("weather", "The weather now.", |position: Place| async move {
///     match position.town.as_str() {
///         "Bonn" => Ok(Weather { celsius: 12.5 }),
///         other => Err(format!("no station in {other}")),
///     }
/// })
/// .read_only();
/// assert_eq!(weather.tool_definition().input_schema["properties"]["town"]["type"], "string");
/// ```
#[derive(Clone, derive_more::Debug)]
#[debug("Function {{ definition: {definition:?}, problem: {problem:?}, .. }}")]
#[must_use]
pub struct Function {
    pub(super) definition: Arc<ToolDefinition>,
    pub(super) body: FunctionBody,
    /// Message about why the function cannot be offered as a tool; `None` if it can.
    pub(super) problem: Option<String>,
}

impl Function {
    /// Creates a tool that runs `body` with its input deserialized as the struct `A`.
    ///
    /// If `body` returns a string, the model reads the string. The model reads other values as
    /// JSON, and the result also contains them as structured content. An error of `body` or of the
    /// deserialization becomes an error result. A panic becomes an error result without its
    /// message. Dropping the call drops the future of `body`.
    pub fn new<A, F, R, O, E>(
        name: impl Into<String>,
        description: impl Into<String>,
        body: F,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + 'static,
        F: Fn(A) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, E>> + Send + 'static,
        O: Serialize + 'static,
        E: fmt::Display + 'static,
    {
        let (schema, problem) = match build_input_schema::<A>() {
            Ok(schema) => (schema, None),
            Err(why) => (json!({"type": "object"}), Some(why)),
        };
        let definition = ToolDefinition::new(name, description, schema);
        let body = Arc::new(body);
        let run = move |call: ToolCall| -> OutputFuture {
            let body = Arc::clone(&body);
            // The call of `body` is inside the future, so that a panic before the first await is
            // caught too.
            Box::pin(async move {
                let running = match parse_input::<A>(&call.input) {
                    Ok(input) => body(input),
                    Err(why) => return create_error_output(format!("invalid input: {why}")),
                };
                convert_output(running.await)
            })
        };
        Self::with_checked_name(definition, Arc::new(run), problem)
    }

    /// Creates a tool with a custom definition, for features that [`Function::new`] does not
    /// support: a dynamic schema, images in the result, progress reports, or the idempotency key of
    /// the call.
    pub fn from_definition<F, R, E>(definition: ToolDefinition, body: F) -> Self
    where
        F: Fn(ToolCall) -> R + Send + Sync + 'static,
        R: Future<Output = Result<ToolOutput, E>> + Send + 'static,
        E: fmt::Display + 'static,
    {
        let body = Arc::new(body);
        let run = move |call: ToolCall| -> OutputFuture {
            let body = Arc::clone(&body);
            Box::pin(async move {
                match body(call).await {
                    Ok(output) => output,
                    Err(error) => create_error_output(error.to_string()),
                }
            })
        };
        Self::with_checked_name(definition, Arc::new(run), None)
    }

    fn with_checked_name(
        definition: ToolDefinition,
        body: FunctionBody,
        problem: Option<String>,
    ) -> Self {
        let name = &definition.name;
        let problem = if is_valid_tool_name(name) {
            problem.map(|why| format!("`{name}` cannot be used as a tool: {why}"))
        } else {
            Some(format!(
                "{name:?} cannot be used as a tool: its name must have 1 to 64 letters, digits, \
                 `_` and `-`"
            ))
        };
        Self {
            definition: Arc::new(definition),
            body,
            problem,
        }
    }

    fn change_definition(mut self, change: impl FnOnce(&mut ToolDefinition)) -> Self {
        change(Arc::make_mut(&mut self.definition));
        self
    }

    /// Sets the server name of the tool. It becomes part of the origin in the tool definition.
    pub(super) fn with_server_name(self, server: &str) -> Self {
        self.change_definition(|definition| {
            definition.origin = Some(ToolOrigin {
                server: server.to_owned(),
                tool: definition.name.clone(),
            });
        })
    }

    /// Returns the definition of the tool.
    pub fn tool_definition(&self) -> &ToolDefinition {
        &self.definition
    }

    /// Sets the title of the tool, which user interfaces show instead of its name.
    pub fn with_title(self, title: impl Into<String>) -> Self {
        self.change_definition(|tool| tool.title = Some(title.into()))
    }

    /// Declares that the tool is read-only: it may run without approval, its calls may be retried,
    /// and its results may be cached.
    pub fn read_only(self) -> Self {
        self.change_definition(|tool| tool.annotations.read_only = Some(true))
    }

    /// Declares that the tool may destroy data.
    pub fn destructive(self) -> Self {
        self.change_definition(|tool| tool.annotations.destructive = Some(true))
    }

    /// Declares that a repeated call with the same input has no further effect.
    pub fn idempotent(self) -> Self {
        self.change_definition(|tool| tool.annotations.idempotent = Some(true))
    }

    /// Declares that the tool interacts with systems outside of the program, such as the web.
    pub fn open_world(self) -> Self {
        self.change_definition(|tool| tool.annotations.open_world = Some(true))
    }

    /// Declares that a call of the tool must not run concurrently with other calls of the same
    /// model response.
    pub fn sequential(self) -> Self {
        self.change_definition(|tool| tool.sequential = true)
    }
}

fn is_valid_tool_name(name: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// Returns the JSON Schema of an argument type, for use as an input schema. Returns an error with
/// the reason if the type cannot be a tool input.
fn build_input_schema<A: JsonSchema>() -> Result<Value, String> {
    let settings = SchemaSettings::draft2020_12().for_deserialize();
    let schema = settings.into_generator().into_root_schema_for::<A>();
    let Value::Object(mut schema) = schema.to_value() else {
        // The argument type, such as `serde_json::Value`, accepts any JSON value, so the tool
        // accepts any object.
        return Ok(json!({"type": "object"}));
    };
    // These keywords do not help the model.
    schema.shift_remove("$schema");
    schema.shift_remove("title");
    let kind = schema.get("type");
    match kind.map(|kind| kind.as_str().unwrap_or("a union")) {
        Some("object") => Ok(Value::Object(schema)),
        // The argument type is `()`, whose schema is `null`, so the tool has no parameters.
        Some("null") => Ok(json!({"type": "object", "properties": {}})),
        None => {
            let mut typed = Map::from_iter([("type".to_owned(), "object".into())]);
            typed.extend(schema);
            Ok(Value::Object(typed))
        }
        Some(other) => Err(format!(
            "the input must be an object, but the argument type is {other}; use a struct"
        )),
    }
}

fn parse_input<A: DeserializeOwned>(input: &SharedObject) -> Result<A, serde_json::Error> {
    A::deserialize(input.as_value()).or_else(|error| {
        if input.is_empty() {
            // An empty input is read as `null` too, because the argument type may be `()`.
            serde_json::from_value(Value::Null).map_err(|_| error)
        } else {
            Err(error)
        }
    })
}

fn convert_output<O: Serialize, E: fmt::Display>(result: Result<O, E>) -> ToolOutput {
    let value = match result {
        Ok(output) => serde_json::to_value(output),
        Err(error) => return create_error_output(error.to_string()),
    };
    match value {
        Ok(Value::String(text)) => ToolOutput::text(text),
        Ok(value) => ToolOutput {
            structured: (!value.is_null()).then(|| value.clone()),
            ..ToolOutput::text(value.to_string())
        },
        Err(error) => {
            create_error_output(format!("the result cannot be serialized as JSON: {error}"))
        }
    }
}
