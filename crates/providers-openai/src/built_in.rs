//! Tools that a caller declares under the wire's own names, in `extra.tools`: what the provider runs
//! itself, and kinds of tools that the domain has none of.

use std::borrow::Cow;

use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeSeq},
};
use serde_json::{Value, json};
use switchboard_domain::JsonObject;

/// How a wire writes a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `{"type": "function", "function": {"name": …}}` (Chat Completions).
    Nested,
    /// `{"type": "function", "name": …}` (Responses).
    Flat,
}

/// Kinds that `tool_choice` can name alone: the SDK's types `ToolChoiceTypes`, `ToolChoiceShell` and
/// `ToolChoiceApplyPatch`. Others, `web_search` among them, it can name among `allowed_tools` only.
const NAMED_ALONE: [&str; 10] = [
    "file_search",
    "web_search_preview",
    "web_search_preview_2025_03_11",
    "computer",
    "computer_use",
    "computer_use_preview",
    "image_generation",
    "code_interpreter",
    "shell",
    "apply_patch",
];

/// A tool that the caller declares.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BuiltIn<'a> {
    /// As it is declared.
    pub(crate) value: &'a Value,
    pub(crate) named: Named<'a>,
}

/// A tool as a choice speaks of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Named<'a> {
    Function(Cow<'a, str>),
    Custom(&'a str),
    /// The tools of a remote MCP server, by its label.
    Mcp(&'a str),
    /// The only tool of its kind, such as `web_search`.
    Kind(&'a str),
}

impl<'a> BuiltIn<'a> {
    /// Those of `extra`; none if it has no list of them.
    pub(crate) fn all(extra: &'a JsonObject, form: Form) -> Vec<Self> {
        let tools = extra.get("tools").and_then(Value::as_array);
        let tools = tools.into_iter().flatten();
        tools.map(|tool| Self::of(tool, form)).collect()
    }

    fn of(value: &'a Value, form: Form) -> Self {
        let text = |object: &'a Value, name: &str| object.get(name).and_then(Value::as_str);
        let kind = text(value, "type").unwrap_or_default();
        let own_name = match form {
            Form::Nested => value.get(kind).and_then(|inner| text(inner, "name")),
            Form::Flat => text(value, "name"),
        };
        let named = match (kind, own_name) {
            ("function", Some(name)) => Named::Function(name.into()),
            ("custom", Some(name)) => Named::Custom(name),
            ("mcp", _) => text(value, "server_label").map_or(Named::Kind(kind), Named::Mcp),
            _ => Named::Kind(kind),
        };
        Self { value, named }
    }

    /// Whether a choice that says `name` means it.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.named.name() == name
    }
}

impl Named<'_> {
    /// The name, label or kind.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Function(name) => name,
            Self::Custom(name) | Self::Mcp(name) | Self::Kind(name) => name,
        }
    }

    /// Whether `tool_choice` can be just this.
    pub(crate) fn is_choice(&self) -> bool {
        match self {
            Self::Function(_) | Self::Custom(_) | Self::Mcp(_) => true,
            Self::Kind(kind) => NAMED_ALONE.contains(kind),
        }
    }
}

/// A tool's name as `tool_choice` has it.
#[derive(Debug)]
pub struct NamedTool<'a> {
    named: Named<'a>,
    form: Form,
}

impl<'a> NamedTool<'a> {
    pub(crate) fn new(named: Named<'a>, form: Form) -> Self {
        Self { named, form }
    }
}

impl Serialize for NamedTool<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (kind, name) = match &self.named {
            Named::Function(name) => ("function", Some(("name", &**name))),
            Named::Custom(name) => ("custom", Some(("name", *name))),
            Named::Mcp(label) => ("mcp", Some(("server_label", *label))),
            Named::Kind(kind) => (*kind, None),
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", kind)?;
        match (name, self.form) {
            (None, _) => {}
            (Some((field, name)), Form::Flat) => map.serialize_entry(field, name)?,
            (Some((field, name)), Form::Nested) => {
                map.serialize_entry(kind, &json!({ field: name }))?;
            }
        }
        map.end()
    }
}

/// The tools as they are sent, in one list: the request's, then those of its `extra.tools`.
#[derive(Debug)]
pub struct Declared<'a, T> {
    pub(crate) functions: Vec<T>,
    pub(crate) built_in: Vec<&'a Value>,
}

impl<'a, T> Declared<'a, T> {
    pub(crate) fn new<F: Into<T>>(functions: Vec<F>, built_in: Vec<&'a Value>) -> Self {
        Self {
            functions: functions.into_iter().map(Into::into).collect(),
            built_in,
        }
    }

    /// Whether functions are among them.
    pub(crate) fn has_functions(&self) -> bool {
        let is_function = |tool: &&Value| tool.get("type").is_some_and(|it| it == "function");
        !self.functions.is_empty() || self.built_in.iter().any(is_function)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty() && self.built_in.is_empty()
    }

    /// The tools if there are some.
    pub(crate) fn some_if_any(&self) -> Option<&Self> {
        (!self.is_empty()).then_some(self)
    }
}

impl<T: Serialize> Serialize for Declared<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let count = self.functions.len() + self.built_in.len();
        let mut list = serializer.serialize_seq(Some(count))?;
        for function in &self.functions {
            list.serialize_element(function)?;
        }
        for tool in &self.built_in {
            list.serialize_element(tool)?;
        }
        list.end()
    }
}

#[cfg(test)]
#[path = "built_in_tests.rs"]
mod tests;
