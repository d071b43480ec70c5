//! Tools that are declared under the wire's own names, by the options or in `extra.tools`: what the
//! provider runs itself, and kinds of tools that the domain has none of.

use std::{borrow::Cow, fmt};

use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeSeq},
};
use serde_json::{Value, json};
use switchboard_domain::{ChatRequest, JsonObject, ModelError, Warning, WarningKind};

use crate::{ServerTool, tools::invalid};

/// The field of the caller's own that declares tools.
const TOOLS: &str = "tools";

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

/// What the answer holds of a tool's findings only if it is asked for, by the tool's type: the SDK's
/// `ResponseIncludable`. Of the older `web_search_preview` nobody says that it has sources to tell.
const FOUND: [(&str, &str); 4] = [
    ("web_search", "web_search_call.action.sources"),
    ("web_search_2025_08_26", "web_search_call.action.sources"),
    ("code_interpreter", "code_interpreter_call.outputs"),
    ("file_search", "file_search_call.results"),
];

/// A tool that is declared under the wire's own name.
#[derive(Clone, PartialEq)]
pub(crate) struct BuiltIn<'a> {
    /// As it is declared.
    pub(crate) value: Cow<'a, Value>,
    pub(crate) named: Named<'a>,
}

/// A tool as a choice speaks of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Named<'a> {
    Function(Cow<'a, str>),
    Custom(Cow<'a, str>),
    /// The tools of a remote MCP server, by its label.
    Mcp(Cow<'a, str>),
    /// The only tool of its kind, such as `web_search`.
    Kind(Cow<'a, str>),
}

impl<'a> BuiltIn<'a> {
    /// Those of `extra`; none if it has no list of them.
    pub(crate) fn all(extra: &'a JsonObject, form: Form) -> Vec<Self> {
        let tools = extra.get(TOOLS).and_then(Value::as_array);
        let tools = tools.into_iter().flatten();
        let of = |tool| Self {
            named: Named::of(tool, form),
            value: Cow::Borrowed(tool),
        };
        tools.map(of).collect()
    }

    /// Those of the options, then those of the request's `extra`, on Responses. What the request declares
    /// takes the place of what the options have under the same name.
    ///
    /// Fails with [`ModelErrorKind::InvalidRequest`](switchboard_domain::ModelErrorKind::InvalidRequest)
    /// if the API would refuse one of the options'.
    pub(crate) fn with_options(
        request: &'a ChatRequest,
        options: &[ServerTool],
        provider: &str,
        warnings: &mut Vec<Warning>,
    ) -> Result<Vec<Self>, ModelError> {
        if let Some(fault) = options.iter().find_map(ServerTool::fault) {
            return Err(invalid(provider, TOOLS, fault));
        }
        let own = Self::all(&request.extra, Form::Flat);
        // Anything else than a list is sent in the place of all tools.
        if request.extra.get(TOOLS).is_some_and(|it| !it.is_array()) {
            return Ok(own);
        }
        let mut left_out = |name: &str, why: &str| {
            let message = format!("the provider's own `{name}` was left out: {why}");
            warnings.push(Warning::new(WarningKind::ToolUnavailable, message));
        };
        let mut all: Vec<Self> = Vec::with_capacity(options.len() + own.len());
        for tool in options {
            let value = Value::Object(tool.declaration());
            let named = Named::of(&value, Form::Flat).into_owned();
            let value = Cow::Owned(value);
            if own.iter().any(|it| it.named.is_same(&named)) {
                continue;
            }
            if request.tools.iter().any(|it| it.name == named.name()) {
                left_out(named.name(), "a tool of that name is declared");
            } else if all.iter().any(|it| it.named.is_same(&named)) {
                left_out(named.name(), "it is there already");
            } else {
                all.push(Self { value, named });
            }
        }
        all.extend(own);
        Ok(all)
    }

    /// Whether a choice that says `name` means it.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.named.name() == name
    }
}

/// A declaration may hold a token.
impl fmt::Debug for BuiltIn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.named.fmt(f)
    }
}

impl<'a> Named<'a> {
    fn of(value: &'a Value, form: Form) -> Self {
        let text = |object: &'a Value, name: &str| object.get(name).and_then(Value::as_str);
        let kind = text(value, "type").unwrap_or_default();
        let own_name = match form {
            Form::Nested => value.get(kind).and_then(|inner| text(inner, "name")),
            Form::Flat => text(value, "name"),
        };
        let label = text(value, "server_label");
        match (kind, own_name, label) {
            ("function", Some(name), _) => Self::Function(name.into()),
            ("custom", Some(name), _) => Self::Custom(name.into()),
            ("mcp", _, Some(label)) => Self::Mcp(label.into()),
            _ => Self::Kind(kind.into()),
        }
    }

    fn into_owned(self) -> Named<'static> {
        let owned = |name: Cow<'a, str>| Cow::Owned(name.into_owned());
        match self {
            Self::Function(name) => Named::Function(owned(name)),
            Self::Custom(name) => Named::Custom(owned(name)),
            Self::Mcp(label) => Named::Mcp(owned(label)),
            Self::Kind(kind) => Named::Kind(owned(kind)),
        }
    }

    /// Whether both are the same tool, an older version of it included.
    fn is_same(&self, other: &Named<'_>) -> bool {
        let search = |kind: &str| kind.starts_with("web_search");
        match (self, other) {
            (Self::Kind(one), Named::Kind(other)) if search(one) => search(other),
            // A group of tools, of which there may be many.
            (Self::Kind(kind), _) if kind == "namespace" => false,
            _ => self == other,
        }
    }

    /// The name, label or kind.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Function(name) | Self::Custom(name) | Self::Mcp(name) | Self::Kind(name) => name,
        }
    }

    /// Whether `tool_choice` can be just this.
    pub(crate) fn is_choice(&self) -> bool {
        match self {
            Self::Function(_) | Self::Custom(_) | Self::Mcp(_) => true,
            Self::Kind(kind) => NAMED_ALONE.contains(&&**kind),
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
            Named::Custom(name) => ("custom", Some(("name", &**name))),
            Named::Mcp(label) => ("mcp", Some(("server_label", &**label))),
            Named::Kind(kind) => (&**kind, None),
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

/// The tools as they are sent, in one list: the request's, those of the options, and those of the
/// request's `extra.tools`.
pub struct Declared<'a, T> {
    pub(crate) functions: Vec<T>,
    pub(crate) built_in: Vec<BuiltIn<'a>>,
}

impl<T: fmt::Debug> fmt::Debug for Declared<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let functions = self.functions.iter().map(|it| it as &dyn fmt::Debug);
        let built_in = self.built_in.iter().map(|it| it as &dyn fmt::Debug);
        f.debug_list().entries(functions.chain(built_in)).finish()
    }
}

impl<'a, T> Declared<'a, T> {
    pub(crate) fn new<F: Into<T>>(functions: Vec<F>, built_in: Vec<BuiltIn<'a>>) -> Self {
        Self {
            functions: functions.into_iter().map(Into::into).collect(),
            built_in,
        }
    }

    /// Whether functions are among them.
    pub(crate) fn has_functions(&self) -> bool {
        let is_function =
            |tool: &BuiltIn<'_>| tool.value.get("type").is_some_and(|it| it == "function");
        !self.functions.is_empty() || self.built_in.iter().any(is_function)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty() && self.built_in.is_empty()
    }

    /// What `include` has to say for the answer to hold what the tools found, each once.
    pub(crate) fn found(&self) -> Vec<&'static str> {
        let mut found = Vec::new();
        for tool in &self.built_in {
            let Named::Kind(kind) = &tool.named else {
                continue;
            };
            let asked = FOUND.iter().find(|(of, _)| of == kind);
            found.extend(asked.map(|(_, it)| *it).filter(|it| !found.contains(it)));
        }
        found
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
            list.serialize_element(&tool.value)?;
        }
        list.end()
    }
}

#[cfg(test)]
#[path = "built_in_tests.rs"]
mod tests;
