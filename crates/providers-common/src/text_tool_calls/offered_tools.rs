//! The tools that a recovered call may name.

use std::sync::Arc;

use serde_json::Value;
use switchboard_domain::{ChatRequest, ToolChoice, ToolDefinition};

use super::cursor::{CallParseError, Cursor};
use crate::tool_names::ToolNames;

/// The tools of a request that its tool choice allows. Calls of other tools stay text.
#[derive(Debug, Clone, Default)]
pub(crate) struct OfferedTools(Vec<OfferedTool>);

#[derive(Debug, Clone)]
struct OfferedTool {
    /// Name of the tool in the request to the provider, which the model received.
    wire_name: String,
    definition: Arc<ToolDefinition>,
}

/// Returns the tools of a request that its tool choice allows.
pub(crate) fn allowed_tools(request: &ChatRequest) -> impl Iterator<Item = &Arc<ToolDefinition>> {
    request
        .tools
        .iter()
        .filter(|tool| match &request.tool_choice {
            ToolChoice::Auto | ToolChoice::Required => true,
            ToolChoice::None => false,
            ToolChoice::Only(names) => names.contains(&tool.name),
        })
}

impl OfferedTools {
    pub(crate) fn from_request(request: &ChatRequest) -> Self {
        // A tool without a name would match at the beginning of every text.
        let tools = allowed_tools(request).filter(|tool| !tool.name.is_empty());
        let tools = tools.map(|tool| OfferedTool {
            wire_name: tool.name.clone(),
            definition: Arc::clone(tool),
        });
        Self(tools.collect())
    }

    /// Replaces the declared names of the tools by the names that are sent to the provider.
    pub(crate) fn with_wire_names(mut self, names: &ToolNames) -> Self {
        for tool in &mut self.0 {
            tool.wire_name = names.wire_name(&tool.definition.name).into_owned();
        }
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn find_tool(&self, wire_name: &str) -> Option<&OfferedTool> {
        self.0.iter().find(|tool| tool.wire_name == wire_name)
    }

    pub(crate) fn contains(&self, wire_name: &str) -> bool {
        self.find_tool(wire_name).is_some()
    }

    /// Returns whether a text begins with a tool's name and then `end`, or may do so when more of
    /// the text arrives.
    pub(crate) fn may_begin_tool_name(&self, text: &str, end: char) -> bool {
        self.0.iter().any(|tool| {
            let name = tool.wire_name.as_str();
            match text.strip_prefix(name) {
                Some(rest) => rest.is_empty() || rest.starts_with(end),
                None => name.starts_with(text),
            }
        })
    }

    /// Returns the declared name of the tool that is sent to the provider as `wire_name`. Returns
    /// `wire_name` for an unknown tool.
    pub(crate) fn declared_name<'a>(&'a self, wire_name: &'a str) -> &'a str {
        let tool = self.find_tool(wire_name);
        tool.map_or(wire_name, |tool| tool.definition.name.as_str())
    }

    /// Returns the schema of the property `key` in the input schema of a tool. Returns `None` if
    /// the tool or the property is unknown.
    pub(crate) fn property_schema(&self, wire_name: &str, key: &str) -> Option<&Value> {
        let schema = &self.find_tool(wire_name)?.definition.input_schema;
        schema.get("properties")?.get(key)
    }

    /// Returns whether the schema of the argument `key` allows only strings (and null). The text
    /// `12` is then the string "12" and not a number.
    pub(crate) fn is_text_argument(&self, wire_name: &str, key: &str) -> bool {
        let Some(property) = self.property_schema(wire_name, key) else {
            return false;
        };
        match property.get("type") {
            Some(Value::String(name)) => name == "string",
            Some(Value::Array(names)) => {
                let is_textual = |name: &Value| name == "string" || name == "null";
                !names.is_empty() && names.iter().all(is_textual)
            }
            _ => {
                let values = property.get("enum").and_then(Value::as_array);
                values.is_some_and(|values| values.iter().all(Value::is_string))
            }
        }
    }

    /// Reads the name of an offered tool. The name ends before the first character for which `ends`
    /// is true. Fails if the text ends before such a character or no offered tool has this name.
    pub(crate) fn read_tool_name<'t>(
        &self,
        cursor: &mut Cursor<'t>,
        ends: impl Fn(char) -> bool,
    ) -> Result<&'t str, CallParseError> {
        let start = cursor.position();
        cursor.skip_while(|c| !ends(c));
        let name = cursor.text_since(start);
        cursor.peek_required()?;
        if self.contains(name) {
            Ok(name)
        } else {
            Err(CallParseError::NotACall)
        }
    }
}
