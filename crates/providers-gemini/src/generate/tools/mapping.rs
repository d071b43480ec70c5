//! The mapping of tool names and inputs between the domain and the wire.

use std::{borrow::Cow, sync::Arc};

use serde_json::Value;
use switchboard_domain::{ChatRequest, ToolDefinition};
use switchboard_providers_common::{
    schema::{Dialect, restore},
    tool_names::{NameRule, ToolNames},
};

use super::schema::schema_dialect;
use crate::options::SchemaForm;

/// The mapping of a request's tools, with which the decoder restores names and inputs. A name that
/// the API does not accept has an alias.
#[derive(Debug, Clone, Default)]
pub struct ToolMapping {
    tools: Vec<Arc<ToolDefinition>>,
    /// The schema dialect in which the tools were sent.
    dialect: Option<Dialect>,
    names: Option<ToolNames>,
}

impl ToolMapping {
    /// Creates the mapping for a request whose schemas are sent in `form`.
    pub fn of(request: &ChatRequest, form: SchemaForm) -> Self {
        Self {
            tools: request.tools.clone(),
            dialect: Some(schema_dialect(form)),
            names: Some(ToolNames::of(request, NameRule::GEMINI)),
        }
    }

    /// Returns the name that the API uses for a tool of the request or of its history.
    pub(crate) fn to_wire<'a>(&self, name: &'a str) -> Cow<'a, str> {
        let wire = self.names.as_ref().map(|names| names.wire(name));
        match wire.filter(|wire| wire != name) {
            Some(alias) => Cow::Owned(alias.into_owned()),
            None => Cow::Borrowed(name),
        }
    }

    /// Returns the domain name for a tool name of the API.
    pub(crate) fn to_domain_name<'a>(&'a self, name: &'a str) -> &'a str {
        let names = self.names.as_ref();
        names.map_or(name, |names| names.declared(name))
    }

    /// Returns the input of a call in the form of the tool's original schema. `name` is the domain
    /// name.
    pub(crate) fn restore_input(&self, name: &str, args: Value) -> Value {
        match (self.find_tool(name), self.dialect) {
            (Some(tool), Some(dialect)) => restore(&tool.input_schema, dialect, args),
            _ => args,
        }
    }

    /// Returns the tool with this domain name.
    pub(crate) fn find_tool(&self, name: &str) -> Option<&Arc<ToolDefinition>> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use switchboard_providers_common::schema::ToolSchemas;

    use super::*;

    #[test]
    fn an_input_comes_back_in_the_form_of_the_tools_own_schema() {
        let schema = json!({"type": "object", "properties": {"größe in m": {"type": "number"}}});
        let tool = ToolDefinition::new("t", "", schema);
        let request = ChatRequest::default().with_tools([tool]);
        let declared = ToolMapping::of(&request, SchemaForm::OpenApi);
        let sent = ToolSchemas::default().compiled(&request.tools[0], Dialect::GeminiOpenApi);
        let key = sent.schema["properties"]
            .as_object()
            .unwrap()
            .keys()
            .next()
            .unwrap();
        let args = json!({ key.as_str(): 3 });
        assert_eq!(declared.restore_input("t", args), json!({"größe in m": 3}));
        let unknown = json!({"any": ["thing"]});
        assert_eq!(declared.restore_input("other", unknown.clone()), unknown);
        assert_eq!(
            ToolMapping::default().restore_input("t", unknown.clone()),
            unknown
        );
    }
}
