//! Functions of the program as a tool host.

use std::{fmt, panic::AssertUnwindSafe, sync::Arc};

use async_trait::async_trait;
use futures_util::{FutureExt, StreamExt, stream};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use switchboard_domain::{
    ServerProblem, ToolCall, ToolCallError, ToolCatalog, ToolDefinition, ToolHost, ToolHostChanges,
    ToolOrigin, ToolOutput,
};
use tokio_util::sync::CancellationToken;

use super::function::{Body, Function, failed};

/// What the functions are called together where they have no name.
const UNNAMED: &str = "functions";

/// Functions of the program as tools.
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
///     .with("sum", "Adds numbers.", |input: Sum| async move {
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
/// A function whose name is no tool name or is taken already, or whose argument is no struct, is not
/// offered; the catalog's problems say so.
pub struct FunctionTools {
    server: Option<String>,
    functions: Vec<Offered>,
    problems: Vec<String>,
    /// Ends the streams of changes when the host goes; there are no changes.
    alive: Alive,
}

/// Cancels when it is dropped.
struct Alive(CancellationToken);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

struct Offered {
    definition: Arc<ToolDefinition>,
    body: Body,
}

impl FunctionTools {
    /// None yet.
    pub fn new() -> Self {
        Self {
            server: None,
            functions: Vec::new(),
            problems: Vec::new(),
            alive: Alive(CancellationToken::new()),
        }
    }

    /// Also offers a function. See [`Function::new`].
    #[must_use]
    pub fn with<A, F, R, O, E>(
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

    /// Also offers a function that says more about itself.
    #[must_use]
    pub fn with_function(mut self, function: Function) -> Self {
        let Function {
            mut definition,
            body,
            problem,
        } = function;
        let taken = self
            .functions
            .iter()
            .any(|other| other.definition.name == definition.name);
        let problem = problem.or_else(|| {
            taken.then(|| {
                let name = &definition.name;
                format!("`{name}` is offered once only: a second function has the same name")
            })
        });
        if let Some(problem) = problem {
            self.problems.push(problem);
            return self;
        }
        if let Some(server) = &self.server {
            definition.origin = Some(origin(server, &definition.name));
        }
        self.functions.push(Offered {
            definition: Arc::new(definition),
            body,
        });
        self
    }

    /// Gives the functions a name together, as servers have one: for rules about servers, and to tell them
    /// apart in reports. Without it their definitions have no origin.
    #[must_use]
    pub fn named(mut self, server: impl Into<String>) -> Self {
        let server = server.into();
        for function in &mut self.functions {
            let definition = Arc::make_mut(&mut function.definition);
            definition.origin = Some(origin(&server, &definition.name));
        }
        self.server = Some(server);
        self
    }

    fn name(&self) -> &str {
        self.server.as_deref().unwrap_or(UNNAMED)
    }
}

fn origin(server: &str, tool: &str) -> ToolOrigin {
    ToolOrigin {
        server: server.to_owned(),
        tool: tool.to_owned(),
    }
}

impl Default for FunctionTools {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for FunctionTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self
            .functions
            .iter()
            .map(|function| &function.definition.name);
        f.debug_struct("FunctionTools")
            .field("server", &self.server)
            .field("functions", &names.collect::<Vec<_>>())
            .field("problems", &self.problems)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl ToolHost for FunctionTools {
    async fn tools(&self) -> ToolCatalog {
        let problem = |message: &String| ServerProblem {
            server: self.name().to_owned(),
            message: message.clone(),
        };
        ToolCatalog {
            tools: self
                .functions
                .iter()
                .map(|function| Arc::clone(&function.definition))
                .collect(),
            problems: self.problems.iter().map(problem).collect(),
        }
    }

    /// Keeps the call's deadline, which needs a tokio runtime; without one a function has all the time it
    /// wants.
    async fn call(&self, call: ToolCall) -> Result<ToolOutput, ToolCallError> {
        let found = self
            .functions
            .iter()
            .find(|function| function.definition.name == call.name);
        let Some(function) = found else {
            let names = self
                .functions
                .iter()
                .map(|function| &function.definition.name);
            return Err(ToolCallError::UnknownTool {
                name: call.name,
                available: names.cloned().collect(),
            });
        };
        let deadline = call.deadline;
        // What the function shares with others after a panic is its own affair, as in a thread.
        let answer = AssertUnwindSafe((function.body)(call)).catch_unwind();
        let answer = match deadline {
            None => answer.await,
            Some(after) => match tokio::time::timeout(after, answer).await {
                Ok(answer) => answer,
                Err(_) => {
                    return Err(ToolCallError::Timeout {
                        server: self.name().to_owned(),
                        tool: function.definition.name.clone(),
                        after,
                    });
                }
            },
        };
        Ok(answer
            .unwrap_or_else(|_| failed("The tool panicked. What it did until then is not known.")))
    }

    /// There are none; the stream ends with the host.
    fn changes(&self) -> ToolHostChanges {
        Box::pin(stream::pending().take_until(self.alive.0.clone().cancelled_owned()))
    }
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;
