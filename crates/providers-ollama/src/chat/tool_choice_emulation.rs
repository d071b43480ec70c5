//! Forces tool calls with the request field `format`.
//!
//! The API has no tool choice, but it has `format`, a JSON Schema. The server turns the schema
//! into a grammar that restricts the model's output. A forced call is requested in this form:
//!
//! ```json
//! {"name": "get_weather", "parameters": {"city": "Hamburg"}}
//! ```
//!
//! The answer is parsed as a tool use. `tools` are not sent with it: if a server gets both, the
//! grammar takes precedence and the server's tool parser waits for a call that never arrives. The
//! instructions describe the tools instead.
//!
//! The order of `name` and `parameters` matters: the model must write the name first, because the
//! parameters depend on it. The server reads the schema into a Go map
//! (`llamaServerChatResponseFormat`), so the grammar sorts the fields by name.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};
use switchboard_domain::{JsonObject, ToolDefinition, Warning};

use super::schema::{compile_answer_schema, compile_input_schema, to_object_schema};

/// JSON field with the name of the called tool, in an answer that `format` constrains.
pub(crate) const NAME: &str = "name";
/// JSON field with the input of the called tool, in an answer that `format` constrains.
pub(crate) const PARAMETERS: &str = "parameters";
/// JSON field with the answer's text instead of a tool call, in an answer that `format` constrains.
pub(crate) const RESPONSE: &str = "response";

/// JSON that `format` requires as the answer: a call `{"name": …, "parameters": …}` or, if allowed,
/// `{"response": …}`. [`ChatDecoder`](super::ChatDecoder) parses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerForm {
    /// Names of the tools that may be called.
    pub tools: Vec<String>,
    /// Whether the answer may be `{"response": …}` instead of a call. The value of `response` is
    /// then the answer's text.
    pub may_answer: bool,
}

/// Emulation of a tool choice with the request field `format`. The model must write a call of one
/// of `tools`. If `answer` is a schema, the model may instead write an answer that matches this
/// schema.
pub(crate) struct EmulatedToolChoice<'a> {
    pub(crate) tools: Vec<&'a ToolDefinition>,
    pub(crate) answer: Option<&'a Value>,
}

impl EmulatedToolChoice<'_> {
    /// Returns the description of the required JSON, with which the decoder parses the answer.
    pub(crate) fn answer_form(&self) -> AnswerForm {
        AnswerForm {
            tools: self.tools.iter().map(|tool| tool.name.clone()).collect(),
            may_answer: self.answer.is_some(),
        }
    }

    /// Returns the schema for the field `format`, which constrains the answer to the required JSON.
    pub(crate) fn build_format_schema(&self, warnings: &mut Vec<Warning>) -> Value {
        let mut definitions = JsonObject::new();
        let mut arms: Vec<Value> = Vec::with_capacity(self.tools.len() + 1);
        for tool in &self.tools {
            let key = format!("tool{}", arms.len());
            let parameters = move_schema_definitions(
                compile_input_schema(&tool.input_schema),
                &key,
                &mut definitions,
            );
            arms.push(json!({
                "type": "object",
                "properties": {
                    NAME: {"type": "string", "enum": [tool.name]},
                    PARAMETERS: parameters,
                },
                "required": [NAME, PARAMETERS],
                "additionalProperties": false,
            }));
        }
        if let Some(schema) = self.answer {
            let schema = compile_answer_schema(RESPONSE, schema, warnings).into_owned();
            let answer = move_schema_definitions(schema, RESPONSE, &mut definitions);
            arms.push(json!({
                "type": "object",
                "properties": {RESPONSE: answer},
                "required": [RESPONSE],
                "additionalProperties": false,
            }));
        }
        let mut schema = match (arms.pop(), arms.is_empty()) {
            (Some(only), true) => only,
            (last, _) => {
                arms.extend(last);
                json!({ "anyOf": arms })
            }
        };
        if !definitions.is_empty() {
            schema["$defs"] = Value::Object(definitions);
        }
        schema
    }

    /// Returns instructions that describe the required JSON to the model. The server only enforces
    /// this JSON with `format` and does not explain it to the model.
    pub(crate) fn build_instructions(&self) -> String {
        let call = format!("{{\"{NAME}\": <the tool's name>, \"{PARAMETERS}\": <its input>}}");
        let tools = describe_tools(&self.tools);
        match self.answer {
            None => format!(
                "Call one of these tools now. Write one JSON object and nothing else: {call}\n\n\
                 Tools, one per line:\n{tools}"
            ),
            Some(schema) => format!(
                "Write one JSON object and nothing else. To call one of these tools: {call}\n\
                 To answer when no tool is needed: {{\"{RESPONSE}\": <the answer>}}\n\n\
                 Tools, one per line:\n{tools}\n\nThe answer must match this JSON Schema:\n{schema}"
            ),
        }
    }
}

/// Describes the tools in text for the model, one tool per line.
fn describe_tools(tools: &[&ToolDefinition]) -> String {
    #[derive(Serialize)]
    struct ToolDescription<'a> {
        name: &'a str,
        #[serde(skip_serializing_if = "str::is_empty")]
        description: &'a str,
        parameters: Cow<'a, Value>,
    }
    let lines = tools.iter().map(|tool| {
        let line = ToolDescription {
            name: &tool.name,
            description: &tool.description,
            parameters: to_object_schema(&tool.input_schema),
        };
        serde_json::to_string(&line).unwrap_or_default()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Prefix of every `$ref` in a compiled schema.
const DEFINITIONS: &str = "#/$defs/";

/// Moves the `$defs` of a schema to `definitions`, so that the schema can be nested in another.
/// Their names get the prefix `key`, which keeps all names unique. Older servers need unique names,
/// because they resolve references by their last segment only.
fn move_schema_definitions(mut schema: Value, key: &str, definitions: &mut JsonObject) -> Value {
    let own = schema
        .as_object_mut()
        .and_then(|schema| schema.shift_remove("$defs"));
    prefix_schema_refs(&mut schema, key);
    if let Some(Value::Object(own)) = own {
        for (name, mut definition) in own {
            prefix_schema_refs(&mut definition, key);
            definitions.insert(format!("{key}_{name}"), definition);
        }
    }
    schema
}

/// Adds the prefix `key` to the definition name in every `$ref` of a schema, as
/// [`move_schema_definitions`] does to the names of the definitions.
fn prefix_schema_refs(schema: &mut Value, key: &str) {
    match schema {
        Value::Array(list) => list
            .iter_mut()
            .for_each(|schema| prefix_schema_refs(schema, key)),
        Value::Object(map) => {
            for (keyword, value) in map {
                match (keyword.as_str(), value) {
                    // Skipped: these keywords contain values, in which `$ref` has no meaning.
                    ("const" | "enum" | "default" | "examples", _) => {}
                    ("$ref", Value::String(reference)) => {
                        if let Some(name) = reference.strip_prefix(DEFINITIONS) {
                            *reference = format!("{DEFINITIONS}{key}_{name}");
                        }
                    }
                    (_, value) => prefix_schema_refs(value, key),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
#[path = "tool_choice_emulation_tests.rs"]
mod tests;
