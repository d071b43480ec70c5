//! Values that the host gives to tools and the model never sees.
//!
//! A server may want to know the conversation, an address to call back, an access token. Such a value has
//! a name, under which tools ask for it in their schema (`databaseContext`). The model is shown the tool
//! without that property; at call time the value goes in; and what comes back loses it again.

use std::{borrow::Cow, collections::BTreeMap, collections::HashSet, fmt, sync::Arc};

use serde_json::{Map, Value};
use switchboard_domain::{JsonObject, ToolDefinition, ToolOutput};

use super::{
    schema::{applied, requires, target},
    scrub::{HIDDEN, Scrubber},
};
use crate::per_definition::PerDefinition;

/// Something that prints as `[hidden]` and cannot be serialized.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Hidden<T>(T);

impl<T> Hidden<T> {
    /// Hides a value.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// The value, for the place that it is meant for.
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

/// The values that tools get from the host, by the name of the property that asks for them.
///
/// It belongs to whoever drives runs, not to the run: it is no part of a stored run, and a resumed one
/// gets it again. Clones share what was found out about tool definitions.
///
/// ```
/// use std::sync::Arc;
/// use serde_json::json;
/// use switchboard_domain::ToolDefinition;
/// use switchboard_orchestration::arguments::ContextInjection;
///
/// let context = ContextInjection::new().with(
///     "databaseContext",
///     json!({"conversationId": "c-1", "accessToken": "very-secret"}),
/// );
/// let tool = Arc::new(ToolDefinition::new("add_nodes", "", json!({
///     "type": "object",
///     "properties": {
///         "nodes": {"type": "array"},
///         "databaseContext": {"type": "object", "properties": {"conversationId": {"type": "string"}}},
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
/// let called_with = context.inject(&tool, input);
/// assert_eq!(called_with["databaseContext"], json!({"conversationId": "c-1"}));
/// ```
#[derive(Clone, Default)]
pub struct ContextInjection {
    servers: Option<Vec<String>>,
    values: BTreeMap<String, Hidden<Value>>,
    scrubber: Scrubber,
    plans: Arc<PerDefinition<Plan>>,
}

/// What the context is to one tool.
struct Plan {
    /// The tool without what is hidden; `None` if nothing is.
    visible: Option<Arc<ToolDefinition>>,
    /// What it is given, by the property's name.
    given: Vec<(String, Hidden<Value>)>,
}

impl ContextInjection {
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Also gives `value` to tools that ask for `name`. A text in it of eight characters or more (four, if
    /// its key says that it is a token, key, secret or password) is struck out of results.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: Value) -> Self {
        self.values.insert(name.into(), Hidden(value));
        let values = self.values.iter();
        self.scrubber = Scrubber::new(values.map(|(name, value)| (name.as_str(), value.expose())));
        // What was found out holds for the values as they were.
        self.plans = Arc::default();
        self
    }

    /// Gives them to tools of these servers alone. Without, every server whose tool asks for a name gets its
    /// value.
    #[must_use]
    pub fn only_for(mut self, servers: impl IntoIterator<Item = String>) -> Self {
        self.servers = Some(servers.into_iter().collect());
        self.plans = Arc::default();
        self
    }

    /// Whether there is nothing to give.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The tool as the model sees it: without the properties that the host fills. The same `Arc` every
    /// time, and the tool itself if nothing of it is hidden.
    pub fn visible(&self, original: &Arc<ToolDefinition>) -> Arc<ToolDefinition> {
        if self.is_empty() {
            return Arc::clone(original);
        }
        let plan = self.plan(original);
        Arc::clone(plan.visible.as_ref().unwrap_or(original))
    }

    /// The input without what a model wrote in the place of a hidden value. It may know the name from
    /// elsewhere, and a schema without the property may refuse it.
    pub fn without(&self, original: &Arc<ToolDefinition>, mut input: JsonObject) -> JsonObject {
        if !self.is_empty() {
            for (name, _) in &self.plan(original).given {
                input.shift_remove(name);
            }
        }
        input
    }

    /// The input with the host's values where the tool asks for them, over anything that stands there. Of
    /// an object value a tool gets the properties that its schema names, or all if it names none or says
    /// that it takes others.
    ///
    /// The result holds secrets: it is for the tool alone.
    pub fn inject(&self, original: &Arc<ToolDefinition>, mut input: JsonObject) -> JsonObject {
        if !self.is_empty() {
            for (name, value) in &self.plan(original).given {
                input.insert(name.clone(), value.expose().clone());
            }
        }
        input
    }

    /// Strikes the host's values out of what a tool gave back, as text and as data, and says whether there
    /// were any. Bytes, such as images, are not looked into.
    pub fn scrub(&self, output: &mut ToolOutput) -> bool {
        self.scrubber.output(output)
    }

    /// The same for a text, such as an error's or a progress message.
    pub fn scrub_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.scrubber
            .text(text)
            .map_or(Cow::Borrowed(text), Cow::Owned)
    }

    fn plan(&self, original: &Arc<ToolDefinition>) -> Arc<Plan> {
        self.plans.of(original, |original| self.make_plan(original))
    }

    fn make_plan(&self, original: &ToolDefinition) -> Plan {
        let schema = &original.input_schema;
        let mut given = Vec::new();
        let gets_some = self.servers.as_ref().is_none_or(|servers| {
            let origin = original.origin.as_ref();
            origin.is_some_and(|origin| servers.contains(&origin.server))
        });
        for (name, value) in self.values.iter().filter(|_| gets_some) {
            if let Some(value) = asked_for(schema, name, value.expose()) {
                given.push((name.clone(), Hidden(value)));
            }
        }
        let visible = (!given.is_empty()).then(|| {
            let names: Vec<&str> = given.iter().map(|(name, _)| name.as_str()).collect();
            Arc::new(ToolDefinition {
                input_schema: hide(schema, &names),
                ..original.clone()
            })
        });
        Plan { visible, given }
    }
}

impl fmt::Debug for ContextInjection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ContextInjection")
            .field(&self.values)
            .finish()
    }
}

/// What of `value` a schema asks for under `name` at its top; `None` if it does not.
fn asked_for(root: &Value, name: &str, value: &Value) -> Option<Value> {
    let mut properties = Vec::new();
    let mut asked = false;
    for found in applied(root, "") {
        if found
            .schema
            .get("properties")
            .is_some_and(|properties| properties.get(name).is_some())
        {
            let name = super::schema::escaped(name);
            properties.push(format!("{}/properties/{name}", found.pointer));
            asked = true;
        }
        asked |= requires(found.schema, name);
    }
    asked.then(|| named_part(root, &properties, value))
}

/// The part of `value` that the schemas at `pointers`, which all speak of it, name.
fn named_part(root: &Value, pointers: &[String], value: &Value) -> Value {
    let schemas: Vec<_> = pointers
        .iter()
        .flat_map(|pointer| applied(root, pointer))
        .collect();
    let below = |keyword: &str| -> Vec<String> {
        let having = schemas.iter().filter(|a| a.schema.contains_key(keyword));
        having.map(|a| format!("{}/{keyword}", a.pointer)).collect()
    };
    match value {
        Value::Object(object) => {
            let lists = below("properties");
            let further: Vec<&Value> = schemas
                .iter()
                .filter_map(|applied| applied.schema.get("additionalProperties"))
                .collect();
            let closed = further
                .iter()
                .any(|further| **further == Value::Bool(false));
            let takes_others = further
                .iter()
                .any(|further| **further != Value::Bool(false))
                || schemas
                    .iter()
                    .any(|applied| applied.schema.contains_key("patternProperties"));
            let open = takes_others || (lists.is_empty() && !closed);
            let mut part = Map::new();
            for (key, value) in object {
                let step = super::schema::escaped(key);
                let named: Vec<String> = lists
                    .iter()
                    .map(|list| format!("{list}/{step}"))
                    .filter(|pointer| root.pointer(pointer).is_some())
                    .collect();
                if !named.is_empty() {
                    part.insert(key.clone(), named_part(root, &named, value));
                } else if open {
                    part.insert(key.clone(), value.clone());
                }
            }
            Value::Object(part)
        }
        Value::Array(items) => {
            let of_items = below("items");
            items
                .iter()
                .map(|item| named_part(root, &of_items, item))
                .collect()
        }
        other => other.clone(),
    }
}

/// The schema without these properties at its top, nor the definitions that only they used.
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

/// The definitions that a schema refers to, through each other too.
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
