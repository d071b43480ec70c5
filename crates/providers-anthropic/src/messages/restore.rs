//! What comes back in another shape than it was declared in: names of tools, and inputs whose schema
//! had to be sent in another one.

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;
use switchboard_domain::ToolDefinition;
use switchboard_providers_common::{
    schema::{Dialect, restore},
    tool_names::ToolNames,
};

/// Bytes of an input that are held back at most; a longer one counts as malformed anyway.
const MAX_HELD: usize = 4 * 1024 * 1024;

/// The tools of a request that come back in another shape: under another name, since theirs cannot be
/// said on this wire, or with an input of another shape than their schemas ask for, such as with a
/// property under another name. Such inputs are given back in the shape that was asked for, at once and
/// not piece by piece.
#[derive(Debug, Clone, Default)]
pub struct Reshaped {
    names: Option<ToolNames>,
    tools: HashMap<String, (Arc<ToolDefinition>, Dialect)>,
}

impl Reshaped {
    /// Adds a tool that was sent in a dialect.
    pub(crate) fn insert(&mut self, tool: &Arc<ToolDefinition>, dialect: Dialect) {
        let tool = Arc::clone(tool);
        self.tools.insert(tool.name.clone(), (tool, dialect));
    }

    /// Adds the names under which the tools were sent.
    #[must_use]
    pub(crate) fn naming(mut self, names: ToolNames) -> Self {
        self.names = Some(names).filter(ToolNames::any_changed);
        self
    }

    /// Whether all comes as it was declared.
    pub fn is_empty(&self) -> bool {
        self.names.is_none() && self.tools.is_empty()
    }

    /// The declared name of a tool that is called by its name on the wire.
    pub(crate) fn declared<'a>(&'a self, wire: &'a str) -> &'a str {
        let names = self.names.as_ref();
        names.map_or(wire, |names| names.declared(wire))
    }

    /// What holds back the input of a call of that tool, if it has to be given another shape.
    pub(crate) fn hold(&self, name: &str) -> Option<Held> {
        let (tool, dialect) = self.tools.get(name)?;
        Some(Held {
            tool: Arc::clone(tool),
            dialect: *dialect,
            json: String::new(),
        })
    }
}

/// An input that is held back until it is whole.
#[derive(Debug)]
pub(crate) struct Held {
    tool: Arc<ToolDefinition>,
    dialect: Dialect,
    json: String,
}

impl Held {
    /// Takes more of it, and gives it back once it is too long to be an input.
    pub(crate) fn push(&mut self, more: &str) -> Option<String> {
        self.json.push_str(more);
        (self.json.len() > MAX_HELD).then(|| std::mem::take(&mut self.json))
    }

    /// What there is of it, in the shape that it came in.
    pub(crate) fn raw(self) -> String {
        self.json
    }

    /// The whole of it in the shape that was asked for.
    pub(crate) fn restored(self) -> String {
        match serde_json::from_str::<Value>(&self.json) {
            Ok(input) => restore(&self.tool.input_schema, self.dialect, input).to_string(),
            Err(_) => self.json,
        }
    }
}
