//! The tools that a call may name.

use std::sync::Arc;

use serde_json::Value;
use switchboard_domain::{ChatRequest, ToolChoice, ToolDefinition};

use super::reader::{Reader, Stop};
use crate::tool_names::ToolNames;

/// The tools that a call may name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known(Vec<KnownTool>);

#[derive(Debug, Clone)]
struct KnownTool {
    /// The name that the model was told.
    told: String,
    definition: Arc<ToolDefinition>,
}

impl Known {
    /// The tools of a request that its choice allows.
    pub(crate) fn of(request: &ChatRequest) -> Self {
        let allowed = |name: &String| match &request.tool_choice {
            ToolChoice::Auto | ToolChoice::Required => true,
            ToolChoice::None => false,
            ToolChoice::Only(names) => names.contains(name),
        };
        let tools = request.tools.iter().filter(|tool| allowed(&tool.name));
        // An empty name would be at the beginning of every text.
        let tools = tools.filter(|tool| !tool.name.is_empty());
        Self(
            tools
                .map(|tool| KnownTool {
                    told: tool.name.clone(),
                    definition: Arc::clone(tool),
                })
                .collect(),
        )
    }

    /// The same tools under the names that the wire shows.
    pub(crate) fn told_as(mut self, names: &ToolNames) -> Self {
        for tool in &mut self.0 {
            tool.told = names.wire(&tool.definition.name).into_owned();
        }
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn find(&self, told: &str) -> Option<&KnownTool> {
        self.0.iter().find(|tool| tool.told == told)
    }

    pub(crate) fn has(&self, told: &str) -> bool {
        self.find(told).is_some()
    }

    /// Whether a name could still become one of a tool.
    pub(crate) fn may_become(&self, beginning: &str) -> bool {
        self.0.iter().any(|tool| tool.told.starts_with(beginning))
    }

    /// The declared name of a tool.
    pub(crate) fn declared<'a>(&'a self, told: &'a str) -> &'a str {
        self.find(told)
            .map_or(told, |tool| tool.definition.name.as_str())
    }

    fn property(&self, told: &str, key: &str) -> Option<&Value> {
        let schema = &self.find(told)?.definition.input_schema;
        schema.get("properties")?.get(key)
    }

    pub(crate) fn has_property(&self, told: &str, key: &str) -> bool {
        self.property(told, key).is_some()
    }

    /// Whether an argument is text, so that `12` in it is no number.
    pub(crate) fn is_text(&self, told: &str, key: &str) -> bool {
        let Some(property) = self.property(told, key) else {
            return false;
        };
        match property.get("type") {
            Some(Value::String(name)) => name == "string",
            Some(Value::Array(names)) => {
                let of_text = |name: &Value| name == "string" || name == "null";
                !names.is_empty() && names.iter().all(of_text)
            }
            _ => {
                let values = property.get("enum").and_then(Value::as_array);
                values.is_some_and(|values| values.iter().all(Value::is_string))
            }
        }
    }

    /// Reads a tool's name up to a character that `ends` it, which comes next then. Stops at the
    /// first character with which it can no longer be one.
    pub(crate) async fn read_name(
        &self,
        reader: &mut Reader,
        ends: impl Fn(char) -> bool,
    ) -> Result<String, Stop> {
        let mut name = String::new();
        loop {
            let c = reader.need().await?;
            if ends(c) {
                return if self.has(&name) {
                    Ok(name)
                } else {
                    Err(Stop::Foreign)
                };
            }
            name.push(c);
            if !self.may_become(&name) {
                return Err(Stop::Foreign);
            }
            reader.bump(c);
        }
    }
}
