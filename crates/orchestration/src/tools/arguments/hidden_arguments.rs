//! Values that the program adds to tool inputs and that the model does not see.
//!
//! A tool can require a value that the model must not choose or see, such as a conversation id, a
//! callback address or an access token. The tool's schema declares this value as a property, such
//! as `databaseContext`. The model gets the schema without this property. The value is added to the
//! input of each call, and redacted from the result.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::{Map, Value};
use switchboard_domain::{JsonObject, Principal, ToolDefinition, ToolOutput, redact::Redactor};

use super::{
    client_context::{ClientContext, ClientContextError},
    schema::{collect_schemas_of_same_value, escape_pointer_key},
    template::{ContextTemplate, RunPlaceholderValues},
};
use crate::tools::definition_cache::DefinitionCache;

/// An error about a tool that cannot be called, because a required argument that is hidden from the
/// model has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.error_message())]
pub struct MissingHiddenArgument {
    /// Name of the tool on its server.
    pub tool: String,
    /// Name of the required hidden argument.
    pub argument: String,
    /// Names of the client values that the argument needs and the client did not send. Empty if the
    /// configuration has no value for the argument.
    pub client: Vec<String>,
}

impl MissingHiddenArgument {
    fn error_message(&self) -> String {
        let Self {
            tool,
            argument,
            client,
        } = self;
        let sets = "is set by the host and not by the model";
        if client.is_empty() {
            return format!(
                "tool `{tool}` requires the argument `{argument}`, which {sets}, and the \
                 configuration has no value for it; set `context.{argument}` (if \
                 `context_servers` is set, it must include this server)"
            );
        }
        format!(
            "tool `{tool}` requires the argument `{argument}`, which {sets}, and the client did \
             not send `{}` for this run; send it in the field `context` of the request",
            client.join("`, `")
        )
    }
}

/// Tool input values that the program sets and that are hidden from models, by argument name.
///
/// These values belong to the driver of a run and not to the stored run. They are injected again
/// after a stored run is resumed. Placeholders in the values are filled with the session and
/// principal of the run. Clones share the cache of tool definitions without hidden arguments.
///
/// ```
/// use std::sync::Arc;
/// use serde_json::json;
/// use switchboard_domain::ToolDefinition;
/// use switchboard_orchestration::tools::arguments::{ContextInjection, ContextTemplate};
///
/// let value = json!({"conversationId": "c-1", "accessToken": "very-secret"});
/// let context = ContextInjection::new()
///     .with_template("databaseContext", ContextTemplate::parse(&value)?);
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
/// let shown = context.hide_arguments(&tool);
/// assert_eq!(shown.input_schema, json!({
///     "type": "object",
///     "properties": {"nodes": {"type": "array"}},
///     "required": ["nodes"],
/// }));
/// let input = json!({"nodes": []}).as_object().cloned().unwrap_or_default();
/// let called_with = context.inject_values(&tool, input)?;
/// assert_eq!(called_with["databaseContext"], json!({"conversationId": "c-1"}));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default, derive_more::Debug)]
#[debug("ContextInjection({:?})", declared.values)]
pub struct ContextInjection {
    declared: Arc<HiddenArgumentConfig>,
    /// Names of servers whose tools get no hidden values, such as the server name of tools that the
    /// client of the run executes.
    excluded: Vec<String>,
    /// Session id that placeholders use for runs without a session. `None` uses the run id.
    conversation: Option<String>,
    client: ClientContext,
    scope: Option<Arc<RunPlaceholderValues>>,
    redactor: Redactor,
    arguments: Arc<DefinitionCache<HiddenArguments>>,
}

/// The configured values and the names of hidden arguments. Clones of a [`ContextInjection`] share
/// them.
#[derive(Clone, Default)]
struct HiddenArgumentConfig {
    servers: Option<Vec<String>>,
    values: BTreeMap<String, ContextTemplate>,
    /// Default values, by server name and argument name.
    defaults: BTreeMap<(String, String), ContextTemplate>,
    /// Names of arguments that are hidden from models even if no value is configured.
    reserved: BTreeSet<String>,
}

/// The arguments of one tool that are hidden from the model, computed once for all runs.
#[derive(Default)]
struct HiddenArguments {
    /// The tool definition without its hidden arguments. `None` if the tool has no hidden
    /// arguments.
    visible: Option<Arc<ToolDefinition>>,
    arguments: Vec<HiddenArgument>,
}

/// One argument of a tool that is hidden from the model.
struct HiddenArgument {
    name: String,
    /// The configured value, without object members that the tool's schema does not accept. `None`
    /// if no value is configured.
    value: Option<ContextTemplate>,
    /// Whether the tool's schema requires the argument.
    required: bool,
    /// Names of the client values that the argument needs. If the client did not send one of them,
    /// the tool cannot be called.
    needed: BTreeSet<String>,
}

impl ContextInjection {
    /// Creates a configuration without hidden arguments.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the hidden value of every argument with this name. The value can contain placeholders.
    #[must_use]
    pub fn with_template(self, name: impl Into<String>, value: ContextTemplate) -> Self {
        self.change_hidden_values(|declared| declared.values.insert(name.into(), value))
    }

    /// Sets the default value of an argument for the tools of one server. It applies if
    /// [`ContextInjection::with_template`] sets no value. If both values are objects, the tool gets
    /// the members of both; for a common member, the value of `with_template` takes precedence.
    #[must_use]
    pub fn with_default(
        self,
        server: impl Into<String>,
        name: impl Into<String>,
        value: ContextTemplate,
    ) -> Self {
        let key = (server.into(), name.into());
        self.change_hidden_values(|declared| declared.defaults.insert(key, value))
    }

    /// Hides an argument from models even if no value is configured for it. Without a value, a call
    /// of a tool that requires the argument returns an error.
    #[must_use]
    pub fn with_hidden_argument(self, name: impl Into<String>) -> Self {
        self.change_hidden_values(|declared| declared.reserved.insert(name.into()))
    }

    /// Restricts the values of [`ContextInjection::with_template`] to the tools of these servers.
    /// By default, the tools of all servers get these values. Values of
    /// [`ContextInjection::with_default`] are not restricted.
    #[must_use]
    pub fn with_allowed_servers(self, servers: impl IntoIterator<Item = String>) -> Self {
        let servers = servers.into_iter().collect();
        self.change_hidden_values(|declared| declared.servers.replace(servers))
    }

    /// Excludes the tools of a server: no hidden values are added to their inputs.
    #[must_use]
    pub(crate) fn with_excluded_server(mut self, server: &str) -> Self {
        self.excluded.push(server.to_owned());
        self
    }

    /// Sets the session id for placeholders of runs without a session. The default is the run id.
    #[must_use]
    pub fn with_default_session(mut self, id: impl Into<String>) -> Self {
        self.conversation = Some(id.into());
        self
    }

    /// Sets the values that a client sent for one run. Returns an error if no configured value has
    /// a placeholder for one of their names. Also returns an error for an array, an object or a
    /// text that is too long.
    pub fn with_client(mut self, client: ClientContext) -> Result<Self, ClientContextError> {
        client.validate_client_values(&self.client_value_names())?;
        self.client = client;
        self.redactor = self.make_redactor();
        Ok(self)
    }

    /// Returns the names of the values that a client may send with a run.
    pub fn client_value_names(&self) -> BTreeSet<String> {
        let declared = &*self.declared;
        let templates = declared.values.values().chain(declared.defaults.values());
        templates
            .flat_map(ContextTemplate::client_value_names)
            .collect()
    }

    /// Returns a copy for the run with the id `run`. Its placeholders are filled with the session
    /// and principal of this run.
    pub(crate) fn scope_to_run(
        &self,
        run: &str,
        session: Option<&str>,
        principal: &Principal,
    ) -> Self {
        let session = session.or(self.conversation.as_deref()).unwrap_or(run);
        Self {
            scope: Some(Arc::new(RunPlaceholderValues {
                session: session.to_owned(),
                principal: principal.clone(),
            })),
            ..self.clone()
        }
    }

    fn change_hidden_values<T>(
        mut self,
        change: impl FnOnce(&mut HiddenArgumentConfig) -> T,
    ) -> Self {
        change(Arc::make_mut(&mut self.declared));
        self.redactor = self.make_redactor();
        // The cached tool definitions depend on the changed values, so the cache is emptied.
        self.arguments = Arc::default();
        self
    }

    fn make_redactor(&self) -> Redactor {
        let HiddenArgumentConfig {
            values, defaults, ..
        } = &*self.declared;
        let defaults = defaults.iter().map(|((_, name), value)| (name, value));
        let mut secrets = Vec::new();
        for (name, value) in values.iter().chain(defaults) {
            value.collect_template_secrets(name, self.client.context_values(), &mut secrets);
        }
        let secrets = secrets.iter();
        let secrets = secrets.map(|(key, text)| (key.as_str(), text.as_str()));
        Redactor::default().with_named_secrets(secrets)
    }

    /// Returns the tool definition without the arguments that are hidden from the model. Returns
    /// the same `Arc` for the same definition.
    pub fn hide_arguments(&self, original: &Arc<ToolDefinition>) -> Arc<ToolDefinition> {
        let hidden = self.find_hidden_arguments(original);
        Arc::clone(hidden.visible.as_ref().unwrap_or(original))
    }

    /// Returns whether the tool has arguments that are hidden from the model.
    pub(crate) fn has_hidden_arguments(&self, original: &Arc<ToolDefinition>) -> bool {
        self.find_hidden_arguments(original).visible.is_some()
    }

    /// Removes hidden arguments from an input that the model wrote. The model may have read their
    /// names in earlier messages.
    pub fn remove_hidden_arguments(
        &self,
        original: &Arc<ToolDefinition>,
        mut input: JsonObject,
    ) -> JsonObject {
        for argument in &self.find_hidden_arguments(original).arguments {
            input.shift_remove(&argument.name);
        }
        input
    }

    /// Removes from `input` every argument whose name is configured as hidden or has a configured
    /// value. Use this function if the tool definition is not available.
    pub fn remove_all_hidden_arguments(&self, mut input: JsonObject) -> JsonObject {
        for name in self.hidden_argument_names() {
            input.shift_remove(name);
        }
        input
    }

    /// Adds the hidden values to a tool input. They replace values that the model wrote.
    ///
    /// If a value is an object, the tool gets only the members that the schema of the argument
    /// declares. It gets all members if the schema declares none or allows additional ones. Returns
    /// an error if a required argument has no value.
    ///
    /// The result contains secrets; pass it to the tool only.
    pub fn inject_values(
        &self,
        original: &Arc<ToolDefinition>,
        mut input: JsonObject,
    ) -> Result<JsonObject, MissingHiddenArgument> {
        let (scope, client) = (self.scope.as_deref(), self.client.context_values());
        for argument in &self.find_hidden_arguments(original).arguments {
            input.shift_remove(&argument.name);
            let missing = |client: Vec<String>| MissingHiddenArgument {
                tool: original.original_name().to_owned(),
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
            match value.and_then(|value| value.fill_placeholders(scope, client)) {
                Some(value) => {
                    input.insert(argument.name.clone(), value);
                }
                None if argument.required => return Err(missing(Vec::new())),
                None => {}
            }
        }
        Ok(input)
    }

    /// Redacts hidden values from a tool's output. Binary data is not searched.
    pub fn redact_output(&self, output: &mut ToolOutput) {
        self.redactor.redact_known_in_output(output);
    }

    /// Redacts hidden values from a text, such as an error or a progress message.
    pub fn redact_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.redactor.redact_known(text)
    }

    /// Redacts hidden values from the texts, numbers and member names of a JSON value.
    pub(crate) fn redact_value(&self, value: &mut Value) {
        self.redactor.redact_known_in_value(value);
    }

    fn find_hidden_arguments(&self, original: &Arc<ToolDefinition>) -> Arc<HiddenArguments> {
        let server = original.server_name();
        if server.is_some_and(|it| self.excluded.iter().any(|out| out == it)) {
            return Arc::default();
        }
        self.arguments
            .get_or_create(original, |original| self.build_hidden_arguments(original))
    }

    /// Returns the configured value of the argument `name` for the tools of a server, or its
    /// default value. Returns `None` if neither is configured. If both are objects, members that
    /// the value does not have come from the default.
    fn find_argument_value(&self, server: Option<&str>, name: &str) -> Option<ContextTemplate> {
        let declared = &*self.declared;
        let gets_values = declared
            .servers
            .as_ref()
            .is_none_or(|servers| servers.iter().any(|it| Some(it.as_str()) == server));
        let value = declared.values.get(name).filter(|_| gets_values);
        let key = server.map(|server| (server.to_owned(), name.to_owned()));
        match (value, key.and_then(|key| declared.defaults.get(&key))) {
            (Some(value), Some(default)) => Some(value.clone().merge_defaults(default)),
            (value, default) => value.or(default).cloned(),
        }
    }

    /// Returns the names of all arguments that can be hidden or have a configured value.
    fn hidden_argument_names(&self) -> BTreeSet<&String> {
        let declared = &*self.declared;
        let of_defaults = declared.defaults.keys().map(|(_, name)| name);
        let of_values = declared.values.keys().chain(of_defaults);
        of_values.chain(&declared.reserved).collect()
    }

    fn build_hidden_arguments(&self, original: &ToolDefinition) -> HiddenArguments {
        let schema = &original.input_schema;
        let mut arguments: Vec<HiddenArgument> = Vec::new();
        for name in self.hidden_argument_names() {
            let value = self.find_argument_value(original.server_name(), name);
            if value.is_some() || self.declared.reserved.contains(name) {
                arguments.extend(find_schema_argument(schema, name, value));
            }
        }
        let visible = (!arguments.is_empty()).then(|| {
            let names: Vec<&str> = arguments.iter().map(|it| it.name.as_str()).collect();
            Arc::new(ToolDefinition {
                input_schema: remove_schema_properties(schema, &names),
                ..original.clone()
            })
        });
        HiddenArguments { visible, arguments }
    }
}

/// Returns the hidden argument `name` if the top level of the tool's schema declares or requires
/// it, and `None` otherwise. `value` is the configured value.
fn find_schema_argument(
    root: &Value,
    name: &str,
    value: Option<ContextTemplate>,
) -> Option<HiddenArgument> {
    let schemas = collect_schemas_of_same_value(root, "");
    let mut properties = schemas
        .iter()
        .filter_map(|it| it.find_property(name))
        .peekable();
    let required = schemas.iter().any(|it| it.requires_property(name));
    if properties.peek().is_none() && !required {
        return None;
    }
    let of_value: Vec<_> = properties
        .flat_map(|pointer| collect_schemas_of_same_value(root, &pointer))
        .collect();
    let mut needed = BTreeSet::new();
    let value = value.map(|value| value.select_declared_members(&of_value, required, &mut needed));
    Some(HiddenArgument {
        name: name.to_owned(),
        value,
        required,
        needed,
    })
}

/// Removes properties from the top level of a schema, and then the definitions that no `$ref` uses.
fn remove_schema_properties(root: &Value, names: &[&str]) -> Value {
    let mut shown = root.clone();
    for found in collect_schemas_of_same_value(root, "") {
        if let Some(Value::Object(schema)) = shown.pointer_mut(&found.pointer) {
            remove_object_properties(schema, names);
        }
    }
    remove_unused_definitions(&mut shown);
    shown
}

fn remove_object_properties(schema: &mut Map<String, Value>, names: &[&str]) {
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

/// Removes unused definitions until each remaining one is the target of a `$ref` in the schema.
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
            definitions.retain(|name, _| {
                text.contains(&format!("\"#/{list}/{}", escape_pointer_key(name)))
            });
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
#[path = "hidden_arguments_tests.rs"]
mod tests;
