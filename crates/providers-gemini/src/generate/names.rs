//! Names of functions and their inputs, both ways.

use std::{borrow::Cow, sync::Arc};

use serde_json::Value;
use switchboard_domain::{ChatRequest, ToolDefinition};
use switchboard_providers_common::schema::{Dialect, restore};

use super::schema::dialect;
use crate::options::SchemaForm;

/// Bytes of a function's name at most.
const MAX_NAME: usize = 128;

/// The tools that a request declares, as the wire knows them: what the answer calls is translated
/// back by it.
///
/// A name that begins with a digit or a dash is legal in the domain and not on this wire: it is sent
/// with underscores before it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Declared {
    tools: Vec<Arc<ToolDefinition>>,
    /// The dialect in which their schemas were sent.
    dialect: Option<Dialect>,
    /// Names on the wire that are not those of the domain.
    aliases: Vec<Alias>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Alias {
    wire: String,
    domain: String,
}

impl Declared {
    /// The tools of a request whose schemas are sent in that form. They are shared, not copied.
    pub fn of(request: &ChatRequest, form: SchemaForm) -> Self {
        let mut declared = Self {
            tools: request.tools.clone(),
            dialect: Some(dialect(form)),
            aliases: Vec::new(),
        };
        for tool in &request.tools {
            if begins_well(&tool.name) || tool.name.is_empty() {
                continue;
            }
            let mut wire = format!("_{}", tool.name);
            while declared.tool(&wire).is_some()
                || declared.aliases.iter().any(|known| known.wire == wire)
            {
                wire.insert(0, '_');
            }
            declared.aliases.push(Alias {
                wire,
                domain: tool.name.clone(),
            });
        }
        declared
    }

    /// A name as it is sent.
    pub(crate) fn to_wire<'a>(&self, name: &'a str) -> Cow<'a, str> {
        match self.aliases.iter().find(|known| known.domain == name) {
            Some(alias) => Cow::Owned(alias.wire.clone()),
            None => Cow::Borrowed(name),
        }
    }

    /// A name as the domain has it.
    pub(crate) fn to_domain<'a>(&'a self, name: &'a str) -> &'a str {
        let alias = self.aliases.iter().find(|known| known.wire == name);
        alias.map_or(name, |alias| &alias.domain)
    }

    /// The input of the tool of that name in the domain, as its own schema has it.
    pub(crate) fn input(&self, name: &str, args: Value) -> Value {
        match (self.tool(name), self.dialect) {
            (Some(tool), Some(dialect)) => restore(&tool.input_schema, dialect, args),
            _ => args,
        }
    }

    /// The tool of that name in the domain.
    pub(crate) fn tool(&self, name: &str) -> Option<&Arc<ToolDefinition>> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

/// Whether the API takes it as the name of a function: `[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}`.
pub(crate) fn is_name(name: &str) -> bool {
    name.len() <= MAX_NAME && begins_well(name) && name.bytes().all(is_name_byte)
}

/// A name out of history as the API takes it. A model may have called a tool that does not exist
/// under a name that cannot; the call must still be told.
pub(crate) fn as_name(name: Cow<'_, str>) -> Cow<'_, str> {
    if is_name(&name) {
        return name;
    }
    let legal = |c: char| {
        if u8::try_from(c).is_ok_and(is_name_byte) {
            c
        } else {
            '_'
        }
    };
    let mut sane: String = name.chars().take(MAX_NAME - 1).map(legal).collect();
    if sane.is_empty() {
        sane.push_str("unnamed");
    }
    if !begins_well(&sane) {
        sane.insert(0, '_');
    }
    Cow::Owned(sane)
}

fn begins_well(name: &str) -> bool {
    let first = name.bytes().next();
    first.is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':' | b'-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn declared(names: &[&str]) -> Declared {
        let tools = names
            .iter()
            .map(|name| ToolDefinition::new(*name, "", json!({})));
        let request = ChatRequest::default().with_tools(tools);
        Declared::of(&request, SchemaForm::JsonSchema)
    }

    #[test]
    fn case_16_aliases_are_free_of_collisions_and_lead_back() {
        let names = [
            "7zip_list",
            "_7zip_list",
            "__7zip_list",
            "-x",
            "7zip",
            "plain-1",
        ];
        let declared = declared(&names);
        let wire: Vec<_> = names.iter().map(|name| declared.to_wire(name)).collect();
        assert_eq!(
            wire,
            [
                "___7zip_list",
                "_7zip_list",
                "__7zip_list",
                "_-x",
                "_7zip",
                "plain-1"
            ]
        );
        for (wire, name) in wire.iter().zip(names) {
            assert!(is_name(wire), "{wire}");
            assert_eq!(declared.to_domain(wire), name);
        }
    }

    #[test]
    fn any_name_out_of_history_becomes_a_legal_one() {
        let long = "x".repeat(300);
        for name in ["", "a/b", "größe", "7", "-", "a b", "\u{1f30a}", &long] {
            let sane = as_name(Cow::Borrowed(name));
            assert!(is_name(&sane), "{name} became {sane}");
        }
        assert!(matches!(
            as_name(Cow::Borrowed("a.b:c-d")),
            Cow::Borrowed(_)
        ));
    }

    #[test]
    fn an_input_comes_back_in_the_form_of_the_tools_own_schema() {
        let schema = json!({"type": "object", "properties": {"größe in m": {"type": "number"}}});
        let tool = ToolDefinition::new("t", "", schema.clone());
        let request = ChatRequest::default().with_tools([tool]);
        let declared = Declared::of(&request, SchemaForm::OpenApi);
        let sent = super::super::schema::parameters(&schema, SchemaForm::OpenApi, "t", &mut vec![]);
        let sent = sent.unwrap();
        let key = sent["properties"]
            .as_object()
            .unwrap()
            .keys()
            .next()
            .unwrap();
        let args = json!({ key.as_str(): 3 });
        assert_eq!(declared.input("t", args), json!({"größe in m": 3}));
        let unknown = json!({"any": ["thing"]});
        assert_eq!(declared.input("other", unknown.clone()), unknown);
        assert_eq!(Declared::default().input("t", unknown.clone()), unknown);
    }
}
