//! The tools that a call may name.

use std::sync::Arc;

use serde_json::Value;
use switchboard_domain::{ChatRequest, ToolChoice, ToolDefinition};

use super::cursor::{Cursor, Stop};
use crate::tool_names::ToolNames;

/// The tools of a request that its tool choice allows.
#[derive(Debug, Clone, Default)]
pub(crate) struct OfferedTools(Vec<OfferedTool>);

#[derive(Debug, Clone)]
struct OfferedTool {
    /// Name of the tool on the wire, which the model received.
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
    pub(crate) fn of(request: &ChatRequest) -> Self {
        // A tool without a name would match at the beginning of every text.
        let tools = allowed_tools(request).filter(|tool| !tool.name.is_empty());
        let tools = tools.map(|tool| OfferedTool {
            wire_name: tool.name.clone(),
            definition: Arc::clone(tool),
        });
        Self(tools.collect())
    }

    /// Replaces the declared names of the tools by their wire names.
    pub(crate) fn with_wire_names(mut self, names: &ToolNames) -> Self {
        for tool in &mut self.0 {
            tool.wire_name = names.wire(&tool.definition.name).into_owned();
        }
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn find(&self, wire_name: &str) -> Option<&OfferedTool> {
        self.0.iter().find(|tool| tool.wire_name == wire_name)
    }

    pub(crate) fn contains(&self, wire_name: &str) -> bool {
        self.find(wire_name).is_some()
    }

    /// Returns whether a text begins with a tool's name and `end`, or stops before the end of them.
    pub(crate) fn may_begin(&self, text: &str, end: char) -> bool {
        self.0.iter().any(|tool| {
            let name = tool.wire_name.as_str();
            match text.strip_prefix(name) {
                Some(rest) => rest.is_empty() || rest.starts_with(end),
                None => name.starts_with(text),
            }
        })
    }

    /// Returns the declared name of the tool with this wire name.
    pub(crate) fn declared<'a>(&'a self, wire_name: &'a str) -> &'a str {
        let tool = self.find(wire_name);
        tool.map_or(wire_name, |tool| tool.definition.name.as_str())
    }

    /// Returns the schema of a property in the input of a tool.
    pub(crate) fn property(&self, wire_name: &str, key: &str) -> Option<&Value> {
        let schema = &self.find(wire_name)?.definition.input_schema;
        schema.get("properties")?.get(key)
    }

    /// Returns whether an argument is always text, so that a value such as `12` is not a number.
    pub(crate) fn is_text(&self, wire_name: &str, key: &str) -> bool {
        let Some(property) = self.property(wire_name, key) else {
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

    /// Reads a tool's name up to the first character for which `ends` is true.
    pub(crate) fn read_name<'t>(
        &self,
        cursor: &mut Cursor<'t>,
        ends: impl Fn(char) -> bool,
    ) -> Result<&'t str, Stop> {
        let start = cursor.at();
        cursor.skip_while(|c| !ends(c));
        let name = cursor.text_since(start);
        cursor.peek_required()?;
        if self.contains(name) {
            Ok(name)
        } else {
            Err(Stop::NotACall)
        }
    }
}
