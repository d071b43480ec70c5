//! What comes back otherwise than it was asked for, because it had to be sent otherwise: tools under
//! another name, and what is written for a schema in another shape.

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;
use switchboard_domain::{ToolDefinition, accumulator::DEFAULT_MAX_TOOL_INPUT_BYTES};
use switchboard_providers_common::{
    schema::{Dialect, restore},
    tool_names::ToolNames,
};

/// The tools of a request that have another name on the wire, and the schemas that were sent in the
/// strict dialect and ask for another shape there: a property that may be left out is `null`, a root
/// that is no object stands in one.
///
/// What is written for such schemas is held back until it is whole, and given in the shape that was
/// asked for.
///
/// Mostly it is nothing, and every answer that is waited for has one: it is small, and clones share it.
#[derive(Debug, Clone, Default)]
pub struct Reshaped(Option<Arc<Parts>>);

#[derive(Debug, Clone, Default)]
struct Parts {
    names: Option<ToolNames>,
    tools: HashMap<String, Arc<ToolDefinition>>,
    answer: Option<Arc<Value>>,
}

impl Reshaped {
    fn parts(&mut self) -> &mut Parts {
        Arc::make_mut(self.0.get_or_insert_default())
    }

    /// Says how the tools are called.
    pub(crate) fn named(&mut self, names: ToolNames) {
        if names.any_changed() {
            self.parts().names = Some(names);
        } else if let Some(parts) = &mut self.0 {
            Arc::make_mut(parts).names = None;
        }
    }

    /// The name of a tool that came under a name of the wire.
    pub(crate) fn declared<'a>(&'a self, wire: &'a str) -> &'a str {
        let names = self.0.as_ref().and_then(|parts| parts.names.as_ref());
        names.map_or(wire, |names| names.declared(wire))
    }

    /// Adds a tool.
    pub(crate) fn insert(&mut self, tool: &Arc<ToolDefinition>) {
        let tools = &mut self.parts().tools;
        tools.insert(tool.name.clone(), Arc::clone(tool));
    }

    /// Says the schema of the answer.
    pub(crate) fn answer(&mut self, schema: &Value) {
        self.parts().answer = Some(Arc::new(schema.clone()));
    }

    /// The answer, and the input of a tool of that name, in another shape.
    #[cfg(test)]
    pub(crate) fn all_of(tool: &str) -> Self {
        let schema = serde_json::json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let mut reshaped = Self::default();
        reshaped.answer(&schema);
        reshaped.insert(&Arc::new(ToolDefinition::new(tool, "", schema)));
        reshaped
    }

    /// Whether everything comes as it was asked for.
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|parts| {
            parts.names.is_none() && parts.tools.is_empty() && parts.answer.is_none()
        })
    }

    /// What holds back the input of a call of the tool that is declared under that name.
    pub(crate) fn hold_input(&self, name: &str) -> Option<Held> {
        let tool = self.0.as_ref()?.tools.get(name)?;
        Some(Held::new(Original::Tool(Arc::clone(tool))))
    }

    /// What holds back a text of the answer.
    pub(crate) fn hold_answer(&self) -> Option<Held> {
        let schema = self.0.as_ref()?.answer.as_ref()?;
        Some(Held::new(Original::Answer(Arc::clone(schema))))
    }
}

/// JSON text that is held back until it is whole.
#[derive(Debug)]
pub(crate) struct Held {
    original: Original,
    text: String,
}

/// Whose schema it was written for.
#[derive(Debug)]
enum Original {
    Tool(Arc<ToolDefinition>),
    Answer(Arc<Value>),
}

impl Held {
    fn new(original: Original) -> Self {
        Self {
            original,
            text: String::new(),
        }
    }

    /// What there is of it, as it came.
    pub(crate) fn raw(self) -> String {
        self.text
    }

    /// The whole of it in the shape that was asked for; as it came if it is no JSON.
    pub(crate) fn restored(self) -> String {
        let schema = match &self.original {
            Original::Tool(tool) => &tool.input_schema,
            Original::Answer(schema) => schema,
        };
        match serde_json::from_str::<Value>(&self.text) {
            Ok(value) => restore(schema, Dialect::OpenAiStrict, value).to_string(),
            Err(_) => self.text,
        }
    }

    /// Whether it may still become what was asked for: the root of a strict schema is an object.
    fn is_hopeful(&self) -> bool {
        let begin = self.text.trim_start();
        (begin.is_empty() || begin.starts_with('{'))
            && self.text.len() <= DEFAULT_MAX_TOOL_INPUT_BYTES
    }
}

/// What can be said at once of a text of which `more` came. It is held no longer once it is none that
/// has another shape, such as words before a call, or too long for one.
pub(crate) fn pass(held: &mut Option<Held>, more: &str) -> Option<String> {
    let text = match held.as_mut() {
        None => more.to_owned(),
        Some(held_back) => {
            held_back.text.push_str(more);
            if held_back.is_hopeful() {
                return None;
            }
            held.take().map(Held::raw).unwrap_or_default()
        }
    };
    (!text.is_empty()).then_some(text)
}

/// The rest of a text that is whole.
pub(crate) fn rest(held: &mut Option<Held>) -> Option<String> {
    let rest = held.take().map(Held::restored);
    rest.filter(|text| !text.is_empty())
}

/// The rest of a text that broke off.
pub(crate) fn broken(held: &mut Option<Held>) -> Option<String> {
    let rest = held.take().map(Held::raw);
    rest.filter(|text| !text.is_empty())
}

#[cfg(test)]
#[path = "reshaped_tests.rs"]
mod tests;
