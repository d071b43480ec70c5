//! Finds the id for a name in the question with a lookup tool.

use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_domain::{JsonObject, ToolDefinition};

use super::{ConversationTurn, parse_result_data};
use crate::{
    arguments::ToolArguments, question_values::looks_like_id, tool_parameters::read_parameters,
    word_stems::stem_words,
};

/// State of the search for an id.
pub(crate) enum NameLookup {
    /// The tool with this name must be called with this input first.
    Call(String, JsonObject),
    /// The parameter and the id that the lookup found for it.
    Found(JsonObject),
    /// The tool with this name found no id.
    Failed(String),
}

/// Returns the state of the search if `arguments` contain a name in place of a required id of
/// `tool`, such as "MPO" in "genes connected to MPO", and another tool finds the ids of names.
pub(crate) fn look_up_name(
    turn: &ConversationTurn<'_>,
    tools: &[Arc<ToolDefinition>],
    tool: &ToolDefinition,
    arguments: &ToolArguments,
) -> Option<NameLookup> {
    let input = arguments.inputs.first()?;
    let parameters = read_parameters(&tool.input_schema);
    let (parameter, name) = parameters.iter().find_map(|parameter| {
        let value = input.get(&parameter.name)?.as_str()?;
        let is_name =
            parameter.is_required && parameter.name_contains_any(&["id"]) && !looks_like_id(value);
        is_name.then_some((&parameter.name, value))
    })?;
    let mut others = tools.iter().filter(|other| other.name != tool.name);
    let lookup = &others.find(|other| is_lookup_tool(other))?.name;
    let calls = turn.calls_of_tool(lookup);
    let Some(call) = calls.first() else {
        let input = JsonObject::from_iter([("name".to_owned(), json!(name))]);
        return Some(NameLookup::Call(lookup.clone(), input));
    };
    let result = call.result.filter(|result| !result.is_error);
    let id = result
        .and_then(parse_result_data)
        .and_then(|data| find_id(&data));
    Some(match id {
        Some(id) => NameLookup::Found(JsonObject::from_iter([(parameter.clone(), json!(id))])),
        None => NameLookup::Failed(lookup.clone()),
    })
}

/// Returns whether `tool` finds the ids of names, and `question` contains no word of the tool's
/// name.
pub(crate) fn is_unnamed_lookup_tool(tool: &ToolDefinition, question: &str) -> bool {
    let asked = stem_words(question);
    is_lookup_tool(tool)
        && !stem_words(&tool.name)
            .iter()
            .any(|stem| asked.contains(stem))
}

/// Returns whether a tool finds the ids of names: it is read-only, and its only required parameter
/// is a `name`.
fn is_lookup_tool(tool: &ToolDefinition) -> bool {
    let parameters = read_parameters(&tool.input_schema);
    let mut required = parameters.iter().filter(|parameter| parameter.is_required);
    let is_name = required
        .next()
        .is_some_and(|it| it.name == "name" && it.json_type() == "string");
    is_name && required.next().is_none() && tool.annotations.read_only == Some(true)
}

/// Returns the first text in JSON data that looks like an id.
fn find_id(data: &Value) -> Option<String> {
    match data {
        Value::String(text) => looks_like_id(text).then(|| text.clone()),
        Value::Array(items) => items.iter().find_map(find_id),
        Value::Object(fields) => fields.values().find_map(find_id),
        _ => None,
    }
}
