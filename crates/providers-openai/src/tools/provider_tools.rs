//! Tools that the options or the field `tools` of the caller's `extra` declare as JSON: tools that
//! the provider runs, and kinds of tools that the domain does not have.

use std::{borrow::Cow, fmt};

use serde::{Serialize, Serializer, ser::SerializeSeq};
use serde_json::{Value, json};
use switchboard_domain::{ChatRequest, JsonObject, ModelError, Warning};

use switchboard_providers_common::request::{
    invalid_request, is_declared, warn_omitted_server_tool,
};

use super::{Function, server_tool::ServerTool};

/// Name of the request field that lists the tools.
const TOOLS: &str = "tools";

/// Shape of the JSON in which an API declares a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolForm {
    /// `{"type": "function", "function": {"name": …}}`, as in Chat Completions.
    Nested,
    /// `{"type": "function", "name": …}`, as in Responses.
    Flat,
}

/// Types of provider tools that `tool_choice` can force the model to call. Sources:
/// `ToolChoiceTypes`, `ToolChoiceShell` and `ToolChoiceApplyPatch` of OpenAI's SDK. Other types,
/// such as `web_search`, are possible only in a tool choice of the type `allowed_tools`.
const FORCIBLE_TYPES: [&str; 10] = [
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

/// Types of provider tools, each with the value of the request field `include` that adds the tool's
/// results to the answer. Source: `ResponseIncludable` of OpenAI's SDK. The older
/// `web_search_preview` has no documented value.
const RESULT_INCLUDES: [(&str, &str); 4] = [
    ("web_search", "web_search_call.action.sources"),
    ("web_search_2025_08_26", "web_search_call.action.sources"),
    ("code_interpreter", "code_interpreter_call.outputs"),
    ("file_search", "file_search_call.results"),
];

/// A tool that the options or the caller's `extra` declare as JSON, such as a tool that the
/// provider runs.
#[derive(Clone, PartialEq)]
pub(crate) struct ProviderTool<'a> {
    /// JSON declaration of the tool, which is sent unchanged.
    pub(crate) value: Cow<'a, Value>,
    pub(crate) name: ToolName<'a>,
}

/// Name, label or type by which a tool choice selects a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ToolName<'a> {
    Function(Cow<'a, str>),
    Custom(Cow<'a, str>),
    /// Label of a remote MCP server. It selects all tools of the server.
    Mcp(Cow<'a, str>),
    /// Type of a tool that has no name, such as `web_search`.
    Type(Cow<'a, str>),
}

impl<'a> ProviderTool<'a> {
    /// Returns the tools in the list `tools` of the caller's `extra`. Returns an empty list if
    /// `extra` has no such list.
    pub(crate) fn from_extra_fields(extra: &'a JsonObject, form: ToolForm) -> Vec<Self> {
        let tools = extra.get(TOOLS).and_then(Value::as_array);
        let tools = tools.into_iter().flatten();
        let tools = tools.map(|tool| Self {
            name: ToolName::from_declaration(tool, form),
            value: Cow::Borrowed(tool),
        });
        tools.collect()
    }

    /// Returns the provider tools of a Responses request: first the server tools of the options,
    /// then the tools in the request's `extra`. A tool in `extra` replaces a tool of the options
    /// with the same name.
    ///
    /// Fails with [`InvalidRequest`](switchboard_domain::ModelErrorKind::InvalidRequest) if the API
    /// would refuse a tool of the options.
    pub(crate) fn from_options_and_extra(
        request: &'a ChatRequest,
        options: &[ServerTool],
        provider: &str,
        warnings: &mut Vec<Warning>,
    ) -> Result<Vec<Self>, ModelError> {
        if let Some(message) = options
            .iter()
            .find_map(ServerTool::find_configuration_error)
        {
            return Err(invalid_request(provider, TOOLS, message));
        }
        let own = Self::from_extra_fields(&request.extra, ToolForm::Flat);
        // If `tools` in `extra` is not a list, it replaces all tools.
        if request.extra.get(TOOLS).is_some_and(|it| !it.is_array()) {
            return Ok(own);
        }
        let mut all: Vec<Self> = Vec::with_capacity(options.len() + own.len());
        for tool in options {
            let value = Value::Object(tool.to_declaration());
            let name = ToolName::from_declaration(&value, ToolForm::Flat).into_owned();
            let value = Cow::Owned(value);
            if own.iter().any(|it| it.name.is_same_tool(&name)) {
                continue;
            }
            let sent_as = name.as_str();
            if is_declared(request, sent_as) {
                warn_omitted_server_tool(sent_as, "a tool of that name is declared", warnings);
            } else if all.iter().any(|it| it.name.is_same_tool(&name)) {
                warn_omitted_server_tool(sent_as, "it is configured twice", warnings);
            } else {
                all.push(Self { value, name });
            }
        }
        all.extend(own);
        Ok(all)
    }

    /// Returns whether the name `name` in a tool choice selects this tool.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.name.as_str() == name
    }
}

/// Debug output shows only the name, because a declaration may contain a token.
impl fmt::Debug for ProviderTool<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}

impl<'a> ToolName<'a> {
    fn from_declaration(value: &'a Value, form: ToolForm) -> Self {
        let text = |object: &'a Value, name: &str| object.get(name).and_then(Value::as_str);
        let kind = text(value, "type").unwrap_or_default();
        let name = match form {
            ToolForm::Nested => value.get(kind).and_then(|inner| text(inner, "name")),
            ToolForm::Flat => text(value, "name"),
        };
        let label = text(value, "server_label");
        match (kind, name, label) {
            ("function", Some(name), _) => Self::Function(name.into()),
            ("custom", Some(name), _) => Self::Custom(name.into()),
            ("mcp", _, Some(label)) => Self::Mcp(label.into()),
            _ => Self::Type(kind.into()),
        }
    }

    fn into_owned(self) -> ToolName<'static> {
        let owned = |name: Cow<'a, str>| Cow::Owned(name.into_owned());
        match self {
            Self::Function(name) => ToolName::Function(owned(name)),
            Self::Custom(name) => ToolName::Custom(owned(name)),
            Self::Mcp(label) => ToolName::Mcp(owned(label)),
            Self::Type(kind) => ToolName::Type(owned(kind)),
        }
    }

    /// Returns whether two names select the same tool. All versions of the web search count as one
    /// tool.
    fn is_same_tool(&self, other: &ToolName<'_>) -> bool {
        let is_search = |kind: &str| kind.starts_with("web_search");
        match (self, other) {
            (Self::Type(one), ToolName::Type(other)) if is_search(one) => is_search(other),
            // Two tools of the type `namespace` count as different tools, because a request may
            // have several of them.
            (Self::Type(kind), _) if kind == "namespace" => false,
            _ => self == other,
        }
    }

    /// Returns the name, the label or the type by which the tool is selected.
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Function(name) | Self::Custom(name) | Self::Mcp(name) | Self::Type(name) => name,
        }
    }

    /// Returns the JSON with which `tool_choice` refers to this tool.
    pub(crate) fn to_tool_choice(&self, form: ToolForm) -> Value {
        let (kind, name) = match self {
            Self::Function(name) => ("function", Some(("name", name))),
            Self::Custom(name) => ("custom", Some(("name", name))),
            Self::Mcp(label) => ("mcp", Some(("server_label", label))),
            Self::Type(kind) => (&**kind, None),
        };
        match (name, form) {
            (None, _) => json!({ "type": kind }),
            (Some((field, name)), ToolForm::Flat) => json!({"type": kind, field: name}),
            (Some((field, name)), ToolForm::Nested) => json!({"type": kind, kind: {field: name}}),
        }
    }

    /// Returns whether a tool choice can force the model to call this tool.
    pub(crate) fn can_be_forced(&self) -> bool {
        match self {
            Self::Function(_) | Self::Custom(_) | Self::Mcp(_) => true,
            Self::Type(kind) => FORCIBLE_TYPES.contains(&&**kind),
        }
    }
}

/// All tools of a request, which are sent in one list: the declared functions, the provider tools
/// of the options, and the tools in `extra.tools`.
#[derive(Debug)]
pub struct DeclaredTools<'a> {
    pub(crate) form: ToolForm,
    pub(crate) functions: Vec<Function<'a>>,
    pub(crate) provider_tools: Vec<ProviderTool<'a>>,
}

impl DeclaredTools<'_> {
    /// Returns whether any declared tool is a function.
    pub(crate) fn has_functions(&self) -> bool {
        let is_function =
            |tool: &ProviderTool<'_>| tool.value.get("type").is_some_and(|it| it == "function");
        !self.functions.is_empty() || self.provider_tools.iter().any(is_function)
    }

    /// Returns whether no tool is declared.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty() && self.provider_tools.is_empty()
    }

    /// Returns the values of `include` that request the results of these tools in the answer.
    pub(crate) fn include_field_values(&self) -> Vec<&'static str> {
        let mut includes = Vec::new();
        for tool in &self.provider_tools {
            let ToolName::Type(kind) = &tool.name else {
                continue;
            };
            let include = RESULT_INCLUDES.iter().find(|(of, _)| of == kind);
            let include = include.map(|(_, it)| *it);
            includes.extend(include.filter(|it| !includes.contains(it)));
        }
        includes
    }

    /// Returns the declared tools, or `None` if there are none.
    pub(crate) fn non_empty_tools(&self) -> Option<&Self> {
        (!self.is_empty()).then_some(self)
    }
}

impl Serialize for DeclaredTools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let count = self.functions.len() + self.provider_tools.len();
        let mut list = serializer.serialize_seq(Some(count))?;
        for function in &self.functions {
            let r#type = "function";
            list.serialize_element(&match self.form {
                ToolForm::Nested => FunctionEntry::Nested { r#type, function },
                ToolForm::Flat => FunctionEntry::Flat { r#type, function },
            })?;
        }
        for tool in &self.provider_tools {
            list.serialize_element(&tool.value)?;
        }
        list.end()
    }
}

/// A function in the request's list of tools, with the JSON shape that the API expects.
#[derive(Serialize)]
#[serde(untagged)]
enum FunctionEntry<'f, 'a> {
    Nested {
        r#type: &'static str,
        function: &'f Function<'a>,
    },
    Flat {
        r#type: &'static str,
        #[serde(flatten)]
        function: &'f Function<'a>,
    },
}

#[cfg(test)]
#[path = "provider_tools_tests.rs"]
mod tests;
