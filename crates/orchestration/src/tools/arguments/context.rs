//! Values from the host for tool inputs, which the model does not see.
//!
//! A server can require values of the host, such as a conversation id, a callback address or an
//! access token. The server's schema requests such a value by name (`databaseContext`). The model
//! sees the tool without this property, the value is injected at call time, and it is redacted from
//! the result.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashSet},
    fmt,
    sync::Arc,
};

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use switchboard_domain::{JsonObject, Principal, ToolDefinition, ToolOutput, redact::Redactor};

use super::{
    schema::{applied, escaped, requires, target},
    template::ContextTemplate,
};
use crate::tools::per_definition::PerDefinition;

/// The text that replaces a hidden value in `Debug` and `Display`.
pub(super) const HIDDEN: &str = "[hidden]";

/// A value that is formatted as `[hidden]` and cannot be serialized.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Hidden<T>(T);

impl<T> Hidden<T> {
    /// Creates a hidden value.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// Returns the value.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Hidden<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl<T> fmt::Display for Hidden<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

/// Maximum size of a text that a client sends, in bytes.
const MAX_CLIENT_TEXT: usize = 8192;

/// Values that a client sent for one run, by name. `Debug` shows the names only.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ClientContext(Arc<Map<String, Value>>);

impl ClientContext {
    /// Returns the values. A null counts as not sent.
    pub fn new(mut values: Map<String, Value>) -> Self {
        values.retain(|_, value| !value.is_null());
        Self(Arc::new(values))
    }

    /// Returns whether the client sent nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the texts among the values. Any of them may be a secret.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.values().filter_map(Value::as_str)
    }
}

impl<'de> Deserialize<'de> for ClientContext {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Map::deserialize(deserializer).map(Self::new)
    }
}

impl fmt::Debug for ClientContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hidden = self.0.keys().map(|name| (name, Hidden(())));
        f.debug_map().entries(hidden).finish()
    }
}

/// Error about a value of a client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientContextError {
    /// No context value has a placeholder for it.
    #[error(
        "no context value is called `{name}`{}",
        if allowed.is_empty() { "; clients may send none".to_owned() }
        else { format!("; clients may send: {}", allowed.join(", ")) }
    )]
    Unknown {
        /// The name that the client sent.
        name: String,
        /// The names that clients may send.
        allowed: Vec<String>,
    },
    /// The value is an array or an object.
    #[error("the context value `{name}` is not a text, a number, true or false")]
    Compound {
        /// The name that the client sent.
        name: String,
    },
    /// The text is too long.
    #[error("the context value `{name}` has more than {MAX_CLIENT_TEXT} bytes")]
    TooLong {
        /// The name that the client sent.
        name: String,
    },
}

impl ClientContextError {
    /// Returns the name that the client sent.
    pub fn name(&self) -> &str {
        match self {
            Self::Unknown { name, .. } | Self::Compound { name } | Self::TooLong { name } => name,
        }
    }
}

/// The run whose data fills placeholders.
#[derive(Clone)]
pub(super) struct ContextScope {
    pub(super) session: String,
    pub(super) principal: Principal,
}

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
    plans: Arc<PerDefinition<Plan>>,
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

/// The effect of the context on one tool, for all runs.
struct Plan {
    /// The tool without the hidden properties. `None` if it has none.
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
        for (name, value) in client.0.iter() {
            let allowed = self.client_names();
            if !allowed.contains(name.as_str()) {
                return Err(ClientContextError::Unknown {
                    name: name.clone(),
                    allowed: allowed.into_iter().map(str::to_owned).collect(),
                });
            }
            if value.is_array() || value.is_object() {
                return Err(ClientContextError::Compound { name: name.clone() });
            }
            if value
                .as_str()
                .is_some_and(|text| text.len() > MAX_CLIENT_TEXT)
            {
                return Err(ClientContextError::TooLong { name: name.clone() });
            }
        }
        self.client = client;
        self.redactor = self.make_redactor();
        Ok(self)
    }

    /// Returns the names of the values that a client may send.
    pub fn client_names(&self) -> BTreeSet<&str> {
        let templates = self.declared.values.values();
        templates.flat_map(ContextTemplate::client_names).collect()
    }

    /// Returns the context of one run, with its session and principal.
    pub(crate) fn for_run(&self, run: &str, session: Option<&str>, principal: &Principal) -> Self {
        if self.is_empty() {
            return self.clone();
        }
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
        // The cached plans belong to the previous values.
        self.plans = Arc::default();
        self
    }

    fn make_redactor(&self) -> Redactor {
        let Declared {
            values, defaults, ..
        } = &*self.declared;
        let defaults = defaults.iter().map(|((_, name), value)| (name, value));
        let mut secrets = Vec::new();
        for (name, value) in values.iter().chain(defaults) {
            value.each_secret(name, &self.client.0, &mut |key, text| {
                secrets.push((key.to_owned(), text.to_owned()));
            });
        }
        let secrets = secrets.iter();
        let secrets = secrets.map(|(key, text)| (key.as_str(), text.as_str()));
        Redactor::default().with_named_secrets(secrets)
    }

    /// Returns whether the context has neither values nor hidden arguments.
    pub fn is_empty(&self) -> bool {
        let Declared {
            servers: _,
            values,
            defaults,
            reserved,
        } = &*self.declared;
        values.is_empty() && defaults.is_empty() && reserved.is_empty()
    }

    /// Returns the tool as the model sees it, without the properties that the host sets. Returns
    /// the same `Arc` each time.
    pub fn visible(&self, original: &Arc<ToolDefinition>) -> Arc<ToolDefinition> {
        match self.plan(original) {
            Some(plan) => Arc::clone(plan.visible.as_ref().unwrap_or(original)),
            None => Arc::clone(original),
        }
    }

    /// Returns whether the host sets an argument of this tool.
    pub(crate) fn concerns(&self, original: &Arc<ToolDefinition>) -> bool {
        self.plan(original)
            .is_some_and(|plan| !plan.arguments.is_empty())
    }

    /// Returns the input without hidden arguments, which a model may know from elsewhere.
    pub fn without(&self, original: &Arc<ToolDefinition>, mut input: JsonObject) -> JsonObject {
        if let Some(plan) = self.plan(original) {
            for argument in &plan.arguments {
                input.shift_remove(&argument.name);
            }
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
        let Some(plan) = self.plan(original) else {
            return Ok(input);
        };
        for argument in &plan.arguments {
            input.shift_remove(&argument.name);
            let missing = |client: Vec<String>| MissingContext {
                tool: match &original.origin {
                    Some(origin) => origin.tool.clone(),
                    None => original.name.clone(),
                },
                argument: argument.name.clone(),
                client,
            };
            let client = &self.client.0;
            let unsent = argument
                .needed
                .iter()
                .filter(|it| !client.contains_key(*it));
            let unsent: Vec<String> = unsent.cloned().collect();
            if !unsent.is_empty() {
                return Err(missing(unsent));
            }
            let value = argument.value.as_ref();
            match value.and_then(|value| value.fill(self.scope.as_deref(), client)) {
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

    fn plan(&self, original: &Arc<ToolDefinition>) -> Option<Arc<Plan>> {
        let server = server_of(original);
        if self.is_empty() || server.is_some_and(|it| self.excluded.iter().any(|out| out == it)) {
            return None;
        }
        Some(self.plans.of(original, |original| self.make_plan(original)))
    }

    /// Returns the value of `name` for the tools of a server.
    fn value(&self, server: Option<&str>, name: &str) -> Option<ContextTemplate> {
        let Declared {
            servers,
            values,
            defaults,
            reserved: _,
        } = &*self.declared;
        let gets_some = servers
            .as_ref()
            .is_none_or(|servers| servers.iter().any(|it| Some(it.as_str()) == server));
        let value = values.get(name).filter(|_| gets_some);
        let default = server.and_then(|it| defaults.get(&(it.to_owned(), name.to_owned())));
        match (value, default) {
            (Some(value), Some(default)) => Some(value.clone().or_defaults(default)),
            (value, default) => value.or(default).cloned(),
        }
    }

    /// Returns every argument that the host may set or hides.
    fn names(&self) -> BTreeSet<&String> {
        let Declared {
            servers: _,
            values,
            defaults,
            reserved,
        } = &*self.declared;
        let of_defaults = defaults.keys().map(|(_, name)| name);
        values.keys().chain(of_defaults).chain(reserved).collect()
    }

    fn make_plan(&self, original: &ToolDefinition) -> Plan {
        let schema = &original.input_schema;
        let server = server_of(original);
        let arguments: Vec<Argument> = self
            .names()
            .into_iter()
            .filter_map(|name| {
                let value = self.value(server, name);
                if value.is_none() && !self.declared.reserved.contains(name) {
                    return None;
                }
                argument(schema, name, value)
            })
            .collect();
        let visible = (!arguments.is_empty()).then(|| {
            let names: Vec<&str> = arguments.iter().map(|it| it.name.as_str()).collect();
            Arc::new(ToolDefinition {
                input_schema: hide(schema, &names),
                ..original.clone()
            })
        });
        Plan { visible, arguments }
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
    let mut properties = Vec::new();
    let (mut named, mut required) = (false, false);
    for found in applied(root, "") {
        if found
            .schema
            .get("properties")
            .is_some_and(|properties| properties.get(name).is_some())
        {
            properties.push(format!("{}/properties/{}", found.pointer, escaped(name)));
            named = true;
        }
        required |= requires(found.schema, name);
    }
    if !named && !required {
        return None;
    }
    let mut needed = BTreeSet::new();
    let value = value.map(|value| {
        if required {
            value.depends_on(&mut needed);
        }
        value.named_part(root, &properties, &mut needed)
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
            for name in names {
                hide_one(schema, name);
            }
        }
    }
    let (before, after) = (used(root), used(&shown));
    for list in ["$defs", "definitions"] {
        let Some(Value::Object(definitions)) = shown.get_mut(list) else {
            continue;
        };
        definitions.retain(|name, _| {
            let id = (list, name.clone());
            after.contains(&id) || !before.contains(&id)
        });
        if definitions.is_empty()
            && let Value::Object(shown) = &mut shown
        {
            shown.shift_remove(list);
        }
    }
    shown
}

fn hide_one(schema: &mut Map<String, Value>, name: &str) {
    let mut was_there = false;
    for keyword in [
        "properties",
        "dependentRequired",
        "dependentSchemas",
        "dependencies",
    ] {
        if let Some(Value::Object(by_name)) = schema.get_mut(keyword) {
            let removed = by_name.shift_remove(name).is_some();
            was_there |= removed && keyword == "properties";
            for others in by_name.values_mut().filter_map(Value::as_array_mut) {
                others.retain(|other| other != name);
            }
        }
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|other| other != name);
        if required.is_empty() {
            schema.shift_remove("required");
        }
    }
    if let Some(Value::Object(default)) = schema.get_mut("default") {
        default.shift_remove(name);
    }
    if let Some(Value::Array(examples)) = schema.get_mut("examples") {
        for example in examples.iter_mut().filter_map(Value::as_object_mut) {
            example.shift_remove(name);
        }
    }
    if was_there {
        for keyword in ["minProperties", "maxProperties"] {
            if let Some(count) = schema.get(keyword).and_then(Value::as_u64) {
                schema.insert(keyword.to_owned(), count.saturating_sub(1).into());
            }
        }
    }
}

/// Returns the definitions that a schema refers to, directly or indirectly.
fn used(root: &Value) -> HashSet<(&'static str, String)> {
    let mut used = HashSet::new();
    let mut open: Vec<&Value> = Vec::new();
    if let Value::Object(root) = root {
        let others = root
            .iter()
            .filter(|(key, _)| !matches!(key.as_str(), "$defs" | "definitions"));
        open.extend(others.map(|(_, value)| value));
    }
    let top = root.get("$ref").and_then(Value::as_str);
    let mut references: Vec<&str> = top.into_iter().collect();
    loop {
        while let Some(value) = open.pop() {
            match value {
                Value::Object(object) => {
                    references.extend(object.get("$ref").and_then(Value::as_str));
                    open.extend(object.values());
                }
                Value::Array(items) => open.extend(items),
                _ => {}
            }
        }
        let Some(reference) = references.pop() else {
            return used;
        };
        let Some(pointer) = target(reference) else {
            continue;
        };
        for list in ["$defs", "definitions"] {
            let step = pointer
                .strip_prefix('/')
                .and_then(|rest| rest.strip_prefix(list))
                .and_then(|rest| rest.strip_prefix('/'));
            if let Some(step) = step {
                let step = step.split('/').next().unwrap_or_default();
                let name = super::schema::unescaped(step);
                if used.insert((list, name.clone())) {
                    open.extend(root.get(list).and_then(|list| list.get(&name)));
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "context_tests.rs"]
mod tests;
