//! Rust functions as a tool host.

use std::{fmt, panic::AssertUnwindSafe, sync::Arc};

use async_trait::async_trait;
use futures_util::{FutureExt, stream};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use switchboard_domain::{
    ServerProblem, ToolCall, ToolCallError, ToolCatalog, ToolDefinition, ToolHost, ToolHostChanges,
    ToolOutput,
};

use super::function::Function;
use crate::tools::create_error_output;

/// Server name in problems and errors, for functions without a configured server name.
const DEFAULT_SERVER: &str = "functions";

/// A tool host whose tools are Rust functions.
///
/// ```
/// use serde::Deserialize;
/// use schemars::JsonSchema;
/// use switchboard_orchestration::tools::functions::{Function, FunctionTools};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Sum {
///     numbers: Vec<f64>,
/// }
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Note {
///     /// What to remember.
///     text: String,
/// }
///
/// let tools = FunctionTools::new()
///     .with_handler("sum", "Adds numbers.", |input: Sum| async move {
///         Ok::<f64, String>(input.numbers.iter().sum())
///     })
///     .with_function(
///         Function::new("note", "Writes a note down.", |note: Note| async move {
///             if note.text.is_empty() {
///                 return Err("there is nothing to write down");
///             }
///             Ok("done")
///         })
///         .idempotent(),
///     );
/// # let _ = tools;
/// ```
///
/// A function is not offered if its name is invalid or taken, or if its argument is not a struct.
/// The catalog then describes the problem.
#[derive(Debug, Default)]
pub struct FunctionTools {
    server: Option<String>,
    functions: Vec<Function>,
    problems: Vec<String>,
}

impl FunctionTools {
    /// Creates a tool host without functions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a Rust function as a tool. The documentation of [`Function::new`] explains the
    /// parameters.
    #[must_use]
    pub fn with_handler<A, F, R, O, E>(
        self,
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
        self.with_function(Function::new(name, description, body))
    }

    /// Adds a [`Function`] that was created separately, for example with annotations.
    #[must_use]
    pub fn with_function(mut self, mut function: Function) -> Self {
        let name = &function.definition.name;
        let is_taken = self.find_function(name).is_some();
        let problem = function
            .problem
            .take()
            .or_else(|| is_taken.then(|| format!("the second function named `{name}` is ignored")));
        match (problem, &self.server) {
            (Some(problem), _) => self.problems.push(problem),
            (None, Some(server)) => self.functions.push(function.with_server_name(server)),
            (None, None) => self.functions.push(function),
        }
        self
    }

    /// Sets the server name of all functions. Approval rules and reports use this name. By default,
    /// the definitions of the functions have no server name.
    #[must_use]
    pub fn with_server_name(mut self, server: impl Into<String>) -> Self {
        let server = server.into();
        let functions = self.functions.into_iter();
        self.functions = functions.map(|it| it.with_server_name(&server)).collect();
        self.server = Some(server);
        self
    }

    fn server_name(&self) -> &str {
        self.server.as_deref().unwrap_or(DEFAULT_SERVER)
    }

    fn find_function(&self, name: &str) -> Option<&Function> {
        let mut functions = self.functions.iter();
        functions.find(|function| function.definition.name == name)
    }

    fn tool_definitions(&self) -> impl Iterator<Item = &Arc<ToolDefinition>> {
        self.functions.iter().map(|function| &function.definition)
    }
}

#[async_trait]
impl ToolHost for FunctionTools {
    async fn list_tools(&self) -> ToolCatalog {
        let problem = |message: &String| ServerProblem {
            server: self.server_name().to_owned(),
            message: message.clone(),
        };
        ToolCatalog {
            tools: self.tool_definitions().cloned().collect(),
            problems: self.problems.iter().map(problem).collect(),
        }
    }

    /// Executes a function. If the call has a deadline, it is enforced with a tokio timer, so a
    /// tokio runtime must be running.
    async fn call_tool(&self, call: ToolCall) -> Result<ToolOutput, ToolCallError> {
        let Some(function) = self.find_function(&call.name) else {
            let tools = self.tool_definitions();
            return Err(ToolCallError::UnknownTool {
                name: call.name,
                available: tools.map(|tool| tool.name.clone()).collect(),
            });
        };
        let deadline = call.deadline;
        // A panic of the function is caught here and becomes an error result. The function itself
        // must keep its shared state consistent.
        let answer = AssertUnwindSafe((function.body)(call)).catch_unwind();
        let answer = match deadline {
            None => answer.await,
            Some(after) => {
                let answer = tokio::time::timeout(after, answer).await;
                answer.map_err(|_| ToolCallError::Timeout {
                    server: self.server_name().to_owned(),
                    tool: function.definition.name.clone(),
                    after,
                })?
            }
        };
        Ok(answer
            .unwrap_or_else(|_| create_error_output("The tool panicked. Its effect is unknown.")))
    }

    /// Returns a stream without events, because the functions never change.
    fn watch_changes(&self) -> ToolHostChanges {
        Box::pin(stream::empty())
    }
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;
