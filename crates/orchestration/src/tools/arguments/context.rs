//! Values from the host for tool inputs, which the model does not see.
//!
//! A server can require values of the host, such as a conversation id, a callback address or an
//! access token. The server's schema requests such a value by name (`databaseContext`). The model
//! sees the tool without this property, the value is injected at call time, and it is redacted from
//! the result.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use serde_json::{Map, Value};
use switchboard_domain::{JsonObject, Principal, ToolDefinition, ToolOutput, redact::Redactor};

use super::{
    client_context::{ClientContext, ClientContextError},
    schema::{applied, escaped},
    template::{ContextScope, ContextTemplate},
};
use crate::tools::per_definition::PerDefinition;

/// An argument of the host without a value. The call cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct MissingContext {
    /// Name of the tool on its server.
    pub tool: String,
    /// Name of the argument.
    pub argument: String,
    /// The values that the client did not send. Empty if no value is configured.
    pub client: Vec<String>,
}

impl MissingContext {
    fn text(&self) -> String {
        let Self {
            tool,
            argument,
            client,
        } = self;
        let sets = "is set by the host and not by the model";
        if client.is_empty() {
            return format!(
                "tool `{tool}` requires the argument `{argument}`, which {sets}, and the configuration has no \
                 value for it; set `context.{argument}` (if `context_servers` is set, it has to name this server)"
            );
        }
        format!(
            "tool `{tool}` requires the argument `{argument}`, which {sets}, and the client did not send `{}` \
             for this run; send it in the field `context` of the request",
            client.join("`, `")
        )
    }
}

/// Values from the host for tool inputs, by property name.
///
/// The driver of runs owns them. They are not part of a stored run and are injected again after a
/// resume. Placeholders are filled with the session and principal of the run. Clones share a cache
/// per tool definition.
///
/// ```
/// use std::sync::Arc;
/// use serde_json::json;
/// use switchboard_domain::ToolDefinition;
/// use switchboard_orchestration::tools::arguments::ContextInjection;
///
/// let context = ContextInjection::new().with(
///     "databaseContext",
///     json!({"conversationId": "c-1", "accessToken": "very-secret"}),
/// );
/// let tool = Arc::new(ToolDefinition::new("add_nodes", "", json!({
///     "type": "object",
///     "properties": {
///         "nodes": {"type": "array"},
///         "databaseContext": {
///             "type": "object",
///             "properties": {"conversationId": {"type": "string"}},
///         },
///     },
///     "required": ["nodes", "databaseContext"],
/// })));
/// let shown = context.visible(&tool);
/// assert_eq!(shown.input_schema, json!({
///     "type": "object",
///     "properties": {"nodes": {"type": "array"}},
///     "required": ["nodes"],
/// }));
/// let input = json!({"nodes": []}).as_object().cloned().unwrap_or_default();
/// let called_with = context.inject(&tool, input)?;
/// assert_eq!(called_with["databaseContext"], json!({"conversationId": "c-1"}));
/// # Ok::<(), switchboard_orchestration::tools::arguments::MissingContext>(())
/// ```
#[derive(Clone, Default)]
pub struct ContextInjection {
    declared: Arc<Declared>,
    /// Servers whose tools run at a client.
    excluded: Vec<String>,
    /// Session id for runs without a session.
    conversation: Option<String>,
    client: ClientContext,
    scope: Option<Arc<ContextScope>>,
    redactor: Redactor,
    arguments: Arc<PerDefinition<HiddenArguments>>,
}

/// The values and names for all runs.
#[derive(Clone, Default)]
struct Declared {
    servers: Option<Vec<String>>,
    values: BTreeMap<String, ContextTemplate>,
    /// Values by server and argument.
    defaults: BTreeMap<(String, String), ContextTemplate>,
    /// Arguments that models never see, with or without a value.
    reserved: BTreeSet<String>,
}

/// The arguments of one tool that the host sets, for all runs.
#[derive(Default)]
struct HiddenArguments {
    /// The tool without these arguments. `None` if it has none.
    visible: Option<Arc<ToolDefinition>>,
    arguments: Vec<Argument>,
}

/// An argument that the host sets.
struct Argument {
    name: String,
    /// The part of the value that the schema names. `None` without a value.
    value: Option<ContextTemplate>,
    /// Whether the tool requires the argument.
    required: bool,
    /// Client values that a required part needs.
    needed: BTreeSet<String>,
}

impl ContextInjection {
    /// Creates a context without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the value for tools that request `name`. Texts of at least 8 characters are redacted
    /// from results (4 if the key is the name of a token, key, secret or password).
    #[must_use]
    pub fn with(self, name: impl Into<String>, value: Value) -> Self {
        self.with_template(name, ContextTemplate::literal(value))
    }

    /// Sets the value of a template for tools that request `name`.
    #[must_use]
    pub fn with_template(self, name: impl Into<String>, value: ContextTemplate) -> Self {
        self.change(|declared| declared.values.insert(name.into(), value))
    }

    /// Sets the default of an argument for the tools of one server. Two objects are merged.
    #[must_use]
    pub fn with_default(
        self,
        server: impl Into<String>,
        name: impl Into<String>,
        value: ContextTemplate,
    ) -> Self {
        let key = (server.into(), name.into());
        self.change(|declared| declared.defaults.insert(key, value))
    }

    /// Hides an argument from models even without a value. A call of a tool that requires it fails
    /// then.
    #[must_use]
    pub fn reserving(self, name: impl Into<String>) -> Self {
        self.change(|declared| declared.reserved.insert(name.into()))
    }

    /// Restricts the values to tools of these servers. By default, all servers get them.
    #[must_use]
    pub fn only_for(self, servers: impl IntoIterator<Item = String>) -> Self {
        let servers = servers.into_iter().collect();
        self.change(|declared| declared.servers.replace(servers))
    }

    /// Excludes the tools of a server, because they run elsewhere.
    #[must_use]
    pub(crate) fn without_server(mut self, server: &str) -> Self {
        self.excluded.push(server.to_owned());
        self
    }

    /// Sets the session id for runs without a session. By default, the run id is used.
    #[must_use]
    pub fn in_conversation(mut self, id: impl Into<String>) -> Self {
        self.conversation = Some(id.into());
        self
    }

    /// Sets the values that a client sent for one run. Returns an error for an unknown name.
    pub fn with_client(mut self, client: ClientContext) -> Result<Self, ClientContextError> {
        client.check(&self.client_names())?;
        self.client = client;
        self.redactor = self.make_redactor();
        Ok(self)
    }

    /// Returns the names of the values that a client may send.
    pub fn client_names(&self) -> BTreeSet<String> {
        let templates = self.declared.values.values();
        templates.flat_map(ContextTemplate::client_names).collect()
    }

    /// Returns the context of one run, with its session and principal.
    pub(crate) fn for_run(&self, run: &str, session: Option<&str>, principal: &Principal) -> Self {
        let session = session.or(self.conversation.as_deref()).unwrap_or(run);
        Self {
            scope: Some(Arc::new(ContextScope {
                session: session.to_owned(),
                principal: principal.clone(),
            })),
            ..self.clone()
        }
    }

    fn change<T>(mut self, change: impl FnOnce(&mut Declared) -> T) -> Self {
        change(Arc::make_mut(&mut self.declared));
        self.redactor = self.make_redactor();
        // The cached arguments belong to the previous values.
        self.arguments = Arc::default();
        self
    }

    fn make_redactor(&self) -> Redactor {
        let Declared {
            values, defaults, ..
        } = &*self.declared;
        let defaults = defaults.iter().map(|((_, name), value)| (name, value));
        let mut secrets = Vec::new();
        for (name, value) in values.iter().chain(defaults) {
            value.add_secrets(name, self.client.values(), &mut secrets);
        }
        let secrets = secrets.iter();
        let secrets = secrets.map(|(key, text)| (key.as_str(), text.as_str()));
        Redactor::default().with_named_secrets(secrets)
    }

    /// Returns the tool as the model sees it, without the properties that the host sets. Returns
    /// the same `Arc` each time.
    pub fn visible(&self, original: &Arc<ToolDefinition>) -> Arc<ToolDefinition> {
        let hidden = self.arguments_of(original);
        Arc::clone(hidden.visible.as_ref().unwrap_or(original))
    }

    /// Returns whether the host sets an argument of this tool.
    pub(crate) fn concerns(&self, original: &Arc<ToolDefinition>) -> bool {
        self.arguments_of(original).visible.is_some()
    }

    /// Returns the input without hidden arguments, which a model may know from elsewhere.
    pub fn without(&self, original: &Arc<ToolDefinition>, mut input: JsonObject) -> JsonObject {
        for argument in &self.arguments_of(original).arguments {
            input.shift_remove(&argument.name);
        }
        input
    }

    /// Returns the input of an unknown tool without any argument that the host may set.
    pub fn without_any(&self, mut input: JsonObject) -> JsonObject {
        for name in self.names() {
            input.shift_remove(name);
        }
        input
    }

    /// Returns the input with the host's values, which replace values of the model. For an object
    /// value, the tool gets the properties that its schema names, or all if the schema names none
    /// or allows others. Returns an error if a required value is missing.
    ///
    /// The result contains secrets; pass it to the tool only.
    pub fn inject(
        &self,
        original: &Arc<ToolDefinition>,
        mut input: JsonObject,
    ) -> Result<JsonObject, MissingContext> {
        let (scope, client) = (self.scope.as_deref(), self.client.values());
        for argument in &self.arguments_of(original).arguments {
            input.shift_remove(&argument.name);
            let missing = |client: Vec<String>| MissingContext {
                tool: match &original.origin {
                    Some(origin) => origin.tool.clone(),
                    None => original.name.clone(),
                },
                argument: argument.name.clone(),
                client,
            };
            let needed = argument.needed.iter();
            let unsent: Vec<String> = needed
                .filter(|name| !client.contains_key(*name))
                .cloned()
                .collect();
            if !unsent.is_empty() {
                return Err(missing(unsent));
            }
            let value = argument.value.as_ref();
            match value.and_then(|value| value.fill(scope, client)) {
                Some(value) => {
                    input.insert(argument.name.clone(), value);
                }
                None if argument.required => return Err(missing(Vec::new())),
                None => {}
            }
        }
        Ok(input)
    }

    /// Redacts the host's values from a tool's output. Returns whether there were any. Binary data
    /// is not searched.
    pub fn redact_output(&self, output: &mut ToolOutput) -> bool {
        self.redactor.redact_known_in_output(output)
    }

    /// Redacts the host's values from a text, such as an error or a progress message.
    pub fn redact_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.redactor.redact_known(text)
    }

    /// Redacts the host's values from the strings of a JSON value.
    pub(crate) fn redact_value(&self, value: &mut Value) {
        self.redactor.redact_known_in_value(value);
    }

    fn arguments_of(&self, original: &Arc<ToolDefinition>) -> Arc<HiddenArguments> {
        if server_of(original).is_some_and(|it| self.excluded.iter().any(|out| out == it)) {
            return Arc::default();
        }
        self.arguments
            .of(original, |original| self.hidden_arguments(original))
    }

    /// Returns the value of `name` for the tools of a server.
    fn value(&self, server: Option<&str>, name: &str) -> Option<ContextTemplate> {
        let declared = &*self.declared;
        let gets_values = declared
            .servers
            .as_ref()
            .is_none_or(|servers| servers.iter().any(|it| Some(it.as_str()) == server));
        let value = declared.values.get(name).filter(|_| gets_values);
        let key = server.map(|server| (server.to_owned(), name.to_owned()));
        match (value, key.and_then(|key| declared.defaults.get(&key))) {
            (Some(value), Some(default)) => Some(value.clone().or_defaults(default)),
            (value, default) => value.or(default).cloned(),
        }
    }

    /// Returns every argument that the host may set or hides.
    fn names(&self) -> BTreeSet<&String> {
        let declared = &*self.declared;
        let of_defaults = declared.defaults.keys().map(|(_, name)| name);
        let of_values = declared.values.keys().chain(of_defaults);
        of_values.chain(&declared.reserved).collect()
    }

    fn hidden_arguments(&self, original: &ToolDefinition) -> HiddenArguments {
        let schema = &original.input_schema;
        let mut arguments: Vec<Argument> = Vec::new();
        for name in self.names() {
            let value = self.value(server_of(original), name);
            if value.is_some() || self.declared.reserved.contains(name) {
                arguments.extend(argument(schema, name, value));
            }
        }
        let visible = (!arguments.is_empty()).then(|| {
            let names: Vec<&str> = arguments.iter().map(|it| it.name.as_str()).collect();
            Arc::new(ToolDefinition {
                input_schema: hide(schema, &names),
                ..original.clone()
            })
        });
        HiddenArguments { visible, arguments }
    }
}

impl fmt::Debug for ContextInjection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ContextInjection")
            .field(&self.declared.values)
            .finish()
    }
}

fn server_of(tool: &ToolDefinition) -> Option<&str> {
    tool.origin.as_ref().map(|origin| origin.server.as_str())
}

/// Returns the argument `name` that a schema requests at its top level.
fn argument(root: &Value, name: &str, value: Option<ContextTemplate>) -> Option<Argument> {
    let schemas = applied(root, "");
    let mut properties = schemas.iter().filter_map(|it| it.property(name)).peekable();
    let required = schemas.iter().any(|it| it.requires(name));
    if properties.peek().is_none() && !required {
        return None;
    }
    let of_value: Vec<_> = properties
        .flat_map(|pointer| applied(root, &pointer))
        .collect();
    let mut needed = BTreeSet::new();
    let value = value.map(|value| {
        if required {
            needed.extend(value.required_client_names());
        }
        value.named_part(&of_value, &mut needed)
    });
    Some(Argument {
        name: name.to_owned(),
        value,
        required,
        needed,
    })
}

/// Returns the schema without these properties at its top level and without unused definitions.
fn hide(root: &Value, names: &[&str]) -> Value {
    let mut shown = root.clone();
    for found in applied(root, "") {
        if let Some(Value::Object(schema)) = shown.pointer_mut(&found.pointer) {
            hide_in(schema, names);
        }
    }
    remove_unused_definitions(&mut shown);
    shown
}

fn hide_in(schema: &mut Map<String, Value>, names: &[&str]) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.retain(|name, _| !names.contains(&name.as_str()));
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| !name.as_str().is_some_and(|name| names.contains(&name)));
        if required.is_empty() {
            schema.shift_remove("required");
        }
    }
}

/// Removes the definitions without a reference, until all remaining ones have one.
fn remove_unused_definitions(schema: &mut Value) {
    for list in ["$defs", "definitions"] {
        loop {
            let text = schema.to_string();
            let Some(schema) = schema.as_object_mut() else {
                return;
            };
            let Some(Value::Object(definitions)) = schema.get_mut(list) else {
                break;
            };
            let count = definitions.len();
            definitions.retain(|name, _| text.contains(&format!("\"#/{list}/{}", escaped(name))));
            let is_done = definitions.len() == count;
            if definitions.is_empty() {
                schema.shift_remove(list);
            }
            if is_done {
                break;
            }
        }
    }
}

#[cfg(test)]
#[path = "context_tests.rs"]
mod tests;
